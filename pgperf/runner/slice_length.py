"""How long slices are: chosen by a pilot, and predicted where no pilot has run yet (pure)."""

from collections.abc import Sequence
from typing import NamedTuple

from pgperf.core import protocol
from pgperf.core.limits import PILOT_MAX_MS, PILOT_MIN_MS
from pgperf.core.records import Definition, Variant

PILOT_OPS = 20  # of a variant in the pilot, as far as they fit into
_PILOT_S = 1.0
WARM_UP_MOST_S = 3.0
#: Longer windows are no steadier: noise differs from slice to slice, not within one.
WINDOW_MIN_NS = PILOT_MIN_MS * 1_000_000
WINDOW_MAX_NS = PILOT_MAX_MS * 1_000_000
_WINDOW_OPS = 50  # of a variant, and of each of its connections:
_WINDOW_OPS_EACH = 10
_BULK_OPS = 10  # of a bulk operation in a slice; each takes long, and all its rows stay until the end
_LEAD_IN_OPS = 10
_LEAD_IN_OPS_EACH = 3  # with several connections, whose lead-in lasts until all have started
_LEAD_IN_LONGEST = 2  # times the longest operation of any of them in the pilot

#: Rough times for a prediction, seconds. A login with SCRAM takes that long, and half of it is CPU
#: time on either side, which clients share.
_CONNECT_S, _CONNECT_CPU_S = 0.012, 0.006
#: A row, by kind; executemany of psycopg2 sends a statement for each.
_ROW_S = {"copy": 1.5e-6, "batch": 20e-6}
_STATEMENT_S = 100e-6


def pilot_slice(op_s: float) -> protocol.Slice:
    """20 operations after a lead-in of two, or as many as take about a second, one at least.

    `op_s`: the time of one operation in the calibration; 0: not known.
    """
    count = max(1, min(PILOT_OPS, int(_PILOT_S / op_s))) if op_s else PILOT_OPS
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=min(2, count), lead_in_ns=0, window_ns=0, count=count
    )


def asked_slice(definition: Definition) -> protocol.Slice:
    """The slice that the definition asks for; its window is 0 where a pilot has to choose it."""
    return protocol.Slice(
        seq=0,
        start_ns=0,
        lead_in_ops=_LEAD_IN_OPS,
        lead_in_ns=definition.lead_in_ms * 1_000_000,
        window_ns=definition.slice_ms * 1_000_000,
    )


class Need(NamedTuple):
    """What a slice must have room for: the connections of a variant that share its window, and the
    mean and the longest time of one of their operations, ns.
    """

    connections: int
    mean_ns: float
    longest_ns: float


def fitting(asked: protocol.Slice, needs: Sequence[Need]) -> protocol.Slice:
    """A slice long enough for all variants, unless it asks for a window of its own.

    The window holds 50 operations of each variant, 10 of each connection and the longest of those
    that share it, within 50 ms to 5 s. If operations are too slow for that, the slice has a fixed
    number of them instead.
    """
    sharing = [need for need in needs if need.connections > 1]
    leading = asked._replace(lead_in_ns=max(asked.lead_in_ns, _lead_in_ns(sharing)))
    if asked.window_ns:
        return leading
    window_ns = int(
        max(need.mean_ns * max(_WINDOW_OPS / need.connections, _WINDOW_OPS_EACH) for need in needs)
    )
    if window_ns > WINDOW_MAX_NS:
        slowest_ns = max(need.mean_ns for need in needs)
        return asked._replace(lead_in_ops=1, lead_in_ns=0, count=max(1, int(WINDOW_MAX_NS / slowest_ns)))
    longest_ns = int(max((need.longest_ns for need in sharing), default=0))
    return leading._replace(window_ns=min(WINDOW_MAX_NS, max(WINDOW_MIN_NS, window_ns, longest_ns)))


def _lead_in_ns(sharing: Sequence[Need]) -> int:
    """The time in which every connection that shares a window ends its first operation: all begin it
    together, so it lasts longer than the mean.
    """
    each = (max(_LEAD_IN_OPS_EACH * need.mean_ns, _LEAD_IN_LONGEST * need.longest_ns) for need in sharing)
    return min(WINDOW_MAX_NS, int(max(each, default=0)))


def bulk_slice(slowest_s: float) -> protocol.Slice:
    """A slice by count: all variants insert as many rows, fewer where the slowest needs long."""
    most = int(WINDOW_MAX_NS / 1e9 / slowest_s) if slowest_s else _BULK_OPS
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=1, lead_in_ns=0, window_ns=0, count=max(1, min(_BULK_OPS, most))
    )


def predicted_op_s(definition: Definition, variant: Variant) -> float:
    """The time of one operation, where its nature tells; 0 where it does not.

    Operations that connect or insert many rows take about as long whatever the driver. A query can
    take any time.
    """
    bulk = definition.work(variant.workload).bulk
    if bulk:
        one_by_one = bulk.kind == "batch" and definition.bulk_api == "dbapi" and variant.layer == "psycopg2"
        return bulk.rows * (_STATEMENT_S if one_by_one else _ROW_S[bulk.kind]) * variant.connections
    if variant.reconnects:
        return max(_CONNECT_S, _CONNECT_CPU_S * variant.connections)
    return 0.0


def predicted(definition: Definition, variants: Sequence[Variant]) -> protocol.Slice:
    """The slice of variants of one workload, by the predicted time of an operation."""
    ops = [(variant.connections, predicted_op_s(definition, variant)) for variant in variants]
    if definition.work(variants[0].workload).bulk:
        return bulk_slice(max(op_s for _connections, op_s in ops))
    return fitting(
        asked_slice(definition), [Need(count, op_s * 1e9, longest_ns=op_s * 1e9) for count, op_s in ops]
    )


def length_s(request: protocol.Slice, op_s: float) -> float:
    """How long a slice lasts, where an operation takes `op_s`."""
    by_time = (request.lead_in_ns + request.window_ns) / 1e9
    return by_time + (request.lead_in_ops + request.count) * op_s if request.count else by_time
