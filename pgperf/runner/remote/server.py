"""A server on another host: the request to its agent, and the CPU time of slices from the agent's
samples.

The caller provides the agent (`Agent`). Without one, or if it fails, the CPU time of the server is
unknown and the run continues.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from pgperf.core.answers import ADDRESS
from pgperf.core.records import SliceRecord
from pgperf.runner.cpu import top
from pgperf.runner.remote.counters import (
    AUXILIARIES,
    HOST,
    LOAD_PARTS,
    TOP,
    CounterInterval,
    CounterSamples,
    growth,
    run_column,
    wait_column,
)

Address = tuple[str, int]
Row = Sequence[str | None]


@dataclass(frozen=True)
class WatchRequest:
    """The processes to sample until the next request.

    `sessions`: all connections of the server, as rows of `processes.backends` without names.
    `backends`: the pids of pgperf's connections. `poolers`: the addresses of the poolers on the
    routes; the agent checks whether they are on its machine.
    """

    sessions: Sequence[Row]
    backends: Sequence[int]
    poolers: Sequence[Address] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "sessions": [list(row) for row in self.sessions],
            "backends": list(self.backends),
            "poolers": [[host, port] for host, port in self.poolers],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError unless `data` is the output of `to_json`."""
        try:
            return cls(
                [_row(row) for row in data["sessions"]],
                [_pid(pid) for pid in data["backends"]],
                [(str(host), int(port)) for host, port in data["poolers"]],
            )
        except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
            raise ValueError("a watch request has sessions, backends and poolers") from error


def _row(row: Sequence[str | None]) -> Row:
    pid, name, port, born_s, address = row
    _pid(int(pid or 0))
    if not isinstance(name, str | None) or not -1 <= int(port or 0) <= 65_535:
        raise ValueError("a session has a name and a port")
    if address is not None:
        ADDRESS.read(str(address))
    if not math.isfinite(float(born_s or 0)):
        raise ValueError("a session has a time")
    return row


def _pid(value: Any) -> int:
    """A pid, which becomes part of a path in /proc."""
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError("a pid is a whole number")
    return value


@dataclass(frozen=True)
class RemotePooler:
    """A pooler on the server's host: its pid, and the backends that it is connected to."""

    pid: int
    backends: Sequence[int] = ()


@dataclass(frozen=True)
class RemoteProcess:
    """A process's name, and its memory at the end."""

    name: str
    rss_bytes: int


@dataclass(frozen=True)
class AgentSamples:
    """An agent's samples since the request.

    Their times are of this machine's clock, to within `error_ns`.
    """

    samples: CounterSamples
    error_ns: int
    poolers: Mapping[Address, RemotePooler] = field(default_factory=dict)  # only those on the agent's machine
    cpus: int = 0
    processes: Mapping[int, RemoteProcess] = field(default_factory=dict)


class Agent(Protocol):
    """Raises nothing. If the agent fails, `facts` says why and there are no samples."""

    def ask(self) -> None:
        """Call the agent, because the server is not on this machine. Returns at once."""

    def watch(self, request: WatchRequest) -> None:
        """Returns when the agent samples, or when it is clear that it will not."""

    def hand_over(self) -> AgentSamples | None:
        """The samples since the request; None if there are none.

        The agent stops until the next request.
        """

    def facts(self) -> dict[str, Any]:
        """The facts about the server's host for the run's environment."""


@dataclass(frozen=True)
class RemoteProcesses:
    """The processes of a variant on the server's host: its backends, and the address of its pooler
    if it has one.

    `shared`: the pooler may use any of its backends, so they are known only if the pooler is
    visible.
    """

    backends: Sequence[int] = ()
    pooler: Address | None = None
    shared: bool = False

    def known_backends(self, reported: AgentSamples) -> list[int]:
        """The backends; none if they are not known."""
        if not self.shared:
            return list(self.backends)
        pooler = reported.poolers.get(self.pooler) if self.pooler else None
        return sorted({*self.backends, *pooler.backends}) if pooler else []


@dataclass(frozen=True)
class VariantSlices:
    """The slices of one variant in one block, and the end of each by this machine's clock."""

    processes: RemoteProcesses
    records: Sequence[SliceRecord]
    ends_ns: Sequence[int]


@dataclass(frozen=True)
class CompletedSlices:
    """The slices with the CPU times from the agent.

    `account`: the CPU time of the server's host, ns, over the slices that it covers in full; its
    `roles` has the time of each role whose processes are on that host.
    """

    records: list[SliceRecord]
    account: dict[str, Any]


