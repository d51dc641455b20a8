"""What to try next after a verdict, with the saving by the run's own figures. Pure.

A variant of the same run that is faster is the best advice, because its saving was measured. Where
there is none, the advice follows from the verdict, and a saving is named only where a part of the
variant's own time is its upper bound. A resource that several clients use up bounds nothing: they
wait for it elsewhere, too. Where the run measured the route with a delay too, what that distance
costs comes last: it saves nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from pgperf.analysis.rules import IN_DIAGNOSTICS
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import WITHDRAWN, Basis, Verdict
from pgperf.core.delayed_routes import apart
from pgperf.core.layers import LAYERS, Rung
from pgperf.core.records import RECONNECTING

#: The fields in one of which an alternative differs.
_CHOICES = ("layer", "mode", "route", "connect")
_FIXED = ("workload", "environment", "clients", "workers", "placement", "rate", "schedule", "hosts")
_fixed = attrgetter(*_FIXED)
#: The layers that may stand in for one of a rung: those of these rungs.
_INSTEAD_OF = {Rung.ORM: (Rung.ORM, Rung.CURSOR), Rung.CURSOR: (Rung.CURSOR,), Rung.DRIVER: (Rung.DRIVER,)}
#: Smaller shares of the response time are not worth a change.
_LEAST = 0.02
#: From these shares of an operation on, connecting and closing are advice beside another, or the
#: advice.
_CONNECTS, _MOSTLY_CONNECTS = 0.1, 0.5
_DISTURBED = "disturbed"
_PREPARED = "prepared"
#: What an operation of a client that reconnects consists of, and an HTTP request.
_PHASES = ("connect", "operate", "close", "first_byte", "receive")


#: What the second variant saves of the time of the first at least, µs, by their labels.
Savings = Mapping[tuple[str, str], float]
NO_SAVINGS: Savings = MappingProxyType({})


class Advice(StrEnum):
    ALTERNATIVE = "alternative"  # a variant of this run that is faster
    KEEP_CONNECTIONS = "keep_connections"
    CLIENT_CODE = "client_code"
    CLIENT_ROWS = "client_rows"  # the same of a client in C, which has no objects and no driver
    STATEMENT = "statement"
    PREPARE = "prepare"  # the same for a statement that is planned each time
    COPY = "copy"  # the same for a COPY, which is neither planned nor explained
    ROUND_TRIPS = "round_trips"
    PAGE_ROUND_TRIPS = "page_round_trips"  # the same of a page
    POOL = "pool"
    PROCESSES = "processes"
    CLIENT_CPUS = "client_cpus"
    SERVER_CPUS = "server_cpus"
    POOLER = "pooler"
    PROXY = "proxy"
    VIEW = "view"
    WEB_CPUS = "web_cpus"
    WEB_WORKERS = "web_workers"
    NETWORK = "network"
    LOCKS = "locks"
    DISKS = "disks"
    SERVER_WAITS = "server_waits"
    RATE = "rate"  # ask for more than is held
    QUIET = "quiet"  # measure again without those who disturbed
    GRANT = "grant"  # let the run's login see what is missing
    REQUESTS = "requests"  # requests failed, so that there are no figures
    FIGURES = "figures"  # something is missing that no grant shows
    TIME = "time"  # something is missing because the run had no time for its diagnostic slices


_BY_WORD = {
    "client_cpu": Advice.CLIENT_CODE,
    "server_cpu": Advice.STATEMENT,
    "pooler_cpu": Advice.POOLER,
    "proxy_cpu": Advice.PROXY,
    "web_cpu": Advice.VIEW,
    "web_workers": Advice.WEB_WORKERS,
    "network": Advice.NETWORK,
    "interpreter": Advice.PROCESSES,
    "pool_queue": Advice.POOL,
    "server_lock": Advice.LOCKS,
    "server_io": Advice.DISKS,
    "server_wait": Advice.SERVER_WAITS,
    "latency": Advice.ROUND_TRIPS,
    "schedule": Advice.RATE,
    "disturbed": Advice.QUIET,
}
_USED_UP = {
    "client_cpu": Advice.CLIENT_CPUS, "server_cpu": Advice.SERVER_CPUS, "pooler_cpu": Advice.POOLER,
    "proxy_cpu": Advice.PROXY, "web_cpu": Advice.WEB_CPUS,
}  # fmt: skip
#: Advice on a statement that EXPLAIN shows.
_WITH_EXPLAIN = (Advice.STATEMENT, Advice.PREPARE, Advice.SERVER_CPUS)

#: The benchmark of the catalog that measures what a change brings on the same machine.
_MEASURED_BY = {
    Advice.CLIENT_CODE: "layers-and-modes",
    Advice.PREPARE: "layers-and-modes",
    Advice.KEEP_CONNECTIONS: "connection-cost",
    Advice.ROUND_TRIPS: "published-a",
    Advice.POOL: "client-scaling",
    Advice.POOLER: "client-scaling",
    Advice.PROCESSES: "client-scaling",
    Advice.CLIENT_CPUS: "client-scaling",
    Advice.SERVER_CPUS: "client-scaling",
    Advice.NETWORK: "fleet-scaling",
    Advice.RATE: "rate-sweep",
}
#: The same of the example site, whose pages and queries the catalog does not have.
_MEASURED_BY_THE_EXAMPLE = {
    Advice.ROUND_TRIPS: "n-plus-one",
    Advice.PAGE_ROUND_TRIPS: "page",
    Advice.VIEW: "page",
    Advice.WEB_CPUS: "page",
    Advice.PROXY: "page",
}


@dataclass(frozen=True)
class Distance:
    """The same variant over its route with a delay: `us` per operation instead of `near_us`."""

    route: str
    ms: float
    us: float
    near_us: float

    @property
    def cost_us(self) -> float:
        return self.us - self.near_us

    @property
    def times(self) -> float:
        return self.us / self.near_us


@dataclass(frozen=True)
class NextStep:
    """`us` is the time that it would save, or the most that it could (`is_measured` tells them
    apart), of `of_us`; None where no figure bounds it. `changes`: the fields in which the faster
    variant differs, with its values. `least_us` is what a measured saving is at least, by its 95 %
    interval and, in a disturbed measurement, without what others may have added.
    `distances`: what delays of its route cost, the shortest first. `connecting_us`: the time to
    connect and to close, where connections are worth keeping besides; None where they are not.
    """

    advice: str
    of_us: float | None = None
    us: float | None = None
    is_measured: bool = False
    changes: tuple[tuple[str, str], ...] = ()
    least_us: float | None = None
    distances: tuple[Distance, ...] = ()
    connecting_us: float | None = None

    @property
    def is_vague(self) -> bool:
        """May a measured saving be less than half of what it seems?"""
        return self.least_us is not None and self.least_us < (self.us or 0.0) / 2

    @property
    def benchmark(self) -> str:
        """The name of a benchmark of the catalog that measures it; "" where there is none."""
        return _MEASURED_BY.get(Advice(self.advice), "")

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of all benchmarks that measure it, where a site has them: that of the catalog,
        and that of the example site; last, that of kept connections.
        """
        kept = _MEASURED_BY[Advice.KEEP_CONNECTIONS] if self.connecting_us is not None else ""
        return tuple(filter(None, (self.benchmark, self._of_the_example, kept)))

    @property
    def is_unmeasured(self) -> bool:
        """Has neither this run nor any benchmark a figure of what the advice saves?"""
        return not (self.is_measured or self.benchmark or self._of_the_example)

    @property
    def _of_the_example(self) -> str:
        return _MEASURED_BY_THE_EXAMPLE.get(Advice(self.advice), "")


