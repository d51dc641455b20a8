"""A server on another host, as a run sees it: what its agent is asked to watch, and what slices took of it.

The agent itself is for the caller to bring (`Agent`). Without one, or when it fails, what it would have seen is unknown
and the run goes on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from pgperf.records import SliceRecord
from pgperf.runner.readings import AUXILIARIES, HOST, Readings, Stretch, run_of, spent, wait_of

Address = tuple[str, int]


@dataclass(frozen=True)
class Order:
    """What to read until further notice.

    `sessions`: all processes of the server that serve a connection, with the start of each (s since the epoch) where
    the server tells it. `backends`: those among them that are ours. `poolers`: addresses of the poolers on our routes;
    the agent looks whether they are its own.
    """

    sessions: Mapping[int, float | None]
    backends: Sequence[int]
    poolers: Sequence[Address] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "sessions": [[pid, born_s] for pid, born_s in self.sessions.items()],
            "backends": list(self.backends),
            "poolers": [[host, port] for host, port in self.poolers],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError for anything but what `to_json` gives."""
        try:
            return cls(
                {int(pid): None if born is None else float(born) for pid, born in data["sessions"]},
                [int(pid) for pid in data["backends"]],
                [(str(host), int(port)) for host, port in data["poolers"]],
            )
        except (KeyError, TypeError) as error:
            raise ValueError("an order has sessions, backends and poolers") from error


@dataclass(frozen=True)
class Seen:
    """What an agent saw since it was ordered to watch. Its times are this machine's, to within `error_ns`."""

    readings: Readings
    error_ns: int
    poolers: Mapping[Address, int] = field(default_factory=dict)  # those that are there, with their process
    cpus: int = 0


class Agent(Protocol):
    """Raises nothing: when it fails, it says so in `facts` and has seen nothing."""

    def ask(self) -> None:
        """The server is not on this machine: have the agent come. Returns at once."""

    def watch(self, order: Order) -> None:
        """Returns when it reads, or when it is clear that it will not."""

    def hand_over(self) -> Seen | None:
        """What it has seen since; None when there is nothing to be had. It reads no more until it is told to."""

    def facts(self) -> dict[str, Any]:
        """What the run's environment says about the server's host."""


@dataclass(frozen=True)
class Staff:
    """Who works for a variant on the server's host: backends, and where its pooler listens if it has one."""

    backends: Sequence[int] = ()
    pooler: Address | None = None


@dataclass(frozen=True)
class Piece:
    """One slice, between `begin_ns` and `end_ns` of this machine's clock, and who worked for it over there."""

    record: SliceRecord
    end_ns: int
    staff: Staff

    def over(self, names: Iterable[str]) -> Stretch:
        return Stretch(self.record.started_ns, self.end_ns, frozenset(names))


def filled(pieces: Sequence[Piece], seen: Seen) -> list[SliceRecord]:
    """The records, in the order of the pieces, with what the agent saw of the server, and of a pooler that is there."""
    order = sorted(range(len(pieces)), key=lambda at: pieces[at].record.started_ns)
    inside = [pieces[at] for at in order]
    columns = dict(_columns(inside, seen))
    found: dict[int, SliceRecord] = {}
    for at, (index, piece) in enumerate(zip(order, inside, strict=True)):
        told: dict[str, Any] = {name: values[at] for name, values in columns.items()}
        if piece.staff.pooler not in seen.poolers:
            told = {name: value for name, value in told.items() if not name.startswith("pooler")}
        found[index] = replace(piece.record, **told)
    return [found[index] for index in range(len(pieces))]


def host_spent(pieces: Sequence[Piece], seen: Seen) -> dict[str, int | None]:
    """How the server's host spent all those slices together, ns summed over its processors; null is unknown."""
    inside = sorted(pieces, key=lambda piece: piece.record.started_ns)
    return {name: _total(_grown(inside, seen, [{f"{HOST}.{name}"}] * len(inside))) for name in _HOST}


_HOST = ("busy", "idle", "iowait", "steal")


def _columns(inside: Sequence[Piece], seen: Seen) -> Iterator[tuple[str, list[int | None]]]:
    """Field of a record -> its value for each piece."""
    backends = [list(piece.staff.backends) for piece in inside]
    poolers = [[pid] if (pid := seen.poolers.get(piece.staff.pooler or ("", 0))) else [] for piece in inside]
    yield "server_ns", _grown(inside, seen, [map(run_of, pids) for pids in backends])
    yield "server_wait_ns", _grown(inside, seen, [map(wait_of, pids) for pids in backends])
    yield "server_most_ns", _most(inside, seen)
    yield "auxiliary_ns", _grown(inside, seen, [[AUXILIARIES]] * len(inside))
    yield "pooler_ns", _grown(inside, seen, [map(run_of, pids) for pids in poolers])
    yield "pooler_wait_ns", _grown(inside, seen, [map(wait_of, pids) for pids in poolers])


def _most(inside: Sequence[Piece], seen: Seen) -> list[int | None]:
    """What the busiest backend of each piece took; unknown when one of them is."""
    by_backend: dict[int, list[int]] = {}
    for at, piece in enumerate(inside):
        for pid in piece.staff.backends:
            by_backend.setdefault(pid, []).append(at)
    each: list[list[int | None]] = [[] for _ in inside]
    for pid, places in by_backend.items():
        own = [inside[at] for at in places]
        for at, ns in zip(places, _grown(own, seen, [[run_of(pid)]] * len(own)), strict=True):
            each[at].append(ns)
    return [
        max(known) if (known := [ns for ns in row if ns is not None]) and None not in row else None
        for row in each
    ]


def _grown(inside: Sequence[Piece], seen: Seen, names: Sequence[Iterable[str]]) -> list[int | None]:
    stretches = [piece.over(own) for piece, own in zip(inside, names, strict=True)]
    return spent(seen.readings, stretches, seen.error_ns)


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known or not known else sum(value or 0 for value in known)
