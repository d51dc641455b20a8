"""The summary of a run: a row per variant, the comparisons with their outcomes, the ladders."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Self

from pgperf.analysis import (
    consistency_checks,
    cpu_accounting,
    cpu_per_operation,
    diagnostics,
    latency,
    rate_search,
    scaling,
    stopping,
    top,
    verdict_kinds,
)
from pgperf.analysis.fit import Fit
from pgperf.analysis.geometric_mean import geometric_means
from pgperf.analysis.http_requests import counting, http_requests, without_outcome
from pgperf.analysis.ladder import ladders
from pgperf.analysis.layer_groups import bases, same_but_layer
from pgperf.analysis.lead import by_block
from pgperf.analysis.open_loop import open_loop
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.run_comparison import levels
from pgperf.analysis.served_page import with_servers
from pgperf.analysis.timeline import timeline
from pgperf.analysis.variant_comparisons import pairs, variant_comparisons
from pgperf.analysis.variant_summary import COLD_PHASES, VariantSummary
from pgperf.core.records import Definition, SliceRecord, Variant, VariantBlock, by_variant

ANALYSIS_VERSION = 12


@dataclass(frozen=True)
class Speed:
    """Throughput and time per operation of a variant; None is not known."""

    ops_per_s: float | None = None
    us: Estimate | None = None

    @classmethod
    def of(cls, time: Fit, throughput: Fit, variant: Variant) -> Self:
        if variant not in time:
            return cls()
        return cls(throughput.value(variant), time.level(variant))

    def rows_per_s(self, rows_per_op: float) -> float | None:
        return None if self.ops_per_s is None else self.ops_per_s * rows_per_op


def summarise(
    definition: Definition, variants: Sequence[Variant], blocks: Sequence[VariantBlock], django_driver: str
) -> dict[str, Any]:
    """The summary of a run from the blocks it has, complete or not. `variants` are in the order of
    the tables.

    `variants` holds rows whose keys are the fields of VariantResult, nulls for a variant without a
    block, and none for a search; `comparisons` holds VariantComparisons, none for a pair that shared
    no round. The rest is JSON-able: no NaN, no numpy types.
    """
    measured, failing = blocks, without_outcome(blocks)
    blocks, measurements = counting(measured), stopping.measurements(definition, measured)
    variants = [variant for variant in variants if not variant.is_search]
    originals = [variant for variant in variants if not variant.control]
    asked = pairs(definition, [variant for variant in variants if variant not in failing], django_driver)
    time, throughput = Fit.of(measurements, asked), Fit.of(measurements, asked, ops_per_s)
    read, own, with_failed = diagnostics.rows_expected(blocks), by_variant(blocks), by_variant(measured)
    summaries = {
        variant: _summarised(
            Speed.of(time, throughput, variant),
            variant,
            own.get(variant, []),
            with_failed.get(variant, []),
            read.get(variant.workload),
            measurements,
        )
        for variant in variants
    }
    sound = [variant for variant in originals if variant not in failing]
    shown = {variant: summaries[variant] for variant in originals}
    line = timeline(blocks)
    return {
        "analysis_version": ANALYSIS_VERSION,
        "variants": [found.to_json() for found in summaries.values()],
        "comparisons": variant_comparisons(time, asked),
        "ladders": [
            ladder.to_json()
            for group in with_servers(definition, same_but_layer(sound))
            for ladder in ladders(time, group, django_driver)
        ],
        "geometric_means": [mean.to_json() for mean in geometric_means(definition, time, sound)],
        "levels": [level.to_json() for level in levels(time, sound, bases(sound))],
        "effects": effects(throughput, definition, sound),
        "scaling": [curve.to_json() for curve in scaling.curves(throughput, shown)],
        "rate_searches": [
            found.to_json()
            for found in _rate_searches(definition, _sound(blocks, failing), throughput, shown)
        ],
        "timeline": line.to_json() if line else {},
    }


def _sound(blocks: Sequence[VariantBlock], failing: set[Variant]) -> list[VariantBlock]:
    """The blocks, without the slices of searches in which too many requests failed, or in whose closed
    loop.
    """
    return [
        replace(block, slices=()) if {block.variant, block.variant.closed} & failing else block
        for block in blocks
    ]


def _summarised(
    speed: Speed,
    variant: Variant,
    own: Sequence[VariantBlock],
    with_failed: Sequence[VariantBlock],
    rows_read: int | None,
    measurements: Measurements,
) -> VariantSummary:
    """`own`: its blocks; `with_failed`: the same with the slices that do not count. `rows_read`: the
    rows that one operation reads from the server, where that is known.
    """
    slices = [piece for block in own for piece in block.slices]
    ops = sum(piece.ops for piece in slices)
    rows, requests = _rows(slices, rows_read), http_requests(with_failed)
    found = VariantSummary(
        label=variant.label,
        **asdict(variant),
        slices=len(slices),
        ops=ops,
        rows=rows or 0,
        ops_per_s=speed.ops_per_s,
        rows_per_s=None if rows is None else speed.rows_per_s(rows / ops if ops else 0.0),
        us_per_op=speed.us.centre if speed.us else None,
        us_per_op_low=speed.us.low if speed.us else None,
        us_per_op_high=speed.us.high if speed.us else None,
        latency_us=latency.summary_us(own),
        phases_us=latency.phases_us(own),
        cold_us=_cold_us(own),
        cpu_us_per_op=cpu_per_operation.per_op_us(own),
        cpu_account=cpu_accounting.cpu_account(own, with_failed),
        diagnostics=diagnostics.diagnostics(own, rows_read),
        top=top.top(own),
        open_loop=open_loop(variant, slices),
        http=requests,
        errors=sum(requests.errors.values()) if requests else 0,
    )
    checks = consistency_checks.checks(own, found.connections, found.cpu_us_per_op, found.cpu_account)
    times = by_block(found, own, measurements.time)
    return replace(found, verdict=verdict_kinds.judge(found, checks, times, measurements.widening))


def _rate_searches(
    definition: Definition,
    blocks: Sequence[VariantBlock],
    throughput: Fit,
    summaries: Mapping[Variant, VariantSummary],
) -> list[rate_search.RateSearch]:
    """Each beside a closed loop, which shows the capacity and how disturbed the measurement was."""
    return rate_search.searches(
        definition.rate_search_ms,
        blocks,
        {variant: throughput.value(variant) for variant in summaries if variant in throughput},
        {variant: each.verdict.grade for variant, each in summaries.items() if each.verdict},
        stopping.widening(definition, len({block.block for block in blocks})),
    )


def _rows(slices: Iterable[SliceRecord], rows_read: int | None) -> int | None:
    """The rows that were read. For a layer that does not count them, those that its statements
    returned to the other layers; None where there are no others.
    """
    counted = [piece.ops * rows_read if piece.rows is None and rows_read else piece.rows for piece in slices]
    return None if None in counted else sum(filter(None, counted))


def effects(
    throughput: Fit, definition: Definition, variants: Sequence[Variant]
) -> list[dict[str, str | float | None]]:
    """Throughput of each step of a web site over that of the other steps, with its 95 % interval."""
    steps = [variant for variant in variants if variant.route in definition.web_routes]
    routes = ((one, other) for one in steps for other in steps if one.differs_in(other) == {"route"})
    found = ((pair, throughput.paired(*pair)) for pair in routes)
    ratios = ((pair, each.log.at(CONFIDENCE).exp()) for pair, each in found if each)
    return [
        {
            "variant": of.label,
            "baseline": base.label,
            "ratio": each.centre,
            "low": each.low,
            "high": each.high,
        }
        for (of, base), each in ratios
    ]


def _cold_us(blocks: Iterable[VariantBlock]) -> dict[str, float | None]:
    """The median over the blocks that measured the phase: a fresh process each, so a handful of
    values.
    """
    cold = [block.cold_us for block in blocks]
    known = {phase: [us for row in cold if (us := row.get(phase)) is not None] for phase in COLD_PHASES}
    return {phase: median(values) if values else None for phase, values in known.items()}