def next_step(
    own: VariantSummary,
    others: Sequence[VariantSummary],
    *,
    savings: Savings = NO_SAVINGS,
    copies: bool = False,
    time_was_up: bool = False,
) -> NextStep | None:
    """The advice for a variant; None where it has no verdict or this version has none for it.
    `copies`: is its operation a COPY? `time_was_up`: did the run have no time for diagnostic slices?
    """
    if own.verdict is None:
        return None
    measured = _measured(own, others, savings)
    if measured and own.verdict.word == _DISTURBED:
        measured = _undisturbed(measured, own.verdict)
    found = measured or _by_verdict(own, own.verdict, others)
    if found and copies and found.advice in _WITH_EXPLAIN:
        found = replace(found, advice=Advice.COPY)
    if found and found.advice == Advice.FIGURES and time_was_up and _lacks_diagnostics(own, own.verdict):
        found = replace(found, advice=Advice.TIME)
    if found is None:
        return None
    return replace(
        found, distances=tuple(_distances(own, others)), connecting_us=_connecting_besides(own, found)
    )


def _lacks_diagnostics(own: VariantSummary, verdict: Verdict) -> bool:
    """Is nothing missing but what a diagnostic slice shows, and was there none?"""
    return own.diagnostics is None and set(verdict.finding.missing) <= {*IN_DIAGNOSTICS}


