"""Ladders: libpq, a driver, the Django cursor and the Django ORM on that driver; what each step
costs.

Django climbs on the driver that it uses, and where that is psycopg 3 a second ladder may stand on
psycopg2. Both have libpq for their ground.

The Hodges-Lehmann difference of A and C is not quite that of A and B plus that of B and C. So the
steps are fitted: a rung's height is the average of its differences from all the rungs (Spjøtvoll's
adjusted contrasts), and a step is the difference of two heights. Steps then add up, and where the
pairwise differences agreed already, nothing changes. Each interval keeps its width and moves with
its centre. Ratios are fitted in the same way, as logarithms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, PairedComparison, PairedDifference
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.samples import interval
from pgperf.core.layers import LAYERS, Layer, Rung
from pgperf.core.records import Variant

Differences = list[list[float]]


@dataclass(frozen=True)
class Step:
    """One rung: `us` per operation, `step_us` above the rung below, `ratio` over the first rung.

    The first rung is its own step, and its ratio is 1. `low` and `high` are the ends of 95 %
    intervals, None if unknown.
    """

    layer: str
    label: str
    us: float
    low: float | None
    high: float | None
    step_us: float
    step_low_us: float | None
    step_high_us: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None


@dataclass(frozen=True)
class Ladder:
    """Rungs that stand on each other, lowest first, and in `side` the layers beside them.

    A layer beside them is one step above the first rung. `driver` is the one that Django uses.
    `clients` is the number of connections: those of one process with several workers, or of as many
    processes. The variants of all rungs share the other fields.
    """

    workload: str
    route: str
    mode: str
    clients: int
    placement: str
    driver: str
    steps: tuple[Step, ...]
    side: tuple[Step, ...] = ()
    workers: int = 1  # the most that a client process of its variants has

    def has(self, variant: Variant) -> bool:
        """Is the variant one of its rungs, or beside them?"""
        shared = "workload", "route", "mode", "placement"
        alike = all(getattr(self, name) == getattr(variant, name) for name in shared)
        return (
            alike
            and self.clients == variant.connections
            and any(step.layer == variant.layer for step in (*self.steps, *self.side))
        )

    def to_json(self) -> dict[str, Any]:
        steps, side = ([asdict(step) for step in each] for each in (self.steps, self.side))
        return {**asdict(self), "steps": steps, "side": side}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        rungs = {name: tuple(Step(**step) for step in data[name]) for name in ("steps", "side")}
        return cls(**{**data, **rungs})


def climbs(variants: Sequence[Variant], django_driver: str) -> dict[str, list[Variant]]:
    """Driver -> those of the variants that stand on each other, lowest first; Django's own driver
    comes first.

    A driver by itself makes no second ladder: it stands beside the first one.
    """
    known = [variant for variant in variants if variant.layer in LAYERS]
    others = [driver for variant in known if (driver := LAYERS[variant.layer].driver)]
    return {
        driver: sorted(
            (variant for variant in known if _stands_on(LAYERS[variant.layer], driver, django_driver)),
            key=lambda variant: LAYERS[variant.layer].rung,
        )
        for driver in dict.fromkeys((django_driver, *others))
    }


def _stands_on(layer: Layer, driver: str, django_driver: str) -> bool:
    """Is the layer a rung of the driver's ladder?"""
    if layer.rung == Rung.CLIENT_LIBRARY or layer.name == driver:
        return True
    return layer.rung > Rung.DRIVER and layer.driver == ("" if driver == django_driver else driver)


def ladders(measurements: Measurements, variants: Sequence[Variant], django_driver: str) -> list[Ladder]:
    """The ladders of variants that differ in their layer only; none without a measured rung.

    `steps[k].us` is the sum of `step_us` up to k. Layers on no ladder stand beside the first one.
    """
    measured = [variant for variant in variants if variant in measurements]
    climbed = [(d, _comparable(measurements, rungs)) for d, rungs in climbs(measured, django_driver).items()]
    found = [(driver, rungs) for driver, rungs in climbed if len(rungs) > 1] or climbed[:1]
    standing = {variant for _, rungs in found for variant in rungs}
    beside = [variant for variant in measured if variant not in standing]
    return [
        _ladder(measurements, driver, rungs, [] if at else beside)
        for at, (driver, rungs) in enumerate(found)
        if rungs
    ]


def _ladder(measurements: Measurements, driver: str, climbed: list[Variant], beside: list[Variant]) -> Ladder:
    first = climbed[0]
    comparable = [variant for variant in beside if measurements.paired(variant, first)]
    return Ladder(
        first.workload,
        first.route,
        first.mode,
        first.connections,
        first.placement,
        driver,
        steps=tuple(_steps(measurements, climbed)),
        side=tuple(_steps(measurements, [first, variant])[1] for variant in comparable),
        workers=max(variant.workers for variant in (*climbed, *comparable)),
    )


def adjusted(differences: Differences) -> list[float]:
    """Heights that add up, the first 0, from pairwise differences: `differences[i][j]` is i above
    j.
    """
    heights = [sum(row) / len(row) for row in differences]
    return [height - heights[0] for height in heights]


def _comparable(measurements: Measurements, candidates: list[Variant]) -> list[Variant]:
    """The candidates without those that cannot be compared with one below them."""
    kept: list[Variant] = []
    for variant in candidates:
        if all(measurements.paired(variant, lower) for lower in kept):
            kept.append(variant)
    return kept


def _steps(measurements: Measurements, climbed: list[Variant]) -> list[Step]:
    deltas = _pairwise(measurements, climbed, lambda comparison: comparison.delta)
    logs = _pairwise(measurements, climbed, lambda comparison: comparison.log)
    above, log_above = adjusted(_centres(deltas)), adjusted(_centres(logs))
    levels = [interval(measurements.level(variant), CONFIDENCE) for variant in climbed]
    base = levels[0].centre
    steps = []
    for k, variant in enumerate(climbed):
        step = deltas[k][k - 1].moved_to(above[k] - above[k - 1]) if k else levels[0]
        ratio = logs[k][0].moved_to(log_above[k]).exp() if k else _exactly(1.0, levels[0])
        steps.append(_step(variant, levels[k].moved_to(base + above[k]).of_a_time(), step, ratio))
    return steps


def _pairwise(
    measurements: Measurements, climbed: list[Variant], pick: Callable[[PairedComparison], PairedDifference]
) -> list[list[Estimate]]:
    def estimate(upper: Variant, lower: Variant) -> Estimate:
        comparison = measurements.paired(upper, lower)
        assert comparison is not None  # else _comparable had left one of them out
        return pick(comparison).at(CONFIDENCE)

    return [[estimate(upper, lower) for lower in climbed] for upper in climbed]


def _centres(estimates: list[list[Estimate]]) -> Differences:
    return [[estimate.centre for estimate in row] for row in estimates]


def _exactly(value: float, like: Estimate) -> Estimate:
    return Estimate(value, value, value, like.n, 1.0)


def _step(variant: Variant, us: Estimate, step: Estimate, ratio: Estimate) -> Step:
    return Step(
        layer=variant.layer,
        label=variant.label,
        us=us.centre,
        low=us.low,
        high=us.high,
        step_us=step.centre,
        step_low_us=step.low,
        step_high_us=step.high,
        ratio=ratio.centre,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
    )
