"""The processes of a variant's diagnostic slice, as `top` shows them. Pure.

The runner measures them (`pgperf.runner.cpu.top`). None is not known, never 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from pgperf.core.records import VariantBlock

Json = Mapping[str, Any]
#: Other programs that are kept of a variant.
_MOST_PROGRAMS = 5


@dataclass(frozen=True)
class HostLine:
    """The line of a host: percentages of the time of all CPUs, and the load averages."""

    us: float | None = None
    ni: float | None = None
    sy: float | None = None
    id: float | None = None
    wa: float | None = None
    hi: float | None = None
    si: float | None = None
    st: float | None = None
    load1: float | None = None
    load5: float | None = None
    load15: float | None = None

    @classmethod
    def from_json(cls, stored: Json | None) -> Self:
        return cls(**{name: (stored or {}).get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Process:
    """One process: `cpu_percent` of one CPU during the slice; memory and `cpu_s`, the CPU time
    since it started, at the end.
    """

    role: str | None = None
    pid: int | None = None
    name: str | None = None
    user: str | None = None
    cpu_percent: float | None = None
    rss_bytes: int | None = None
    cpu_s: float | None = None

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        return cls(**{name: stored.get(name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Top:
    """The lines of the load host and of the server's, where that is another one, and processes.
    `disturbed_by`: the other processes of a disturbed slice that this one replaced.
    """

    seconds: float | None
    host: HostLine
    processes: tuple[Process, ...]
    server_host: HostLine | None = None
    disturbed_by: tuple[Process, ...] = ()

    @classmethod
    def from_json(cls, stored: Json | None) -> Self | None:
        """None for a variant without a diagnostic slice."""
        if not stored:
            return None
        server = stored.get("server_host")
        return cls(
            seconds=stored.get("seconds"),
            host=HostLine.from_json(stored.get("host")),
            processes=tuple(map(Process.from_json, stored.get("processes") or ())),
            server_host=HostLine.from_json(server.get("host")) if server else None,
            disturbed_by=tuple(map(Process.from_json, stored.get("disturbed_by") or ())),
        )

    def to_json(self) -> dict[str, Any]:
        own = {
            "seconds": self.seconds,
            "host": asdict(self.host),
            "processes": [asdict(each) for each in self.processes],
        }
        server = {"server_host": {"host": asdict(self.server_host)}} if self.server_host else {}
        others = {"disturbed_by": [asdict(each) for each in self.disturbed_by]} if self.disturbed_by else {}
        return own | server | others


def other_programs(blocks: Iterable[VariantBlock]) -> tuple[Process, ...]:
    """The processes of no role that were busiest in the blocks, the busiest first: their mean over all
    blocks that looked. None of blocks of an earlier version.
    """
    looked = [block.cpu_account for block in blocks if "programs" in block.cpu_account]
    whole_ns = sum(each["elapsed_ns"] for each in looked)
    parts: dict[tuple[int | None, str | None], list[tuple[Process, float]]] = {}
    for each in looked:
        for process in map(Process.from_json, each["programs"]):
            share = (process.cpu_percent or 0.0) * each["elapsed_ns"] / whole_ns
            parts.setdefault((process.pid, process.name), []).append((process, share))
    means = [replace(own[0][0], cpu_percent=sum(share for _process, share in own)) for own in parts.values()]
    return tuple(sorted(means, key=lambda process: -(process.cpu_percent or 0.0))[:_MOST_PROGRAMS])


def top(blocks: Iterable[VariantBlock]) -> Top | None:
    """The last diagnostic slice; None where none was run.

    A variant of several cohorts has one in each.
    """
    seen = [block.top for block in blocks if block.top]
    return Top.from_json(seen[-1]) if seen else None
