"""The ladder of layers under the headline figure, whose steps add up to it."""

from itertools import pairwise

import pytest

from pgperf.core.records import Variant
from pgperf.runs.headline_ladder import headline_series, ladder_of, rung_series
from pgperf.runs.step_series import Point, Series, Step, series_of, steps_of
from tests.histories import make_history

LAYERS = ("libpq", "psycopg", "django_orm")
TIMES = {"libpq": 50.0, "psycopg": 80.0, "django_orm": 200.0}


def suite(workloads: int, layers: tuple[str, ...] = LAYERS) -> dict[Step, Variant]:
    found = {}
    for name in (f"work-{at}" for at in range(workloads)):
        below = ""
        for layer in layers:
            variant = Variant(
                workload=name, layer=layer, mode="simple", route="tcp", clients=1, connect="persistent",
                placement="apart", named=True,
            )  # fmt: skip
            found[Step(variant.label, below)] = variant
            below = variant.label
    return found


def measured(steps: dict[Step, Variant]) -> dict[Step, Series]:
    """One run, in which each workload takes twice the time of the one before it."""
    times = {
        step.variant: TIMES[variant.layer] * 2 ** int(variant.workload[-1]) for step, variant in steps.items()
    }
    return {
        step: {7: Point(times[step.variant] - times.get(step.below, 0.0), time_us=times[step.variant])}
        for step in steps
    }


@pytest.mark.django_db
def test_the_steps_of_one_workload_lead_down_from_the_headline() -> None:
    runs = [run.pk for run in make_history(3, layers=LAYERS)]
    steps = steps_of(runs[-1])
    ladder = ladder_of(steps)
    assert ladder
    assert ladder.step == Step("django_orm · socket")
    labels = ("django_orm · socket", "psycopg · socket", "libpq · socket", "")
    assert [rung.step for rung in ladder.rungs] == [Step(*pair) for pair in pairwise(labels)]
    times, series = headline_series(ladder, runs), series_of(runs, steps)
    for run in runs:
        total = sum(rung_series(rung, series)[run].us for rung in ladder.rungs)
        assert total == pytest.approx(times[run].us)
        assert times[run].half_width_us == pytest.approx(0.2)


def test_the_steps_of_a_suite_are_those_between_geometric_means() -> None:
    steps = suite(3)
    ladder = ladder_of(steps)
    assert ladder
    assert ladder.label == "django_orm · tcp"
    assert len(ladder.labels) == 3
    assert [rung.step for rung in ladder.rungs] == [
        Step("django_orm · tcp", "psycopg · tcp"), Step("psycopg · tcp", "libpq · tcp"), Step("libpq · tcp"),
    ]  # fmt: skip
    points = [rung_series(rung, measured(steps))[7] for rung in ladder.rungs]
    assert [point.us for point in points] == pytest.approx([240.0, 60.0, 100.0])
    assert [point.ratio for point in points] == [pytest.approx(2.5), pytest.approx(1.6), None]


def test_workloads_with_different_layers_have_no_common_steps() -> None:
    steps = suite(2) | {
        step: variant
        for step, variant in suite(3, ("psycopg", "django_orm")).items()
        if "work-2" in step.variant
    }
    ladder = ladder_of(steps)
    assert ladder
    assert (len(ladder.labels), ladder.rungs) == (3, ())


def test_a_run_without_variants_has_none() -> None:
    assert ladder_of({}) is None
