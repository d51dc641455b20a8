"""How much a machine sends and receives, and how much its fastest interface could."""

from collections.abc import Mapping
from pathlib import Path

_NET, _CLASS = Path("/proc/net/dev"), Path("/sys/class/net")
#: The columns of bytes received and sent, after the name.
_RECEIVED, _SENT = 0, 8
#: Reaches this machine only.
_LOOPBACK = "lo"


#: The bytes that each interface to others has received and sent.
Traffic = Mapping[str, tuple[int, int]]


def so_far(net: Path = _NET) -> Traffic | None:
    """Since the start of the machine; None if unknown."""
    try:
        rows = [line.partition(":") for line in net.read_text().splitlines() if ":" in line]
        columns = {name.strip(): row.split() for name, _colon, row in rows}
        return {
            name: (int(each[_RECEIVED]), int(each[_SENT]))
            for name, each in columns.items()
            if name != _LOOPBACK
        }
    except (OSError, ValueError, IndexError):
        return None


def bytes_between(before: Traffic | None, after: Traffic | None) -> int | None:
    """What the busiest interface carried in the direction that had more; None if unknown.

    Only one counts, because the same bytes pass several: a bond and its members, a network and its
    VLANs, a bridge of containers.
    """
    if before is None or after is None:
        return None
    pairs = (zip(before[name], counts, strict=True) for name, counts in after.items() if name in before)
    return max((max(0, now - then) for pair in pairs for then, now in pair), default=0)


def speed_mbit() -> int | None:
    """Of the fastest interface to others, in Mbit/s; None if the system does not tell."""
    found = [_speed(each) for each in sorted(_CLASS.glob("*/speed")) if each.parent.name != _LOOPBACK]
    return max((speed for speed in found if speed > 0), default=None)


def _speed(path: Path) -> int:
    """-1 and an error both mean that it is not known."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
