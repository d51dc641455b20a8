"""How long slices are: chosen by a pilot, and predicted where no pilot has run yet (pure)."""

from collections.abc import Sequence
from typing import NamedTuple

from pgperf.core import pgbench, protocol
from pgperf.core.delayed_routes import apart
from pgperf.core.layers import LAYERS
from pgperf.core.limits import PILOT_MAX_MS, PILOT_MIN_MS, RATE_HIGH
from pgperf.core.records import Definition, Variant

PILOT_OPS = 20  # of a variant in the pilot, as far as they fit into
_PILOT_S = 1.0
_WARM_UP_LONGEST = 3  # times the shortest, where operations are slow
#: Longer windows are no steadier: noise differs from slice to slice, not within one.
WINDOW_MIN_NS = PILOT_MIN_MS * 1_000_000
WINDOW_MAX_NS = PILOT_MAX_MS * 1_000_000
_WINDOW_OPS = 50  # of a variant, and of each of its connections:
_WINDOW_OPS_EACH = 5
_SHORT_NS, _SHORT_OPS = 1_000_000_000, 5  # of a slow operation, where the run has little time
_DUE_OPS, _DUE_LEAST_NS = 100, 500_000_000  # in the window of an open loop
_SEARCHED_OPS, _SEARCHED_NS = 1200, 1_000_000_000  # the same of a search: 1,000 ops where gaps scatter
_SEARCHED_LIMITS = 10  # and so many times its limit, so that a queue can pass it
_DUE_MOST = 250_000  # of a client in such a slice: its recording has room, also where gaps scatter
_BULK_OPS = 5  # of a bulk operation in a slice; each takes long, and all its rows stay until the end
_LEAD_IN_OPS = 10
_LEAD_IN_OPS_EACH = 3  # with several connections, whose lead-in lasts until all have started
_LEAD_IN_LONGEST = 2  # times the longest operation of any of them in the pilot

#: Rough times for a prediction, seconds. A login with SCRAM takes that long, and half of it is CPU
#: time on either side, which clients share.
_CONNECT_S, _CONNECT_CPU_S = 0.012, 0.006
#: The slowest of several clients over their mean, when all connect at once.
_LONGEST_CONNECT = 1.5
#: Round trips of a login with SCRAM, and of a connection to a web server.
_LOGIN_TRIPS, _WEB_TRIPS = 4, 1
#: A row, by kind; executemany of psycopg2 sends a statement for each.
_ROW_S = {"copy": 1.5e-6, "batch": 20e-6}
_STATEMENT_S = _FAST_S = 100e-6


def warm_up_most_s(definition: Definition) -> float:
    """The longest warm-up, where operations are slow."""
    return _WARM_UP_LONGEST * definition.warm_up_ms / 1000


def pilot_slice(op_s: float, connections: int = 1) -> protocol.Slice:
    """20 operations after a lead-in of two, or as many as take about a second, one at least.

    `op_s`: the time of one operation in the calibration; 0: not known. Several connections lead in
    with one operation, as in their timed slices.
    """
    count = max(1, min(PILOT_OPS, int(_PILOT_S / op_s))) if op_s else PILOT_OPS
    lead_in_ops = min(2, count) if connections == 1 else 1
    return protocol.Slice(seq=0, start_ns=0, lead_in_ops=lead_in_ops, lead_in_ns=0, window_ns=0, count=count)


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
    mean and the longest time of one of their operations, ns. Where they start together, the longest
    is at least the time from the common start until all have ended their first operation.
    """

    connections: int
    mean_ns: float
    longest_ns: float


def fitting(asked: protocol.Slice, needs: Sequence[Need]) -> protocol.Slice:
    """A slice long enough for all variants, unless it asks for a window of its own.

    The window holds 50 operations of each variant, 5 of each connection and the longest of those
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


def shortened(request: protocol.Slice, needs: Sequence[Need]) -> protocol.Slice:
    """A slice for a run that has little time: where 50 operations take longer than a second, as many
    as fit into one, and five at least. The lead-in is one operation.
    """
    slowest_ns = max(need.mean_ns for need in needs)
    window_ns = int(max(_SHORT_NS, _SHORT_OPS * slowest_ns))
    length_ns = request.count * slowest_ns if request.count else request.window_ns
    if window_ns >= length_ns or any(need.connections > 1 for need in needs):
        return request
    return request._replace(lead_in_ops=1, lead_in_ns=0, window_ns=window_ns, count=0)


def _lead_in_ns(sharing: Sequence[Need]) -> int:
    """The time in which every connection that shares a window ends its first operation: all begin it
    together, so it lasts longer than the mean.
    """
    each = (max(_LEAD_IN_OPS_EACH * need.mean_ns, _LEAD_IN_LONGEST * need.longest_ns) for need in sharing)
    return min(WINDOW_MAX_NS, int(max(each, default=0)))


def is_late(request: protocol.Slice, led_in_ns: int) -> bool:
    """Did one of several connections end its lead-in long after the window had opened?"""
    return led_in_ns > request.lead_in_ns + request.window_ns // 10


