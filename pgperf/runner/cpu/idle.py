"""Keeps the CPUs out of idle states while a run measures.

A client that waits for an answer leaves its CPU idle, and so does a server that waits for a query.
To leave an idle state takes from a few to tens of microseconds, which is more than some layers
cost. On a virtual machine it also depends on the other guests of the host. Linux keeps the CPUs
awake for as long as a process holds its PM QoS device open.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

#: Linux, Documentation/power/pm_qos_interface: the request holds for as long as the file is open.
DEVICE = Path("/dev/cpu_dma_latency")
_NO_LATENCY = bytes(4)  # an int32 of microseconds


@dataclass(frozen=True)
class IdleState:
    """The policy in effect; `note` says why it is not the requested one."""

    idle: str
    note: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def refusal(device: Path = DEVICE) -> str:
    """Why this process may not keep the CPUs awake, "" if it may."""
    try:
        device.open("r+b", buffering=0).close()
    except FileNotFoundError:
        return f"this system has no {device}"
    except OSError:
        return f"{device} may not be written by this process"
    return ""


@contextmanager
def keep_awake(wish: str, device: Path = DEVICE) -> Iterator[IdleState]:
    """Keep the CPUs awake until the context ends, if `wish` is "awake" and the system permits it.

    The kernel releases them if the process ends first.
    """
    reason = refusal(device) if wish == "awake" else ""
    if reason:
        yield IdleState("system", f"awake not possible: {reason}")
    elif wish == "awake":
        with device.open("r+b", buffering=0) as request:
            request.write(_NO_LATENCY)
            yield IdleState("awake")
    else:
        yield IdleState("system")
