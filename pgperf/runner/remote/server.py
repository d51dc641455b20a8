"""A server on another host: the request to its agent, and the CPU time of slices from the agent's samples.

The caller provides the agent (`Agent`). Without one, or if it fails, the CPU time of the server is
unknown and the run continues.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

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
    """What to read until further notice.

    `sessions`: all connections of the server, rows of `processes.backends` without names. `backends`: the processes of
    ours among them. `poolers`: addresses of the poolers on our routes; the agent intervals whether they are its own.
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
        """Raises ValueError for anything but what `to_json` gives."""
        try:
            return cls(
                [_row(row) for row in data["sessions"]],
                [int(pid) for pid in data["backends"]],
                [(str(host), int(port)) for host, port in data["poolers"]],
            )
        except (KeyError, TypeError) as error:
            raise ValueError("an order has sessions, backends and poolers") from error


def _row(row: Sequence[str | None]) -> Row:
    pid, _name, port, born_s = row
    for number in (pid, port or 0, born_s or 0):
        float(number)  # type: ignore[arg-type]
    return row


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
    """An agent's samples since the request. Their times are of this machine's clock, to within `error_ns`."""

    samples: CounterSamples
    error_ns: int
    poolers: Mapping[Address, RemotePooler] = field(default_factory=dict)  # those that are there
    cpus: int = 0
    processes: Mapping[int, RemoteProcess] = field(default_factory=dict)


class Agent(Protocol):
    """Raises nothing. If the agent fails, `facts` says why and there are no samples."""

    def ask(self) -> None:
        """Call the agent, because the server is not on this machine. Returns at once."""

    def watch(self, order: WatchRequest) -> None:
        """Returns when the agent samples, or when it is clear that it will not."""

    def hand_over(self) -> AgentSamples | None:
        """The samples since the request; None if there are none. The agent stops until the next request."""

    def facts(self) -> dict[str, Any]:
        """The facts about the server's host for the run's environment."""


@dataclass(frozen=True)
class RemoteProcesses:
    """The processes of a variant on the server's host: its backends, and the address of its pooler if it has one.

    `shared`: the pooler may use any of its backends, so they are known only if the pooler is visible.
    """

    backends: Sequence[int] = ()
    pooler: Address | None = None
    shared: bool = False

    def seen_backends(self, seen: AgentSamples) -> list[int]:
        """The backends; none if they are not known."""
        if not self.shared:
            return list(self.backends)
        pooler = seen.poolers.get(self.pooler) if self.pooler else None
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


def complete_slices(variants: Sequence[VariantSlices], seen: AgentSamples) -> list[CompletedSlices]:
    """What each slice took of the server and, if it is there, its pooler. The variants are those of one whole block."""
    pieces = [
        _TimedSlice(at, slices.processes, record, end_ns)
        for at, slices in enumerate(variants)
        for record, end_ns in zip(slices.records, slices.ends_ns, strict=True)
    ]
    pieces.sort(key=lambda piece: piece.record.started_ns)
    columns, host = dict(_columns(pieces, seen)), dict(_host_columns(pieces, seen))
    found = [CompletedSlices([], {}) for _ in variants]
    for at, piece in enumerate(pieces):
        found[piece.slices].records.append(replace(piece.record, **_told(piece, columns, at, seen)))
    for number, one in enumerate(found):
        own = [at for at, piece in enumerate(pieces) if piece.slices == number]
        used = [{name: host[name][at] for name in _ACCOUNT} for at in own]
        one.account.update(_account([pieces[at] for at in own], one.records, used, seen))
    return found


@dataclass(frozen=True)
class _TimedSlice:
    """A slice, and the index of its variant."""

    slices: int
    processes: RemoteProcesses
    record: SliceRecord
    end_ns: int

    def over(self, names: Iterable[str]) -> CounterInterval:
        return CounterInterval(self.record.started_ns, self.end_ns, frozenset(names))


Columns = Mapping[str, Sequence[int | None]]
HostRows = Sequence[Mapping[str, int | None]]
_ACCOUNT = ("busy", "iowait", "steal")


def _told(piece: _TimedSlice, columns: Columns, at: int, seen: AgentSamples) -> dict[str, Any]:
    there = piece.processes.pooler in seen.poolers
    return {name: values[at] for name, values in columns.items() if there or not name.startswith("pooler")}


def _account(
    own: Sequence[_TimedSlice], records: Sequence[SliceRecord], host: HostRows, seen: AgentSamples
) -> dict[str, Any]:
    pooled = any(piece.processes.pooler in seen.poolers for piece in own)
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
        "cpus": seen.cpus,
        "roles": {role: sum(rows[at][role] or 0 for at in whole) for role in roles},
        "elapsed_ns": sum(own[at].end_ns - own[at].record.started_ns for at in whole),
        **{f"{name}_ns": sum(rows[at][name] or 0 for at in whole) for name in _ACCOUNT},
    }


def _host_columns(
    pieces: Sequence[_TimedSlice], seen: AgentSamples
) -> Iterator[tuple[str, list[int | None]]]:
    """The machine's CPU time in each slice. Without a counter of busy time, it is elapsed less unused time."""
    found = {name: _passed(pieces, seen, f"{HOST}.{name}") for name in ("busy", "idle", "iowait", "steal")}
    if set(found["busy"]) == {None}:
        away = zip(found["idle"], found["iowait"], found["steal"], strict=True)
        found["busy"] = [_left(piece, seen, each) for piece, each in zip(pieces, away, strict=True)]
    yield from ((name, found[name]) for name in _ACCOUNT)


