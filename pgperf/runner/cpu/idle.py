"""Whether processors may fall asleep while a run measures.

A client that waits for its answer leaves its processor idle, and so does a server that waits for a query. Waking one
takes from a few to tens of microseconds, on a virtual machine mostly the host's; it depends on who else the host
serves, and it is more than some layers cost. Linux holds processors awake for whoever keeps its PM QoS device open.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

#: Linux, Documentation/power/pm_qos_interface: the wish holds for as long as the file is open.
DEVICE = Path("/dev/cpu_dma_latency")
_NO_LATENCY = bytes(4)  # an int32 of microseconds


@dataclass(frozen=True)
class Idle:
    """What was possible; `note` says why a wish was not granted."""

    idle: str
    note: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def refusal(device: Path = DEVICE) -> str:
    """Why this process may not keep processors awake, "" if it may."""
    try:
        device.open("r+b", buffering=0).close()
    except FileNotFoundError:
        return f"this system has no {device}"
    except OSError:
        return f"{device} may not be written by this process"
    return ""


@contextmanager
def held(wish: str, device: Path = DEVICE) -> Iterator[Idle]:
    """Keep the processors awake, if that is the wish and the system lets us; they are let go when the context ends,
    and by the kernel when the process does."""
    reason = refusal(device) if wish == "awake" else ""
    if reason:
        yield Idle("system", f"awake not possible: {reason}")
    elif wish == "awake":
        with device.open("r+b", buffering=0) as request:
            request.write(_NO_LATENCY)
            yield Idle("awake")
    else:
        yield Idle("system")
