"""Many small runs of one benchmark, without running anything."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from pgperf.core.records import Variant
from pgperf.models import ComparisonResult, Run, VariantResult
from pgperf.runs import changes
from tests import factories

LIBPQ_US = 70.0
LABEL, BASE = "psycopg · socket", "libpq · socket"
#: Noise of a few per mille that does not repeat soon.
WAVE = (0.0, 0.11, -0.13, 0.07, -0.02, 0.16, -0.09, 0.03, -0.15, 0.12, -0.06)


def make_history(
    count: int,
    step_us: Callable[[int], float] = lambda at: 10.0,
    environment: Callable[[int], dict[str, Any]] = lambda at: factories.ENVIRONMENT,
    layers: Sequence[str] = ("libpq", "psycopg"),
    **fields: Any,
) -> list[Run]:
    """Runs of two layers, one a day; the upper layer takes `step_us` of the run's place more."""
    with transaction.atomic():  # one commit for all
        return [
            _run(at, step_us(at) + WAVE[at % len(WAVE)], environment(at), layers, fields)
            for at in range(count)
        ]


def make_slower(
    step_us: Callable[[int], float] = lambda at: 10.0 if at < 18 else 22.0,
    count: int = 24,
    last: timedelta = timedelta(0),
    every: timedelta = timedelta(hours=12),
    **fields: Any,
) -> list[Run]:
    """Runs at equal intervals, the last one so long ago, whose changes are found as they end."""
    runs, now = make_history(count, step_us, **fields), timezone.now()
    for at, run in enumerate(runs):
        run.finished_at = now - last - every * (count - 1 - at)
        run.save()
        changes.record(run)
    return runs


def _run(
    at: int, step_us: float, environment: dict[str, Any], layers: Sequence[str], fields: dict[str, Any]
) -> Run:
    run = factories.make_run(environment=environment, **fields)
    run.finished_at = (run.finished_at or run.requested_at) + timedelta(days=at)
    run.save()
    base_us = LIBPQ_US + WAVE[(at + 4) % len(WAVE)]
    lower, *uppers = [
        _row(run, place, layer, base_us + place * step_us) for place, layer in enumerate(layers)
    ]
    for place, upper in enumerate(uppers):
        _comparison(run, place, upper, lower)
        lower = upper
    return run


def _row(run: Run, position: int, layer: str, us: float) -> VariantResult:
    variant = Variant(
        workload="site-by-domain", layer=layer, mode="simple", route="socket", clients=1, connect="persistent",
        placement="apart",
    )  # fmt: skip
    return VariantResult.objects.create(
        run=run, position=position, label=variant.label, workload=variant.workload, layer=layer, mode="simple",
        route="socket", clients=1, placement="apart", connect="persistent", us_per_op=us, us_per_op_low=us - 0.2,
        us_per_op_high=us + 0.2, ops_per_s=1e6 / us,
    )  # fmt: skip


def _comparison(run: Run, position: int, upper: VariantResult, lower: VariantResult) -> None:
    assert upper.us_per_op
    assert lower.us_per_op
    ratio, delta = upper.us_per_op / lower.us_per_op, upper.us_per_op - lower.us_per_op
    ComparisonResult.objects.create(
        run=run, position=position, variant=upper, baseline=lower, ratio=ratio, low=ratio - 0.01, high=ratio + 0.01,
        delta_us=delta, delta_low_us=delta - 0.2, delta_high_us=delta + 0.2, outcome="differs", pairs=6,
        sample="blocks",
    )  # fmt: skip
