"""The memory of a run: what its clients may take together, and each one's share.

Free memory is that of the machine, or of the worker's control group where that has less.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from pgperf.core.layers import LAYERS
from pgperf.core.records import Cohort, Plan, Variant
from pgperf.runner.cpu.cgroups import MOUNTS, PROC, groups_of
from pgperf.runner.plan import sharing

MIB = 1 << 20
#: The share of the free memory that the clients may take.
MEMORY_SHARE = 0.5
#: What every client may take for its operations, however many there are.
LEAST_BYTES = 16 * MIB
#: Each further worker of a client: its thread's stack, as far as it is used, and its connection.
WORKER_MIB = 1
#: Limit and usage of a group, and the part of the usage that the kernel can drop; v2, then v1.
_GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


@dataclass(frozen=True)
class RunMemory:
    """Memory in bytes: free when the run starts, and allowed to its clients together.

    `is_set`: the setting RUN_MEMORY_MB sets what is allowed, and not the free memory.
    """

    free_bytes: int
    allowed_bytes: int
    is_set: bool = False

    @classmethod
    def now(cls, most_mb: int = 0) -> Self:
        """From the memory that is free now. `most_mb`: PGPERF['RUN_MEMORY_MB']."""
        free = free_bytes()
        half = int(free * MEMORY_SHARE)
        if not most_mb:
            return cls(free, half)
        return cls(free, min(free, most_mb * MIB), is_set=most_mb * MIB <= free)

    @property
    def rule(self) -> str:
        """Where the number comes from, for messages."""
        return "PGPERF['RUN_MEMORY_MB']" if self.is_set else f"{self.free_bytes // MIB} MiB are free"

    def client_bytes(self, plan: Plan) -> int:
        """What each client may take for its operations, beyond what it takes to start."""
        return min(self.share_of(_here(cohort)) for cohort in plan.cohorts)

    def share_of(self, variants: Sequence[Variant]) -> int:
        """The same for the clients of variants that have processes of their own."""
        clients = sum(variant.clients for variant in variants)
        room = self.allowed_bytes - bytes_of(variants)
        return max(LEAST_BYTES, room // clients if clients else room)

    def to_json(self, client_bytes: int, unlimited: Iterable[str]) -> dict[str, Any]:
        """For a run's environment. `unlimited`: what the kernel does not enforce."""
        return {
            "free_bytes": self.free_bytes,
            "allowed_bytes": self.allowed_bytes,
            "client_bytes": client_bytes,
            "unlimited": sorted(unlimited),
        }


def start_bytes(cohort: Cohort) -> int:
    """The predicted memory of a cohort's clients on this machine once they are connected."""
    return bytes_of(_here(cohort))


def bytes_of(variants: Iterable[Variant]) -> int:
    """The same of variants that have processes of their own."""
    return sum(variant.processes * _start_mib(variant) * MIB for variant in variants)


def _start_mib(variant: Variant) -> int:
    return LAYERS[variant.layer].megabytes + (variant.workers - 1) * WORKER_MIB


def owners(cohort: Cohort) -> Sequence[Variant]:
    """Variants with client processes of their own."""
    return list(sharing(cohort.variants))


def _here(cohort: Cohort) -> list[Variant]:
    """Those whose clients are not on load hosts."""
    return [variant for variant in owners(cohort) if not variant.hosts]


def free_bytes() -> int:
    """The memory that new processes of this one's control group can take."""
    return max(0, min([int(psutil.virtual_memory().available), *_group_room()]))


def _group_room(mounts: Path = MOUNTS, proc: Path = PROC) -> Iterator[int]:
    """What each control group of this process still allows; nothing where none has a limit."""
    for group in groups_of(os.getpid(), mounts, proc, "memory"):
        for directory in (group, *group.parents):
            for limit, usage, droppable in _GROUP_FILES:
                most, used = _number(directory / limit), _number(directory / usage)
                if most is not None and used is not None:
                    yield most - used + _stat(directory / "memory.stat", droppable)


def _number(path: Path) -> int | None:
    """The number in a file; None if there is none, as in a group without a limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _stat(path: Path, name: str) -> int:
    try:
        stats = dict(line.split() for line in path.read_text().splitlines())
        return int(stats.get(name, 0))
    except (OSError, ValueError):
        return 0
