"""Figures over runs: the series of each step of a benchmark on a database.

A step is what a variant takes more than the layer below it in the same run, in µs, with the ratio
of the two beside it. The lowest layer has no step: its figure is its time per operation.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet

from pgperf.core.records import VARIANT_FIELDS, Variant
from pgperf.models import ComparisonResult, Run, VariantResult

#: Layers that cannot have workers stand beside the workers of others, with as many connections.
_BESIDE = frozenset({"layer", "clients", "workers"})


class Step(NamedTuple):
    """The labels of a variant and of the one below it; "" for the lowest layer."""

    variant: str
    below: str = ""


@dataclass(frozen=True)
class Point:
    """A step in one run: µs and the ratio to the layer below, each with its 95 % interval where the
    run gave one; `ratio` is None for the lowest layer. `time_us` is the variant's time per operation.
    """

    us: float
    low_us: float | None = None
    high_us: float | None = None
    ratio: float | None = None
    low_ratio: float | None = None
    high_ratio: float | None = None
    time_us: float | None = None

    @property
    def half_width_us(self) -> float | None:
        return None if self.low_us is None or self.high_us is None else (self.high_us - self.low_us) / 2


#: By the primary key of the run, in the order of the runs.
Series = dict[int, Point]


def typical_time(points: Iterable[Point]) -> float:
    """The median time per operation of the variant, µs: a step may be near 0."""
    return _middle(point.time_us for point in points) or 0.0


def typical_ratio(points: Iterable[Point]) -> float | None:
    return _middle(point.ratio for point in points)


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def comparable(runs: QuerySet[Run], run: Run) -> QuerySet[Run]:
    """Those of the runs that are done and measured the same as this one on the same database."""
    same = {"benchmark": run.benchmark_id, "database": run.database_id}
    known = runs.exclude(benchmark=None).exclude(database=None)
    return known.filter(status=Run.Status.DONE, definition_hash=run.definition_hash, **same)


def steps_of(run: int, using: str | None = None) -> dict[Step, Variant]:
    """The steps of a run in the order of its table, in two queries."""
    rows = VariantResult.objects.using(using).filter(run=run, control=0).order_by("position")
    variants = {
        pk: (label, Variant.of_values(identity))
        for pk, label, *identity in rows.values_list("pk", "label", *VARIANT_FIELDS)
    }
    pairs = ComparisonResult.objects.using(using).filter(run=run, aa=False).order_by("position")
    below = dict(
        pair for pair in pairs.values_list("variant_id", "baseline_id") if _stands_on(variants, *pair)
    )
    return {
        Step(label, variants[below[pk]][0] if pk in below else ""): variant
        for pk, (label, variant) in variants.items()
    }


def series_of(runs: Sequence[int], steps: Iterable[Step], using: str | None = None) -> dict[Step, Series]:
    """The series of each step over these runs, without the runs that lack it; in two queries."""
    wanted = list(steps)
    times = _times(runs, wanted, using)
    found = _differences(runs, wanted, times, using)
    found |= {(run, Step(label)): point for (run, label), point in times.items()}
    return {step: {run: found[run, step] for run in runs if (run, step) in found} for step in wanted}


def _stands_on(variants: Mapping[int, tuple[str, Variant]], variant: int, baseline: int) -> bool:
    """A layer is compared with the base first, and with the layer below it last: the last counts."""
    if variant not in variants or baseline not in variants:
        return False
    differs = variants[variant][1].differs_in(variants[baseline][1])
    return "layer" in differs and differs <= _BESIDE


def _times(runs: Sequence[int], steps: Sequence[Step], using: str | None) -> dict[tuple[int, str], Point]:
    rows = VariantResult.objects.using(using).order_by().filter(run__in=runs, us_per_op__isnull=False)
    rows = rows.filter(label__in={step.variant for step in steps})
    columns = ("run_id", "label", "us_per_op", "us_per_op_low", "us_per_op_high")
    return {
        (run, label): Point(us, low, high, time_us=us)
        for run, label, us, low, high in rows.values_list(*columns)
    }


def _differences(
    runs: Sequence[int], steps: Sequence[Step], times: Mapping[tuple[int, str], Point], using: str | None
) -> dict[tuple[int, Step], Point]:
    found: dict[tuple[int, Step], Point] = {}
    uppers = {step for step in steps if step.below}
    columns = (
        "run_id", "variant__label", "baseline__label", "delta_us", "delta_low_us", "delta_high_us",
        "ratio", "low", "high",
    )  # fmt: skip
    rows = _comparisons(runs, uppers, using).values_list(*columns)
    for run, label, below, us, low, high, ratio, ratio_low, ratio_high in rows:
        if (step := Step(label, below)) in uppers:
            time = times.get((run, label))
            time_us = time.us if time else None
            found[run, step] = Point(us, low, high, ratio, ratio_low, ratio_high, time_us)
    return found


def _comparisons(runs: Sequence[int], steps: Iterable[Step], using: str | None) -> QuerySet[ComparisonResult]:
    """Those of the steps, and a few others: the index of variants by run and label finds few rows, and
    each has few comparisons.
    """
    return (
        ComparisonResult.objects.using(using)
        .order_by()
        .filter(
            aa=False,
            variant__run__in=runs,
            variant__label__in={step.variant for step in steps},
            baseline__label__in={step.below for step in steps},
        )
    )
