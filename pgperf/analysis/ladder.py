"""Ladders: libpq, a driver, the Django cursor and the Django ORM on that driver; what each step costs.

Django climbs on the driver that it uses, and where that is psycopg 3 a second ladder may stand on psycopg2. Both have
libpq for their ground.

The Hodges-Lehmann difference of A and C is not quite that of A and B plus that of B and C. So the steps are fitted:
a rung's height is the average of its differences from all the rungs (Spjøtvoll's adjusted contrasts), and a step is
the difference of two heights. Steps then add up, and where the pairwise differences agreed already, nothing changes.
Each interval keeps its width and moves with its centre. Ratios are fitted in the same way, as logarithms.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Comparison, Measurements, PairedComparison
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.samples import interval
from pgperf.core.layers import LAYERS, Layer, Rung
from pgperf.core.records import Variant

Differences = list[list[float]]


def climbs(variants: Sequence[Variant], django_driver: str) -> dict[str, list[Variant]]:
    """Driver -> those of the variants that stand on each other, lowest first; Django's own driver comes first.

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


def ladders(
    measurements: Measurements, variants: Sequence[Variant], django_driver: str
) -> list[dict[str, Any]]:
    """The ladders of variants that differ in their layer only, as `summary` stores them; none without a measured rung.

    `us` is the rung's time per operation, `us[k] = step_us[0] + ... + step_us[k]` (the first rung is its own step);
    `low`/`high` is the interval of `us`; ratios are over the first rung. `side` has the same keys for the layers
    beside the ladders, each one step above the first rung of the first ladder.
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


def _ladder(
    measurements: Measurements, driver: str, climbed: list[Variant], beside: list[Variant]
) -> dict[str, Any]:
    first = climbed[0]
    return {
        "workload": first.workload,
        "route": first.route,
        "mode": first.mode,
        "clients": first.clients,
        "placement": first.placement,
        "driver": driver,
        "steps": _steps(measurements, climbed),
        "side": [
            _steps(measurements, [first, variant])[1]
            for variant in beside
            if measurements.compare(variant, first)
        ],
    }


def adjusted(differences: Differences) -> list[float]:
    """Heights that add up, the first 0, from pairwise differences: `differences[i][j]` is i above j."""
    heights = [sum(row) / len(row) for row in differences]
    return [height - heights[0] for height in heights]


def _comparable(measurements: Measurements, candidates: list[Variant]) -> list[Variant]:
    """The candidates without those that cannot be compared with one below them."""
    kept: list[Variant] = []
    for variant in candidates:
        if all(measurements.compare(variant, lower) for lower in kept):
            kept.append(variant)
    return kept


def _steps(measurements: Measurements, climbed: list[Variant]) -> list[dict[str, Any]]:
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
    measurements: Measurements, climbed: list[Variant], pick: Callable[[Comparison], PairedComparison]
) -> list[list[Estimate]]:
    def estimate(upper: Variant, lower: Variant) -> Estimate:
        comparison = measurements.compare(upper, lower)
        assert comparison is not None  # else _comparable had left one of them out
        return pick(comparison).at(CONFIDENCE)

    return [[estimate(upper, lower) for lower in climbed] for upper in climbed]


def _centres(estimates: list[list[Estimate]]) -> Differences:
    return [[estimate.centre for estimate in row] for row in estimates]


def _exactly(value: float, like: Estimate) -> Estimate:
    return Estimate(value, value, value, like.n, 1.0)


def _step(variant: Variant, us: Estimate, step: Estimate, ratio: Estimate) -> dict[str, Any]:
    return {
        "layer": variant.layer,
        "label": variant.label,
        "us": us.centre,
        "low": us.low,
        "high": us.high,
        "step_us": step.centre,
        "step_low_us": step.low,
        "step_high_us": step.high,
        "ratio": ratio.centre,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
    }
