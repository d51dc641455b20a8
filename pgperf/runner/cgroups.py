"""Control groups: what the kernel adds up for all processes in one, for those that ended, too."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pgperf.runner import cpu

MOUNTS, PROC = Path("/proc/self/mounts"), Path("/proc")
#: Where processes' time is added up: the kind of file system, and the controller that does it in version 1.
_ACCOUNTS = (("cgroup", "cpuacct"), ("cgroup2", ""))

#: Busy nanoseconds so far; None where they cannot be read.
Busy = Callable[[], int | None]


def groups_of(pid: int, mounts: Path = MOUNTS, proc: Path = PROC) -> Iterator[Path]:
    """The groups that count a process's time, of version 1 first, as far as they are mounted here."""
    try:
        lines = [line.split(":", 2) for line in cpu.read_text(f"{proc}/{pid}/cgroup").splitlines()]
    except OSError:
        return
    for kind, controller in _ACCOUNTS:
        paths = [path for _, names, path in lines if controller in names.split(",")]
        for directory, mounted_kind, options in mounted(mounts):
            if mounted_kind == kind and (not controller or controller in options):
                yield from (directory / path.lstrip("/") for path in paths)


def group_ns(directory: Path) -> Busy:
    """Reads the time that one group's processes had so far, those that ended included; of either version."""
    if (directory / "cpuacct.usage").exists():
        return partial(_number, f"{directory}/cpuacct.usage")
    return partial(usage_ns, f"{directory}/cpu.stat")


def usage_ns(path: str) -> int | None:
    """usage_usec of a cpu.stat, in ns."""
    try:
        name, microseconds = cpu.read_text(path).split(maxsplit=2)[:2]
        return int(microseconds) * 1000 if name == "usage_usec" else None
    except (OSError, ValueError):
        return None


def members(directory: Path) -> set[int]:
    """The processes in a group. Raises OSError."""
    return {int(line) for line in (directory / "cgroup.procs").read_text().split()}


def mounted(mounts: Path = MOUNTS) -> Iterator[tuple[Path, str, list[str]]]:
    """Directory, kind and options of each file system that is mounted."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 3:
            yield Path(fields[1]), fields[2], fields[3].split(",")


def _number(path: str) -> int | None:
    try:
        return int(cpu.read_text(path))
    except (OSError, ValueError):
        return None
