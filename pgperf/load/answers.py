"""What a load host answers, checked: a row in the site's database may be forged.

Each function raises ProtocolError, which names the field, unless the answer is one that a load host
of this version gives.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostLate, ProtocolError
from pgperf.install.environments import other_version
from pgperf.runner import host_slices
from pgperf.runner.cpu.schedstat import TicksAndSwitches
from pgperf.runner.host_slices import HostSlice
from pgperf.runner.load_accounts import HostBlock
from pgperf.runner.load_hosts import HostStart
from pgperf.runner.remote.clock_offset import ClockOffset

_MOST_NS = 2**62
_MOST_CHARACTERS = 300
_MOST_CPUS = 1 << 16
_COUNTED = ("cpus", "elapsed_ns", "ours_ns", "others_ns")


@dataclass(frozen=True)
class HostFacts:
    """A load host that is prepared."""

    machine: str
    kernel: str
    processors: int
    network_mbit: int | None = None


def begun(data: Any) -> HostFacts:
    if refusal := other_version(_text(data, "pgperf")):
        raise ProtocolError(refusal)
    processors = _number(data, "processors")
    if not 0 < processors <= _MOST_CPUS:
        raise _unfit("processors")
    speed = _number_or_none(data, "network_mbit")
    return HostFacts(_text(data, "machine"), _text(data, "kernel"), processors, speed)


def started(data: Any) -> HostStart:
    ready = _by_place(data, "ready", lambda lines: [_ready(line) for line in lines])
    op_s = _by_place(data, "op_s", _seconds)
    unlimited = _part(data, "unlimited", list)
    if ready.keys() != op_s.keys() or not all(isinstance(each, str) for each in unlimited):
        raise _unfit("ready")
    return HostStart(ready, op_s, [each[:_MOST_CHARACTERS] for each in unlimited])


def slices(data: Any, packed: bytes, asked: int) -> list[HostSlice]:
    """Raises LoadHostLate if the order came too late."""
    if isinstance(data, Mapping) and data.get("late") is True:
        raise LoadHostLate("the order came after its start")
    found = host_slices.unpack(_part(data, "slices", list), packed)
    if len(found) != asked:
        raise _unfit("slices")
    return found


def totals(data: Any, places: Set[int]) -> HostBlock:
    """What was counted; the host's own total may not be known. `places`: those of the variants whose
    clients the host has started.
    """
    counted = _part(data, "counted", dict)
    known: dict[str, Any] = {name: _number(counted, name) for name in _COUNTED}
    known["host_ns"] = _number_or_none(counted, "host_ns")
    by_place = _by_place(data, "totals", _totals)
    if not 0 < known["cpus"] <= _MOST_CPUS or by_place.keys() != places:
        raise _unfit("totals")
    return HostBlock({**known, "source": _text(counted, "source")}, by_place)


def clock(data: Any) -> ClockOffset:
    try:
        return ClockOffset.checked(_part(data, "clock", dict))
    except ValueError:
        raise _unfit("clock") from None


def _totals(data: Any) -> dict[str, Any]:
    """What was counted of the clients of a variant, null where it is not known, and how many CPUs they
    may use.
    """
    cpus = _part(data, "client_cpus", (int, float))
    if not 0 < cpus <= _MOST_CPUS:
        raise _unfit("client_cpus")
    counts = _part(data, "ticks_and_switches", dict).get("client")
    numbers = counts is None or (
        isinstance(counts, dict)
        and counts.keys() == {*TicksAndSwitches._fields}
        and all(type(each) is int and 0 <= each < _MOST_NS for each in counts.values())
    )
    if not numbers:
        raise _unfit("ticks_and_switches")
    throttled = _number_or_none(_part(data, "throttled_ns", dict), "client")
    return {
        "ticks_and_switches": {"client": counts},
        "throttled_ns": {"client": throttled},
        "client_cpus": cpus,
    }


def _by_place(data: Any, name: str, read: Callable[[Any], Any]) -> dict[int, Any]:
    """JSON has texts for keys."""
    try:
        return {int(at): read(each) for at, each in _part(data, name, dict).items()}
    except (TypeError, ValueError):
        raise _unfit(name) from None


def _ready(line: Any) -> protocol.Ready:
    found = protocol.decode(line.encode()) if isinstance(line, str) else None
    if not isinstance(found, protocol.Ready):
        raise _unfit("ready")
    return found


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < _MOST_NS:
        raise _unfit("op_s")
    return float(value)


def _part(data: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    value = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _unfit(name)
    return value


def _number(data: Any, name: str) -> int:
    value = _part(data, name, int)
    if not -_MOST_NS < value < _MOST_NS:
        raise _unfit(name)
    return int(value)


def _number_or_none(data: Mapping[str, Any], name: str) -> int | None:
    return None if data.get(name) is None else _number(data, name)


def _text(data: Any, name: str) -> str:
    value = _part(data, name, str)
    if len(value) > _MOST_CHARACTERS:
        raise _unfit(name)
    return str(value)


def _unfit(name: str) -> ProtocolError:
    return ProtocolError(f"its answer has no valid {name}: is it of the same version of pgperf?")