def _connecting_besides(own: VariantSummary, found: NextStep) -> float | None:
    """The time to connect and to close, where the advice is about something else. A disturbed
    measurement is repeated first.
    """
    is_told = found.advice in (Advice.KEEP_CONNECTIONS, Advice.REQUESTS) or "connect" in dict(found.changes)
    return None if is_told or _is_disturbed(own) else _connecting_us(own, _CONNECTS)


def _undisturbed(found: NextStep, verdict: Verdict) -> NextStep | None:
    """The same with what it saves at least: without the time that others may have added, which a quiet
    machine saves as well. None where little is left. A quota and a slow clock stay, for the faster
    variant too.
    """
    left = (found.us or 0.0) - verdict.grade.others_us
    sure = replace(found, least_us=min(found.least_us or 0.0, left))
    return None if sure.is_vague else sure


def _measured(own: VariantSummary, others: Iterable[VariantSummary], savings: Savings) -> NextStep | None:
    """The fastest variant that differs in one choice and is certainly faster.

    Where the run compared the two in pairs, that difference tells more than their two intervals.
    """
    found = [other for other in others if _is_alternative(other, own) and _is_faster(other, own)]
    best = min(found, key=lambda each: each.us_per_op or 0.0, default=None)
    if best is None or own.us_per_op is None or best.us_per_op is None:
        return None
    changes = tuple((name, str(getattr(best, name))) for name in _differences(own, best))
    saved, unpaired = (
        own.us_per_op - best.us_per_op,
        (own.us_per_op_low or 0.0) - (best.us_per_op_high or 0.0),
    )
    least = savings.get((own.label, best.label), unpaired)
    return NextStep(Advice.ALTERNATIVE, own.us_per_op, saved, True, changes, least)


def _differences(own: VariantSummary, other: VariantSummary) -> list[str]:
    return [name for name in _CHOICES if getattr(own, name) != getattr(other, name)]


def _is_alternative(other: VariantSummary, own: VariantSummary) -> bool:
    """Does it differ in one choice? How far away the server is, a program cannot choose."""
    differs = _differences(own, other)
    if not _is_beside(other, own) or not _has_outcome(other) or len(differs) != 1:
        return False
    if apart(other.route)[1] != apart(own.route)[1]:
        return False
    return differs != ["layer"] or _may_stand_in(other.layer, own.layer)


def _is_beside(other: VariantSummary, own: VariantSummary) -> bool:
    """Is it another variant that may differ in choices only?"""
    return not other.control and setting(own) == setting(other)


def _has_outcome(variant: VariantSummary) -> bool:
    """Did few enough of its requests fail, if it makes some?"""
    return variant.http is None or variant.http.has_outcome


def setting(variant: VariantSummary) -> tuple[Any, ...]:
    """What is the same of all variants that may differ in choices only."""
    found: tuple[Any, ...] = _fixed(variant)
    return found


def _may_stand_in(other: str, own: str) -> bool:
    """Would a program use that layer instead? The C client and pgbench are measures, no choices."""
    if other not in LAYERS or own not in LAYERS or LAYERS[other].tool or not LAYERS[other].connects:
        return False
    return LAYERS[other].rung in _INSTEAD_OF.get(LAYERS[own].rung, ())


def _is_faster(other: VariantSummary, own: VariantSummary) -> bool:
    if other.us_per_op_high is None or own.us_per_op_low is None or not own.us_per_op:
        return False
    saved = own.us_per_op - (other.us_per_op or own.us_per_op)
    return other.us_per_op_high < own.us_per_op_low and saved >= _LEAST * own.us_per_op


def _distances(own: VariantSummary, others: Iterable[VariantSummary]) -> Iterator[Distance]:
    """What each delay of its route costs. A disturbed measurement claims nothing, nor do intervals
    that overlap.
    """
    delayed = [(apart(other.route)[1], other) for other in others if _is_delayed(other, own)]
    for ms, far in sorted(delayed, key=lambda each: each[0]):
        if own.us_per_op and far.us_per_op and not _is_disturbed(own) and not _is_disturbed(far):
            yield Distance(far.route, ms, far.us_per_op, own.us_per_op)


def _is_delayed(other: VariantSummary, own: VariantSummary) -> bool:
    """Is it the same over its route with a delay, and certainly slower?"""
    same = _is_beside(other, own) and _has_outcome(other) and _differences(own, other) == ["route"]
    base, ms = apart(other.route)
    if not (same and ms and base == own.route) or own.us_per_op_high is None or other.us_per_op_low is None:
        return False
    return other.us_per_op_low > own.us_per_op_high