def complete_slices(variants: Sequence[VariantSlices], reported: AgentSamples) -> list[CompletedSlices]:
    """Add the CPU time of the server, and of its pooler if it is there.

    `variants`: all those of one block.
    """
    timed_slices = [
        _TimedSlice(at, slices.processes, record, end_ns)
        for at, slices in enumerate(variants)
        for record, end_ns in zip(slices.records, slices.ends_ns, strict=True)
    ]
    timed_slices.sort(key=lambda timed: timed.record.started_ns)
    columns, host = dict(_columns(timed_slices, reported)), dict(_host_columns(timed_slices, reported))
    found = [CompletedSlices([], {}) for _ in variants]
    for at, timed in enumerate(timed_slices):
        found[timed.variant].records.append(replace(timed.record, **_cpu_times(timed, columns, at, reported)))
    for number, one in enumerate(found):
        own = [at for at, timed in enumerate(timed_slices) if timed.variant == number]
        used = [{name: host[name][at] for name in _ACCOUNT} for at in own]
        one.account.update(_account([timed_slices[at] for at in own], one.records, used, reported))
    return found


@dataclass(frozen=True)
class _TimedSlice:
    """A slice, and the index of its variant."""

    variant: int
    processes: RemoteProcesses
    record: SliceRecord
    end_ns: int

    def over(self, names: Iterable[str]) -> CounterInterval:
        return CounterInterval(self.record.started_ns, self.end_ns, frozenset(names))


Columns = Mapping[str, Sequence[int | None]]
HostRows = Sequence[Mapping[str, int | None]]
_ACCOUNT = ("busy", "iowait", "steal")


def _cpu_times(timed: _TimedSlice, columns: Columns, at: int, reported: AgentSamples) -> dict[str, Any]:
    there = timed.processes.pooler in reported.poolers
    return {name: values[at] for name, values in columns.items() if there or not name.startswith("pooler")}


def _account(
    own: Sequence[_TimedSlice], records: Sequence[SliceRecord], host: HostRows, reported: AgentSamples
) -> dict[str, Any]:
    pooled = any(timed.processes.pooler in reported.poolers for timed in own)
    roles = {
        "server": "server_ns",
        "auxiliaries": "auxiliary_ns",
        **({"pooler": "pooler_ns"} if pooled else {}),
    }
    rows = [
        {**used, **{role: getattr(record, name) for role, name in roles.items()}}
        for record, used in zip(records, host, strict=True)
    ]
    whole = [at for at, row in enumerate(rows) if None not in row.values()]
    return {
        "cpus": reported.cpus,
        "roles": {role: sum(rows[at][role] or 0 for at in whole) for role in roles},
        "elapsed_ns": sum(own[at].end_ns - own[at].record.started_ns for at in whole),
        **{f"{name}_ns": sum(rows[at][name] or 0 for at in whole) for name in _ACCOUNT},
    }


def _host_columns(
    timed_slices: Sequence[_TimedSlice], reported: AgentSamples
) -> Iterator[tuple[str, list[int | None]]]:
    """The machine's CPU time in each slice.

    Without a counter of busy time, it is elapsed less unused time.
    """
    found = {
        name: _steady_growth(timed_slices, reported, f"{HOST}.{name}")
        for name in ("busy", "idle", "iowait", "steal")
    }
    if set(found["busy"]) == {None}:
        unused = zip(found["idle"], found["iowait"], found["steal"], strict=True)
        found["busy"] = [
            _busy(timed, reported, parts) for timed, parts in zip(timed_slices, unused, strict=True)
        ]
    yield from ((name, found[name]) for name in _ACCOUNT)


def _busy(timed: _TimedSlice, reported: AgentSamples, parts: Iterable[int | None]) -> int | None:
    unused = _sum_of_some(parts)
    return None if unused is None else reported.cpus * (timed.end_ns - timed.record.started_ns) - unused


def _columns(
    timed_slices: Sequence[_TimedSlice], reported: AgentSamples
) -> Iterator[tuple[str, list[int | None]]]:
    """Fields of a record, with the value of each slice."""
    backends = [timed.processes.known_backends(reported) for timed in timed_slices]
    there = [reported.poolers.get(timed.processes.pooler or ("", 0)) for timed in timed_slices]
    poolers = [[pooler.pid] if pooler else [] for pooler in there]
    yield "server_ns", _growth(timed_slices, reported, [map(run_column, pids) for pids in backends])
    yield "server_wait_ns", _growth(timed_slices, reported, [map(wait_column, pids) for pids in backends])
    yield "server_busiest_ns", _busiest(timed_slices, backends, reported)
    yield "auxiliary_ns", _steady_growth(timed_slices, reported, AUXILIARIES)
    yield "pooler_ns", _growth(timed_slices, reported, [map(run_column, pids) for pids in poolers])
    yield "pooler_wait_ns", _growth(timed_slices, reported, [map(wait_column, pids) for pids in poolers])


