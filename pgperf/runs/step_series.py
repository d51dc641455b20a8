"""Figures over runs: the series of each step of a benchmark on a database.

A step is what a variant takes more than the layer below it in the same run, in µs, with the ratio
of the two beside it. The lowest layer has no step: its figure is its time per operation.
"""

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from pgperf.analysis.grade import GradeWord
from pgperf.core.records import VARIANT_FIELDS, Variant
from pgperf.models import ComparisonResult, Run, VariantResult

#: Layers that cannot have workers stand beside the workers of others, with as many connections.
_BESIDE = frozenset({"layer", "clients", "workers"})
#: Variants whose comparisons one query asks for.
_AT_ONCE = 10_000


class Step(NamedTuple):
    """The labels of a variant and of the one below it; "" for the lowest layer."""

    variant: str
    below: str = ""


@dataclass(frozen=True)
class Point:
    """A step in one run: µs and the ratio to the layer below, each with its 95 % interval where the
    run gave one; `ratio` is None for the lowest layer. `time_us` is the variant's time per operation.
    `is_disturbed`: others much disturbed one of the two variants.
    """

    us: float
    low_us: float | None = None
    high_us: float | None = None
    ratio: float | None = None
    low_ratio: float | None = None
    high_ratio: float | None = None
    time_us: float | None = None
    is_disturbed: bool = False

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
    """The series of each step over these runs, without the runs that lack it; in two queries, more
    only where the runs have very many steps.
    """
    wanted = list(steps)
    results = _results(runs, wanted, using)
    found = {(each.run, Step(each.label)): each.time for each in results.values() if each.time}
    found |= _differences(wanted, results, using)
    return {step: {run: found[run, step] for run in runs if (run, step) in found} for step in wanted}


def _stands_on(variants: Mapping[int, tuple[str, Variant]], variant: int, baseline: int) -> bool:
    """A layer is compared with the base first, and with the layer below it last: the last counts."""
    if variant not in variants or baseline not in variants:
        return False
    differs = variants[variant][1].differs_in(variants[baseline][1])
    return "layer" in differs and differs <= _BESIDE


@dataclass(frozen=True)
class _Result:
    """A variant of a run; `time` is None where it has none."""

    run: int
    label: str
    is_disturbed: bool
    time: Point | None


def _results(runs: Sequence[int], steps: Sequence[Step], using: str | None) -> dict[int, _Result]:
    """By primary key, those of the steps."""
    rows = VariantResult.objects.using(using).order_by().filter(run__in=runs)
    rows = rows.filter(label__in={step.variant for step in steps}).annotate(is_poor=_is_poor("verdict"))
    columns = ("pk", "run_id", "label", "is_poor", "us_per_op", "us_per_op_low", "us_per_op_high")
    return {
        pk: _Result(run, label, bool(is_poor), _time(*us, is_disturbed=bool(is_poor)))
        for pk, run, label, is_poor, *us in rows.values_list(*columns)
    }


def _is_poor(verdict: str) -> Q:
    """Was the variant much disturbed, whose verdict this is?"""
    return Q(**{f"{verdict}__grade__word": GradeWord.POOR})


def _time(us: float | None, low: float | None, high: float | None, *, is_disturbed: bool) -> Point | None:
    return None if us is None else Point(us, low, high, time_us=us, is_disturbed=is_disturbed)


def _differences(
    steps: Sequence[Step], results: Mapping[int, _Result], using: str | None
) -> dict[tuple[int, Step], Point]:
    found: dict[tuple[int, Step], Point] = {}
    uppers = {step for step in steps if step.below}
    for variant, below, is_poor, *values in _comparisons(uppers, results, using):
        own = results[variant]
        if (step := Step(own.label, below)) in uppers:
            found[own.run, step] = replace(
                Point(*values),
                time_us=own.time.us if own.time else None,
                is_disturbed=own.is_disturbed or bool(is_poor),
            )
    return found


def _comparisons(
    steps: Collection[Step], results: Mapping[int, _Result], using: str | None
) -> Iterator[tuple[Any, ...]]:
    """Those of the steps, and a few others. The variants are given by their numbers: a join with them
    would read the whole table.
    """
    labels = {step.variant for step in steps}
    variants = [pk for pk, result in results.items() if result.label in labels]
    rows = ComparisonResult.objects.using(using).order_by().annotate(is_poor=_is_poor("baseline__verdict"))
    rows = rows.filter(aa=False, baseline__label__in={step.below for step in steps})
    columns = ("delta_us", "delta_low_us", "delta_high_us", "ratio", "low", "high")
    every = rows.values_list("variant_id", "baseline__label", "is_poor", *columns)
    for start in range(0, len(variants), _AT_ONCE):
        yield from every.filter(variant__in=variants[start : start + _AT_ONCE])