def _left(piece: _TimedSlice, seen: AgentSamples, away: Iterable[int | None]) -> int | None:
    gone = _total(away)
    return None if gone is None else seen.cpus * (piece.end_ns - piece.record.started_ns) - gone


def _columns(pieces: Sequence[_TimedSlice], seen: AgentSamples) -> Iterator[tuple[str, list[int | None]]]:
    """Fields of a record, with the value of each slice."""
    backends = [piece.processes.seen_backends(seen) for piece in pieces]
    there = [seen.poolers.get(piece.processes.pooler or ("", 0)) for piece in pieces]
    poolers = [[pooler.pid] if pooler else [] for pooler in there]
    yield "server_ns", _grown(pieces, seen, [map(run_column, pids) for pids in backends])
    yield "server_wait_ns", _grown(pieces, seen, [map(wait_column, pids) for pids in backends])
    yield "server_busiest_ns", _most(pieces, backends, seen)
    yield "auxiliary_ns", _passed(pieces, seen, AUXILIARIES)
    yield "pooler_ns", _grown(pieces, seen, [map(run_column, pids) for pids in poolers])
    yield "pooler_wait_ns", _grown(pieces, seen, [map(wait_column, pids) for pids in poolers])


def _most(
    pieces: Sequence[_TimedSlice], backends: Sequence[Sequence[int]], seen: AgentSamples
) -> list[int | None]:
    """The CPU time of the busiest backend in each slice; unknown if that of any backend is."""
    by_backend: dict[int, list[int]] = {}
    for at, pids in enumerate(backends):
        for pid in pids:
            by_backend.setdefault(pid, []).append(at)
    each: list[list[int | None]] = [[] for _ in pieces]
    for pid, places in by_backend.items():
        own = [pieces[at] for at in places]
        for at, ns in zip(places, _grown(own, seen, [[run_column(pid)]] * len(own)), strict=True):
            each[at].append(ns)
    return [_max(row) for row in each]


def _grown(
    pieces: Sequence[_TimedSlice], seen: AgentSamples, names: Sequence[Iterable[str]]
) -> list[int | None]:
    intervals = [piece.over(own) for piece, own in zip(pieces, names, strict=True)]
    return growth(seen.samples, intervals, seen.error_ns)


def _passed(pieces: Sequence[_TimedSlice], seen: AgentSamples, name: str) -> list[int | None]:
    """The growth of a column that grows between slices, too."""
    return growth(seen.samples, [piece.over([name]) for piece in pieces], seen.error_ns, steady=True)


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known or not known else sum(value or 0 for value in known)


def _max(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


@dataclass(frozen=True)
class DiagnosticInterval:
    """A diagnostic slice: its processes on the server's host, its edges by this machine's clock, its length."""

    processes: RemoteProcesses
    begin_ns: int
    end_ns: int
    seconds: float


def complete_top(intervals: Sequence[DiagnosticInterval], seen: AgentSamples) -> list[dict[str, Any]]:
    """What `top` would have shown over there in each: `host`, its line, and `processes`. The intervals are in order."""
    lines = [_line(intervals, at, seen) for at in range(len(intervals))]
    return [
        {"host": line, "processes": _rows(interval, seen)}
        for interval, line in zip(intervals, lines, strict=True)
    ]


def _line(intervals: Sequence[DiagnosticInterval], at: int, seen: AgentSamples) -> dict[str, float | None]:
    ticks = {name: _during(intervals, f"{TOP}.{name}", seen)[at] for name in top.HOST}
    whole = _total(ticks.values())
    shares = {name: 100 * (each or 0) / whole if whole else None for name, each in ticks.items()}
    loads = {name: seen.samples.at(f"{TOP}.{name}", intervals[at].end_ns) for name in top.LOADS}
    return shares | {name: None if load is None else load / LOAD_PARTS for name, load in loads.items()}


def _during(intervals: Sequence[DiagnosticInterval], name: str, seen: AgentSamples) -> list[int | None]:
    columns = frozenset({name})
    counted = [CounterInterval(each.begin_ns, each.end_ns, columns) for each in intervals]
    return growth(seen.samples, counted, seen.error_ns, steady=True)


def _rows(interval: DiagnosticInterval, seen: AgentSamples) -> list[dict[str, Any]]:
    pooler = seen.poolers.get(interval.processes.pooler) if interval.processes.pooler else None
    roles = [("pooler", pooler.pid)] if pooler else []
    roles += [("server", pid) for pid in interval.processes.seen_backends(seen)]
    return [
        _process(role, pid, interval, seen) for role, pid in roles if run_column(pid) in seen.samples.columns
    ]


def _process(role: str, pid: int, interval: DiagnosticInterval, seen: AgentSamples) -> dict[str, Any]:
    """A row as in `cpu.top`; unknown values are null."""
    (used_ns,) = _during([interval], run_column(pid), seen)
    so_far_ns, told = seen.samples.at(run_column(pid), interval.end_ns), seen.processes.get(pid)
    known = used_ns is not None and interval.seconds > 0
    return {
        "role": role,
        "pid": pid,
        "name": told.name if told else None,
        "cpu_percent": 100 * (used_ns or 0) / 1e9 / interval.seconds if known else None,
        "rss_bytes": told.rss_bytes if told else None,
        "cpu_s": None if so_far_ns is None else so_far_ns / 1e9,
    }
