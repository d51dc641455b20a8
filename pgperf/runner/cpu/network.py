"""How much a machine sends and receives, and how much its fastest interface could."""

from pathlib import Path

_NET, _CLASS = Path("/proc/net/dev"), Path("/sys/class/net")
#: The columns of bytes received and sent, after the name.
_RECEIVED, _SENT = 0, 8
#: Reaches this machine only.
_LOOPBACK = "lo"


def bytes_so_far(net: Path = _NET) -> int | None:
    """The bytes of the direction that has more, over all interfaces to others; None if unknown."""
    try:
        rows = [line.partition(":") for line in net.read_text().splitlines() if ":" in line]
        columns = [row.split() for name, _colon, row in rows if name.strip() != _LOOPBACK]
        received, sent = (sum(int(each[at]) for each in columns) for at in (_RECEIVED, _SENT))
    except (OSError, ValueError, IndexError):
        return None
    return max(received, sent)


def speed_mbit(classes: Path = _CLASS) -> int | None:
    """Of the fastest interface to others, in Mbit/s; None if the system does not tell."""
    found = [_speed(each) for each in sorted(classes.glob("*/speed")) if each.parent.name != _LOOPBACK]
    return max((speed for speed in found if speed > 0), default=None)


def _speed(path: Path) -> int:
    """-1 and an error both mean that it is not known."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
