"""The operations of a slice that count: those in the window, of one connection or of all together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgperf.core import protocol
from pgperf.runner import open_loop
from pgperf.runner.slice_length import is_late

Durations = NDArray[np.uint64]


class Recorded(NamedTuple):
    """A slice as the clients recorded it, in client order. Durations are ns; `phases` has a row for
    each of a reply's phases, with that part of each duration, and no row where there are none.
    """

    replies: list[protocol.SliceReply]
    durations: list[Durations]
    phases: list[Durations]


@dataclass(frozen=True)
class SliceWindow:
    """The operations that count: those in the own window of one connection, or those of several that
    ended in the common window.
    """

    ops: int
    length_ns: int
    durations: Durations
    disturbed: str = ""
    phases: Durations | None = None  # a row for each of the names; None: there are none
    #: From the common start of several connections until all of them had ended their lead-in.
    led_in_ns: int = 0
    phase_names: tuple[str, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)  # failed HTTP requests, lead-in included
    lengths: tuple[int, ...] = ()  # least and greatest length of their bodies, bytes; empty: none
    #: Of an open loop: `durations` and `phases` are of the operations that were due in the window,
    #: `served` are the service times of the `ops` that ended in it, and `waited` are those that were
    #: due in it and had not begun, with the time that they had waited at its end.
    scheduled: open_loop.Scheduled | None = None
    served: Durations | None = None
    waited: Durations = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    @classmethod
    def of(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations] = (),
    ) -> "SliceWindow":
        found = cls._recorded(request, replies, durations, phases)
        lengths = [length for reply in replies for length in reply.lengths]
        return replace(
            found,
            phase_names=tuple(replies[0].phases),
            errors=sum((Counter(reply.errors) for reply in replies), Counter()),
            lengths=(min(lengths), max(lengths)) if lengths else (),
        )

    @classmethod
    def _recorded(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations],
    ) -> "SliceWindow":
        disturbed = _disturbed(replies)
        if request.rate:
            return cls._of_open_loop(request, replies, durations, phases, disturbed)
        if replies[0].window_ns:
            return cls(replies[0].ops, replies[0].window_ns, durations[0], disturbed, _joined(phases))
        chains = [chain for pair in zip(replies, durations, strict=True) for chain in chains_of(*pair)]
        led_in_ns = max(chain.first_ns for chain in chains) - request.start_ns if request.start_ns else 0
        alone = len(chains) == 1 and not request.start_ns
        if alone or not request.window_ns:
            ops, length_ns = sum(r.ops for r in replies), _mean_length_ns(chains)
            return cls(ops, length_ns, np.concatenate(durations), disturbed, _joined(phases), led_in_ns)
        opens = request.start_ns + request.lead_in_ns
        closes = opens + request.window_ns
        if is_late(request, led_in_ns):
            disturbed = disturbed or "a client began after the common window had opened"
        # The first operation of each is not recorded: nothing counts until all have ended theirs.
        led_in = request.start_ns + led_in_ns
        if all(chain.ended_between(led_in, closes).any() for chain in chains):
            opens = max(opens, led_in)
        if not all(len(chain.durations) for chain in chains):
            disturbed = disturbed or "a client completed nothing inside the common window"
        inside = [chain.ended_between(opens, closes) for chain in chains]
        together = np.concatenate([c.durations[own] for c, own in zip(chains, inside, strict=True)])
        # Operations have phases in clients of one worker only, so each client is one chain.
        parts = (
            [rows[:, own] for rows, own in zip(phases, inside, strict=True)] if any(map(len, phases)) else []
        )
        return cls(len(together), closes - opens, together, disturbed, _joined(parts), led_in_ns)

    @classmethod
    def _of_open_loop(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations],
        disturbed: str,
    ) -> "SliceWindow":
        """Throughput and service time are of what ended in the window, latency of what was due in it:
        an operation that a stall held up past the end counts where it should have begun.
        """
        opens = request.start_ns + request.lead_in_ns
        closes = opens + request.window_ns
        slices = list(open_loop.client_slices(recorded_from_the_start(request), durations))
        inside = [each.ran & each.due_from(opens) for each in slices]
        ended = [each.ended_between(opens, closes) for each in slices]
        lag = replies[0].phases.index(protocol.LAG)
        served = [each.durations - rows[lag] for each, rows in zip(slices, phases, strict=True)]
        return cls(
            ops=sum(int(np.count_nonzero(own)) for own in ended),
            served=np.concatenate([times[own] for times, own in zip(served, ended, strict=True)]),
            length_ns=request.window_ns,
            durations=np.concatenate([each.durations[own] for each, own in zip(slices, inside, strict=True)]),
            disturbed=disturbed,
            phases=np.concatenate([rows[:, own] for rows, own in zip(phases, inside, strict=True)], axis=1),
            scheduled=open_loop.counted(request, slices),
            waited=np.concatenate([each.waited(opens, closes) for each in slices]),
        )

    def by_phase(self) -> dict[str, Durations]:
        """The durations of lag and service of an open loop; then those of connect, operate and close,
        or of connect, first_byte and receive. {} where there are no phases.

        A client that knows closing only together with connecting gives one row for both.
        """
        if self.phases is None:
            return {}
        timed = dict(zip(self.phase_names, self.phases, strict=True))
        rest = self.durations - self.phases.sum(axis=0)
        found = {"lag": timed["lag"], "service": self.durations - timed["lag"]} if "lag" in timed else {}
        if "first_byte" in timed:
            return {**found, **timed, "receive": rest}
        if "connect" not in timed:
            return found
        connect = timed["connect"]
        return {**found, "connect": connect, "operate": rest, "close": timed.get("close", connect[:0])}

    @property
    def latencies(self) -> Durations:
        """The durations; an operation that was due and had not begun has one of at least what it had
        waited, and counts with that.
        """
        return np.concatenate([self.durations, self.waited])

    def us_per_op(self, clients: int) -> float:
        """The mean time from an operation's real start to its end, each limited to the 99th
        percentile. Where a closed loop timed no operation, it is made of their number; an open loop
        has 0 then.
        """
        if self.served is not None:
            return time_per_op_us(self.served)
        return time_per_op_us(self.durations) or self.mean_us(clients)

    @property
    def new_connections(self) -> int | None:
        """How many HTTP requests opened a connection; None for other operations."""
        if self.phases is None or "first_byte" not in self.phase_names:
            return None
        return int(np.count_nonzero(self.phases[self.phase_names.index("connect")]))

    def mean_us(self, clients: int) -> float:
        """The mean time of one client for one operation, µs; the whole window where none ended."""
        return self.length_ns * (clients if self.ops else 1) / max(1, self.ops) / 1000


def time_per_op_us(durations: Durations) -> float:
    """Mean of the durations (ns) in µs, each limited to their 99th percentile; 0 if there are none.

    An interruption of 4 ms that no layer caused would dominate a window of 50 ms. Throughput and
    latencies include every operation in full.
    """
    if not len(durations):
        return 0.0
    rank = len(durations) - 1 - len(durations) // 100
    return float(np.minimum(durations, np.partition(durations, rank)[rank]).mean()) / 1000


def recorded_from_the_start(request: protocol.Slice) -> protocol.Slice:
    """Record the lead-in too: operations that begin in it and end in the common window count.

    Without them, a window of five operations of each client would miss one of the five.
    """
    if request.count or not (request.start_ns and request.window_ns):
        return request
    return request._replace(lead_in_ns=0, window_ns=request.lead_in_ns + request.window_ns)


@dataclass(frozen=True)
class Chain:
    """The operations of one connection in a slice: each began when the one before ended, the first
    at `first_ns`.
    """

    first_ns: int
    durations: Durations

    def ended_between(self, opens: int, closes: int) -> NDArray[np.bool_]:
        """Which of them ended then."""
        ends = self.first_ns + np.cumsum(self.durations.astype(np.int64))
        return (ends > opens) & (ends <= closes)


def chains_of(reply: protocol.SliceReply, durations: Durations) -> list[Chain]:
    """One chain for each worker of a client."""
    if not reply.worker_ops:
        return [Chain(reply.first_ns, durations)]
    parts = np.split(durations, np.cumsum(reply.worker_ops)[:-1])
    return [Chain(*each) for each in zip(reply.worker_first_ns, parts, strict=True)]


def _mean_length_ns(chains: Sequence[Chain]) -> int:
    """How long a connection took for its operations. Those that end first wait for the slowest only
    because the slice is by count: in a loop without end they would go on, so that is no part of it.
    """
    lengths = [int(chain.durations.sum()) for chain in chains]
    return sum(lengths) // len(lengths) if lengths else 0


def _disturbed(replies: Sequence[protocol.SliceReply]) -> str:
    """What the clients say of the slice; "" for a good one."""
    if any(reply.capped for reply in replies):
        return "recording was full before the window closed"
    overran_s = max(reply.overran_ns for reply in replies) / 1e9
    return f"pgbench took {overran_s:.1f} s more than its time: the server stood still" if overran_s else ""


def _joined(phases: Sequence[Durations]) -> Durations | None:
    """The phases of all clients; None where they have none."""
    return np.concatenate(phases, axis=1) if phases and len(phases[0]) else None
