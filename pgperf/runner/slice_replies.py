"""What clients recorded of a slice, checked: the row of a load host may be forged."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError

Durations = NDArray[np.uint64]

#: Sums of numbers below it stay below 2^63 in any slice: 36 years in ns.
_MOST = 2**60
_COUNTED = (
    "ops",
    "lead_in_ops",
    "first_ns",
    "user_ns",
    "sys_ns",
    "window_ns",
    "skipped",
    "backlog",
    "overran_ns",
)


def check(
    request: protocol.Slice,
    replies: Sequence[protocol.SliceReply],
    durations: Sequence[Durations],
    phases: Sequence[Durations],
) -> None:
    """Raises ProtocolError, which names the field, if no client of this version records that."""
    for reply, own, parts in zip(replies, durations, phases, strict=True):
        if unfit := next(_unfit(request, replies[0], reply, own, parts), ""):
            raise ProtocolError(f"the reply to a slice has no valid {unfit}")


def _unfit(
    request: protocol.Slice,
    first: protocol.SliceReply,
    reply: protocol.SliceReply,
    durations: Durations,
    phases: Durations,
) -> Iterator[str]:
    numbers = {name: getattr(reply, name) for name in _COUNTED} | {"rows": reply.rows or 0}
    yield from (name for name, value in numbers.items() if not 0 <= value < _MOST)
    several = {
        "worker_ops": reply.worker_ops, "worker_first_ns": reply.worker_first_ns,
        "errors": [*reply.errors.values()], "lengths": reply.lengths,
    }  # fmt: skip
    yield from (name for name, own in several.items() if not all(0 <= each < _MOST for each in own))
    if len(reply.worker_ops) != len(reply.worker_first_ns) or sum(reply.worker_ops) not in (0, reply.ops):
        yield "worker_ops"
    if reply.phases != first.phases or bool(request.rate) != (protocol.LAG in reply.phases):
        yield "phases"
    if len(durations) != reply.ops + reply.skipped and not (reply.window_ns and not len(durations)):
        yield "ops"
    if any(len(part) and int(part.max()) >= _MOST for part in (durations, *phases)):
        yield "durations"
