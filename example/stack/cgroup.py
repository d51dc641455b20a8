"""A control group for the server alone.

In it the kernel adds up the CPU time of the server's short-lived processes: parallel workers, and
the backends of clients that connect for each operation. Only root may create one, or the owner of
a delegated group. Without it the stack runs the same, and pgperf shows that part as not known.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from pgperf.runner.cpu import cgroups

#: The names that `Place.servers` gives, and those of clusters.
_OWN = re.compile(r"pgperf-\d+-[0-9a-f]{12}(-cluster_[a-z]+)?")
#: A group is made some seconds before its first process enters it.
_STALE_S = 60


def create(name: str) -> Path | None:
    """A group below this process's own; None where the system does not allow that."""
    for parent in cgroups.groups_of(os.getpid()):
        directory = parent / name
        remove_stale(parent)
        with suppress(OSError):
            directory.mkdir(exist_ok=True)
            if os.access(directory / "cgroup.procs", os.W_OK) and cgroups.group_ns(directory)() is not None:
                return directory
    return None


def keep(directory: Path) -> None:
    """Make the group again, if another stack took it for stale while its server was down."""
    with suppress(OSError):
        directory.mkdir(exist_ok=True)


def remove_stale(parent: Path) -> None:
    """Remove the groups of stacks that were killed: those without a process, made a while ago."""
    with suppress(OSError):
        for directory in filter(_is_stale, parent.iterdir()):
            remove(directory)


def _is_stale(directory: Path) -> bool:
    with suppress(OSError):
        return bool(_OWN.fullmatch(directory.name)) and time.time() - directory.stat().st_mtime > _STALE_S
    return False


def remove(directory: Path) -> None:
    """Remove the group; one that still has processes stays for the next start."""
    with suppress(OSError):
        directory.rmdir()