def _busiest(
    timed_slices: Sequence[_TimedSlice], backends: Sequence[Sequence[int]], reported: AgentSamples
) -> list[int | None]:
    """The CPU time of the busiest backend in each slice; unknown if that of any backend is."""
    by_backend: dict[int, list[int]] = {}
    for at, pids in enumerate(backends):
        for pid in pids:
            by_backend.setdefault(pid, []).append(at)
    each: list[list[int | None]] = [[] for _ in timed_slices]
    for pid, places in by_backend.items():
        own = [timed_slices[at] for at in places]
        for at, ns in zip(places, _growth(own, reported, [[run_column(pid)]] * len(own)), strict=True):
            each[at].append(ns)
    return [_max(row) for row in each]


def _growth(
    timed_slices: Sequence[_TimedSlice], reported: AgentSamples, names: Sequence[Iterable[str]]
) -> list[int | None]:
    intervals = [timed.over(own) for timed, own in zip(timed_slices, names, strict=True)]
    return growth(reported.samples, intervals, reported.error_ns)


def _steady_growth(
    timed_slices: Sequence[_TimedSlice], reported: AgentSamples, name: str
) -> list[int | None]:
    """The growth of a column that also grows between slices."""
    return growth(
        reported.samples, [timed.over([name]) for timed in timed_slices], reported.error_ns, steady=True
    )


def _sum_of_some(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known or not known else sum(value or 0 for value in known)


def _max(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


@dataclass(frozen=True)
class DiagnosticInterval:
    """A diagnostic slice: its processes on the server's host, its edges by this machine's clock,
    its length.
    """

    processes: RemoteProcesses
    begin_ns: int
    end_ns: int
    seconds: float


def complete_top(intervals: Sequence[DiagnosticInterval], reported: AgentSamples) -> list[dict[str, Any]]:
    """The output of `top` on that host for each interval: `host`, its line, and `processes`.

    In order of time.
    """
    lines = [_line(intervals, at, reported) for at in range(len(intervals))]
    return [
        {"host": line, "processes": _rows(interval, reported)}
        for interval, line in zip(intervals, lines, strict=True)
    ]


def _line(
    intervals: Sequence[DiagnosticInterval], at: int, reported: AgentSamples
) -> dict[str, float | None]:
    ticks = {name: _during(intervals, f"{TOP}.{name}", reported)[at] for name in top.HOST}
    whole = _sum_of_some(ticks.values())
    shares = {name: 100 * (each or 0) / whole if whole else None for name, each in ticks.items()}
    loads = {name: reported.samples.at(f"{TOP}.{name}", intervals[at].end_ns) for name in top.LOADS}
    return shares | {name: None if load is None else load / LOAD_PARTS for name, load in loads.items()}


def _during(intervals: Sequence[DiagnosticInterval], name: str, reported: AgentSamples) -> list[int | None]:
    columns = frozenset({name})
    counted = [CounterInterval(each.begin_ns, each.end_ns, columns) for each in intervals]
    return growth(reported.samples, counted, reported.error_ns, steady=True)


def _rows(interval: DiagnosticInterval, reported: AgentSamples) -> list[dict[str, Any]]:
    pooler = reported.poolers.get(interval.processes.pooler) if interval.processes.pooler else None
    roles = [("pooler", pooler.pid)] if pooler else []
    roles += [("server", pid) for pid in interval.processes.known_backends(reported)]
    return [
        _process(role, pid, interval, reported)
        for role, pid in roles
        if run_column(pid) in reported.samples.columns
    ]


def _process(role: str, pid: int, interval: DiagnosticInterval, reported: AgentSamples) -> dict[str, Any]:
    """A row as in `cpu.top`; unknown values are null."""
    (used_ns,) = _during([interval], run_column(pid), reported)
    so_far_ns, process = reported.samples.at(run_column(pid), interval.end_ns), reported.processes.get(pid)
    known = used_ns is not None and interval.seconds > 0
    return {
        "role": role,
        "pid": pid,
        "name": process.name if process else None,
        "user": None,  # an agent does not say
        "cpu_percent": 100 * (used_ns or 0) / 1e9 / interval.seconds if known else None,
        "rss_bytes": process.rss_bytes if process else None,
        "cpu_s": None if so_far_ns is None else so_far_ns / 1e9,
    }
