"""A control group for the server alone.

In it the kernel adds up the CPU time of the server's short-lived processes: parallel workers, and
the backends of clients that connect for each operation. Only root may create one, or the owner of
a delegated group. Without it the stack runs the same, and pgperf shows that part as not known.
"""

import os
from contextlib import suppress
from pathlib import Path

from pgperf.runner.cpu import cgroups


def create(name: str) -> Path | None:
    """A group below this process's own; None where the system does not allow that."""
    for parent in cgroups.groups_of(os.getpid()):
        directory = parent / name
        with suppress(OSError):
            directory.mkdir(exist_ok=True)
            if os.access(directory / "cgroup.procs", os.W_OK) and cgroups.group_ns(directory)() is not None:
                return directory
    return None


def remove(directory: Path) -> None:
    """Remove the group; one that still has processes stays for the next start."""
    with suppress(OSError):
        directory.rmdir()
