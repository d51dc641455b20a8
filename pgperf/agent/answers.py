"""An agent's answers, checked: a row in the site's database may be forged.

Each function raises AgentFailed, which names the field, unless the answer is one that the agent of
this version gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgperf.core.exceptions import AgentFailed
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runner.remote.server import Address, RemotePooler, RemoteProcess

_MOST = 2**53
_MOST_ITEMS = 10_000
_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class Watching:
    """The answer to "watch": the pids that the agent does not see, and its host."""

    missing: list[int]
    poolers: dict[Address, RemotePooler]
    kernel: str
    cpus: int
    clock: ClockOffset


@dataclass(frozen=True)
class HandedOver:
    """The answer to "hand over" without its samples.

    `share`: the CPU time that the agent used, in CPUs.
    """

    share: float
    processes: dict[int, RemoteProcess]
    clock: ClockOffset


def watching(data: Any) -> Watching:
    host = _part(data, "host", dict)
    return Watching(
        missing=_numbers(_part(data, "missing", list), "missing"),
        poolers=dict(_pooler(item) for item in _part(data, "poolers", list)),
        kernel=_text(host.get("kernel"), "kernel"),
        cpus=_number(host.get("processors"), "processors"),
        clock=_clock(data),
    )


def handed_over(data: Any) -> HandedOver:
    share = _part(data, "share", (int, float))
    if not 0 <= share <= _MOST:
        raise _unfit("share")
    return HandedOver(
        float(share), dict(_process(item) for item in _part(data, "processes", list)), _clock(data)
    )


def _pooler(item: Any) -> tuple[Address, RemotePooler]:
    if not isinstance(item, list) or len(item) != 4 or not isinstance(item[3], list):
        raise _unfit("poolers")
    host, port, pid, backends = item
    address = _text(host, "poolers"), _number(port, "poolers")
    return address, RemotePooler(_number(pid, "poolers"), _numbers(backends, "poolers"))


def _process(item: Any) -> tuple[int, RemoteProcess]:
    if not isinstance(item, list) or len(item) != 3:
        raise _unfit("processes")
    pid, name, rss_bytes = item
    process = RemoteProcess(_text(name, "processes"), _number(rss_bytes, "processes"))
    return _number(pid, "processes"), process


def _clock(data: Any) -> ClockOffset:
    try:
        return ClockOffset.checked(_part(data, "clock", dict))
    except ValueError:
        raise _unfit("clock") from None


def _part(data: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    value = data.get(name) if isinstance(data, Mapping) else None
    many = isinstance(value, list) and len(value) > _MOST_ITEMS
    if not isinstance(value, kind) or isinstance(value, bool) or many:
        raise _unfit(name)
    return value


def _numbers(values: list[Any], name: str) -> list[int]:
    if len(values) > _MOST_ITEMS:
        raise _unfit(name)
    return [_number(value, name) for value in values]


def _number(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise _unfit(name)
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        raise _unfit(name)
    return value


def _unfit(name: str) -> AgentFailed:
    return AgentFailed(f"the agent's answer has no valid {name}: is it of the same version of pgperf?")