def _is_disturbed(variant: VariantSummary) -> bool:
    return variant.verdict is not None and variant.verdict.word == _DISTURBED


def _by_verdict(own: VariantSummary, verdict: Verdict, others: Iterable[VariantSummary]) -> NextStep | None:
    if verdict.finding.basis == Basis.FAILED_REQUESTS:
        return NextStep(Advice.REQUESTS)
    if verdict.word == "unknown":
        return NextStep(Advice.GRANT if verdict.finding.grant else Advice.FIGURES, own.us_per_op)
    used_up = verdict.finding.basis == Basis.SATURATED
    if verdict.word != _DISTURBED and (connecting := _connecting_us(own, _MOSTLY_CONNECTS)):
        return NextStep(Advice.KEEP_CONNECTIONS, own.us_per_op, None if used_up else connecting)
    if verdict.certainty == WITHDRAWN:
        return None
    advice = _USED_UP.get(verdict.word) if used_up else _BY_WORD.get(verdict.word)
    if advice is None:
        return None
    us = None if used_up else _most_us(advice, own, verdict)
    return NextStep(_of_layer(advice, own, others), own.us_per_op, us)


def _of_layer(advice: Advice, own: VariantSummary, others: Iterable[VariantSummary]) -> Advice:
    """The advice for what the variant's layer does."""
    layer = LAYERS.get(own.layer)
    if advice == Advice.CLIENT_CODE and layer and layer.requests_pages:
        return Advice.CLIENT_CPUS if layer.over_http else Advice.VIEW
    if advice == Advice.CLIENT_CODE and layer and (layer.tool or layer.rung == Rung.CLIENT_LIBRARY):
        return Advice.CLIENT_ROWS
    if advice == Advice.ROUND_TRIPS and layer and layer.requests_pages:
        return Advice.PAGE_ROUND_TRIPS
    if advice == Advice.STATEMENT and _may_prepare(own):
        known = any(_is_beside(each, own) and _but_prepared(own, each) for each in [own, *others])
        return advice if known else Advice.PREPARE
    return advice


def _may_prepare(own: VariantSummary) -> bool:
    """Does its layer prepare statements, on connections that stay for the next operation?"""
    layer = LAYERS.get(own.layer)
    if layer is None or layer.over_http or own.connect in RECONNECTING:
        return False
    return _PREPARED in layer.modes


def _but_prepared(own: VariantSummary, other: VariantSummary) -> bool:
    """Is it the same with prepared statements?"""
    return other.mode == _PREPARED and _differences(own, other) in ([], ["mode"])


def _connecting_us(own: VariantSummary, least: float) -> float | None:
    """The time to connect and to close, µs, where it is at least that share of an operation.

    Long operations are in full in the means of the phases and not in `us_per_op`: their share counts.
    """
    if own.connect not in RECONNECTING or not own.us_per_op:
        return None
    means = {phase: own.phases_us.get(phase, {}).get("mean") or 0.0 for phase in _PHASES}
    whole = sum(means.values())
    share = (means["connect"] + means["close"]) / whole if whole else 0.0
    return share * own.us_per_op if share >= least else None


def _most_us(advice: Advice, own: VariantSummary, verdict: Verdict) -> float | None:
    """The most that the advice saves; None where no figure bounds it."""
    return _in_line_us(own, verdict) if advice == Advice.WEB_WORKERS else _part_us(own, verdict)


def _part_us(own: VariantSummary, verdict: Verdict) -> float | None:
    """The part that the verdict names: no change of it alone saves more. Processes of the server that
    work at the same time may take more than the operation.
    """
    part = verdict.word.removesuffix("_cpu")
    time = TimeBreakdown.of(own)
    us = time.of_part(part) if part in (*time.cpu, *time.waits) else None
    return us if us is None or own.us_per_op is None else min(us, own.us_per_op)


def _in_line_us(own: VariantSummary, verdict: Verdict) -> float | None:
    """The most that a request waits for a process of the web servers: its time without the time that
    a busy one takes for it, by the utilisation law. At a rate clients are idle too, so their number
    does not tell that.
    """
    workers, busy = verdict.numbers.web_workers, verdict.finding.share
    if not workers or busy is None or own.us_per_op is None or not own.ops_per_s:
        return None
    mean_us = 1e6 * workers * busy / own.ops_per_s
    return max(0.0, own.us_per_op - mean_us / own.mean_ratio)
