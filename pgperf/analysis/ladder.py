"""The ladder: libpq, the driver Django uses, the Django cursor, the Django ORM; what each step costs.

The Hodges-Lehmann difference of A and C is not quite that of A and B plus that of B and C. So the steps are fitted:
a rung's height is the average of its differences from all the rungs (Spjøtvoll's adjusted contrasts), and a step is
the difference of two heights. Steps then add up, and where the pairwise differences agreed already, nothing changes.
Each interval keeps its width and moves with its centre. Ratios are fitted in the same way, as logarithms.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pgperf.analysis.contrasts import Comparison, Contrast, Measurements
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.pairs import Estimate
from pgperf.analysis.samples import interval
from pgperf.records import Variant

Differences = list[list[float]]


def rungs(variants: Sequence[Variant], django_driver: str) -> list[Variant]:
    """Those of the variants that stand on each other, lowest first. Other drivers are side rungs, not in here."""
    order = ("libpq", django_driver, "django_cursor", "django_orm")
    by_layer = {variant.layer: variant for variant in variants}
    return [by_layer[layer] for layer in order if layer in by_layer]


def ladder(
    measurements: Measurements, variants: Sequence[Variant], django_driver: str
) -> dict[str, Any] | None:
    """The ladder of variants that differ in their layer only, as `summary` stores it; None if no rung was measured.

    `us` is the rung's time per operation, `us[k] = step_us[0] + ... + step_us[k]` (the first rung is its own step);
    `low`/`high` is the interval of `us`; ratios are over the first rung. `side` has the same keys for the layers
    beside the ladder, each one step above the first rung.
    """
    measured = [variant for variant in variants if variant in measurements]
    climbed = _comparable(measurements, rungs(measured, django_driver))
    if not climbed:
        return None
    first = climbed[0]
    beside = [
        v for v in measured if v not in rungs(measured, django_driver) and measurements.compare(v, first)
    ]
    return {
        "route": first.route,
        "mode": first.mode,
        "clients": first.clients,
        "placement": first.placement,
        "steps": _steps(measurements, climbed),
        "side": [_steps(measurements, [first, variant])[1] for variant in beside],
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
        steps.append(_step(variant, levels[k].moved_to(base + above[k]), step, ratio))
    return steps


def _pairwise(
    measurements: Measurements, climbed: list[Variant], pick: Callable[[Comparison], Contrast]
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