def later_lead_in(request: protocol.Slice, led_in_ns: int) -> protocol.Slice:
    """The same slice with a longer lead-in, if connections were late for its window."""
    if request.count or not is_late(request, led_in_ns):
        return request
    return request._replace(lead_in_ns=min(WINDOW_MAX_NS, _LEAD_IN_LONGEST * led_in_ns))


def bulk_slice(slowest_s: float) -> protocol.Slice:
    """A slice by count: all variants insert as many rows, fewer where the slowest needs long."""
    most = int(WINDOW_MAX_NS / 1e9 / slowest_s) if slowest_s else _BULK_OPS
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=1, lead_in_ns=0, window_ns=0, count=max(1, min(_BULK_OPS, most))
    )


def scheduled(request: protocol.Slice, variant: Variant) -> protocol.Slice:
    """The slice for a variant with a rate; unchanged for a closed loop.

    A queue needs time to reach its length and to show that it grows, so the window holds 100
    operations and lasts half a second at least, 5 s at most, and the lead-in a quarter of that. Both
    are shorter where a client could not record as many operations.
    """
    if variant.rate is None:
        return request
    return _at_rate(request, variant, variant.rate, _DUE_OPS, _DUE_LEAST_NS)


def searched(request: protocol.Slice, variant: Variant, rate: float, limit_ms: float) -> protocol.Slice:
    """The slice of a search at that rate: long enough for a 99th percentile, and for a queue to pass
    the limit.
    """
    least_ns = max(_SEARCHED_NS, int(_SEARCHED_LIMITS * limit_ms * 1e6))
    return _at_rate(request, variant, rate, _SEARCHED_OPS, least_ns)


def _at_rate(
    request: protocol.Slice, variant: Variant, rate: float, ops: int, least_ns: int
) -> protocol.Slice:
    holding_ns = int(ops / rate * 1e9)
    room_ns = int(_DUE_MOST * variant.processes / rate * 1e9)
    window_ns = min(WINDOW_MAX_NS, room_ns * 4 // 5, max(least_ns, request.window_ns, holding_ns))
    lead_in_ns = min(room_ns // 5, max(request.lead_in_ns, window_ns // 4))
    return request._replace(
        lead_in_ns=lead_in_ns, window_ns=window_ns, count=0, rate=rate, schedule=variant.schedule
    )


def predicted_op_s(definition: Definition, variant: Variant) -> float:
    """The time of one operation, where an earlier run or its nature tells; 0 where neither does."""
    return max(definition.work(variant.workload).op_s, _by_nature_s(definition, variant))


def _by_nature_s(definition: Definition, variant: Variant) -> float:
    """Operations that connect or insert many rows take about as long whatever the driver. A query can
    take any time, but at least a round trip over a delayed route. Clients connect side by side, and
    those of a single thread one after the other.
    """
    bulk = definition.work(variant.workload).bulk
    if bulk:
        one_by_one = bulk.kind == "batch" and definition.bulk_api == "dbapi" and variant.layer == "psycopg2"
        return bulk.rows * (_STATEMENT_S if one_by_one else _ROW_S[bulk.kind]) * variant.connections
    return _distance_s(variant) + (_connecting_s(variant) if variant.reconnects else 0.0)


def _distance_s(variant: Variant) -> float:
    """What the route's delay adds to one operation."""
    _route, delay_ms = apart(variant.route)
    trips = _WEB_TRIPS if LAYERS[variant.layer].over_http else _LOGIN_TRIPS
    return delay_ms / 1000 * (1 + (trips if variant.reconnects else 0))


def _connecting_s(variant: Variant) -> float:
    """For one of its clients, while all of them connect."""
    if LAYERS[variant.layer].one_thread:
        return _CONNECT_S * variant.connections
    return max(_CONNECT_S, _CONNECT_CPU_S * variant.connections)


def predicted(definition: Definition, variants: Sequence[Variant]) -> protocol.Slice:
    """The slice of variants of one workload, by the predicted time of an operation."""
    ops = [(variant.connections, predicted_op_s(definition, variant)) for variant in variants]
    if definition.work(variants[0].workload).bulk:
        return bulk_slice(max(op_s for _connections, op_s in ops))
    needs = [Need(count, op_s * 1e9, _LONGEST_CONNECT * op_s * 1e9) for count, op_s in ops]
    return fitting(asked_slice(definition), needs)


def length_s(request: protocol.Slice, op_s: float, variant: Variant, search_ms: float = 0.0) -> float:
    """How long a slice of the variant lasts, where an operation takes `op_s`, and a search has the
    limit `search_ms`.
    """
    if variant.is_search:
        rate = variant.connections / max(op_s, _FAST_S) / 2  # about the middle of those that it tries
        request = searched(request, variant, min(RATE_HIGH, rate), search_ms)
    request = scheduled(request, variant)
    if request.count:
        return (request.lead_in_ops + request.count) * op_s
    lead_in_ops = request.lead_in_ops if variant.connections == 1 else 1
    asked_s = max(request.lead_in_ns / 1e9, lead_in_ops * op_s) + request.window_ns / 1e9
    if not LAYERS[variant.layer].tool:
        return asked_s + op_s  # with the operation under way at its end
    return pgbench.time_s(_connecting_s(variant), asked_s)
