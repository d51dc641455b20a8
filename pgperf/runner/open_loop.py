"""Slices of an open loop: each client's share of the rate, and what was due in the window."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError
from pgperf.core.schedule import due_in

#: To compute the schedule of a client before its start, for each operation.
_SCHEDULE_NS = 3_000


@dataclass(frozen=True)
class Scheduled:
    """The operations that were `due` in the windows of all clients, in numbers.

    Of those that ran, `late` ended later than the latency limit after their intended start; None:
    there is no limit. `skipped` would have begun later than that, and `backlog` had not begun at the
    end.
    """

    due: int
    late: int | None
    skipped: int
    backlog: int


def share(request: protocol.Slice, client: int, clients: int) -> protocol.Slice:
    """One client's part of a slice, so that all clients together keep the rate.

    Constant schedules interleave. Independent exponential ones add up to one.
    """
    if not request.rate:
        return request
    constant = request.schedule == "constant"
    return request._replace(
        rate=request.rate / clients,
        seed=request.seed + client,
        offset_ns=round(client * 1e9 / request.rate) if constant else 0,
    )


def prepare_ns(request: protocol.Slice, clients: int) -> int:
    """The time that a client needs between the order and its start, to compute its schedule."""
    due = request.rate / clients * (request.lead_in_ns + request.window_ns) / 1e9
    return round(min(due, protocol.MAX_PHASED_SAMPLES) * _SCHEDULE_NS)


@dataclass(frozen=True)
class ClientSlice:
    """What one client recorded: the intended starts of all its operations, and of those that it took
    the durations from there, ns; 0 was skipped.
    """

    due: NDArray[np.int64]
    durations: NDArray[np.uint64]

    @property
    def ran(self) -> NDArray[np.bool_]:
        return self.durations > 0

    def ended_between(self, opens: int, closes: int) -> NDArray[np.bool_]:
        """Which of the operations ended then."""
        ends = self.due[: len(self.durations)] + self.durations.astype(np.int64)
        return self.ran & (ends > opens) & (ends <= closes)

    def due_from(self, opens: int) -> NDArray[np.bool_]:
        """Which of the operations that it took were due then or later."""
        return self.due[: len(self.durations)] >= opens

    def left(self, opens: int) -> int:
        """How many that were due from then on it did not take."""
        return int(np.count_nonzero(self.due[len(self.durations) :] >= opens))

    def waited(self, opens: int, closes: int) -> NDArray[np.uint64]:
        """Of those that were due from then on and that it did not take: how long they had waited."""
        left = self.due[len(self.durations) :]
        return (closes - left[left >= opens]).astype(np.uint64)


def client_slices(request: protocol.Slice, durations: Sequence[NDArray[np.uint64]]) -> Iterator[ClientSlice]:
    """The slices of all clients of an armed request. Raises ProtocolError if one is longer than its
    schedule.
    """
    for client, own in enumerate(durations):
        due = due_in(share(request, client, len(durations)), protocol.MAX_PHASED_SAMPLES)
        if len(own) > len(due):
            raise ProtocolError(f"client {client}: {len(own)} operations, of which {len(due)} were due")
        yield ClientSlice(np.array(due, dtype=np.int64) + request.start_ns, own)


def counted(request: protocol.Slice, slices: Sequence[ClientSlice]) -> Scheduled:
    """The numbers of the window. Replies count what is left of the lead-in, too."""
    opens, limit_ns = request.start_ns + request.lead_in_ns, request.latency_limit_ns
    ran = [each.durations[each.ran & each.due_from(opens)] for each in slices]
    return Scheduled(
        due=sum(int(np.count_nonzero(each.due >= opens)) for each in slices),
        late=sum(int(np.count_nonzero(own > limit_ns)) for own in ran) if limit_ns else None,
        skipped=sum(int(np.count_nonzero(~each.ran & each.due_from(opens))) for each in slices),
        backlog=sum(each.left(opens) for each in slices),
    )
