"""Series of steps over runs, and what is typical of the runs of a level."""

import pytest

from pgperf.runs import step_series
from pgperf.runs.step_series import Point, Step, series_of, typical_ratio, typical_time
from tests.histories import BASE, LABEL, make_history


def points(*ratios: float | None) -> list[Point]:
    return [Point(10.0, ratio=ratio, time_us=None if ratio is None else 50 * ratio) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "typical"),
    [
        ((1.5, 1.1, 1.2), 1.2),
        ((1.5, 1.1, 1.2, 1.4), 1.3),  # between the two in the middle, as the levels in µs are
        ((1.5, None, 1.1, None, 1.2), 1.2),
    ],
)
def test_it_is_the_median_of_what_is_known(ratios: tuple[float | None, ...], typical: float) -> None:
    assert typical_ratio(points(*ratios)) == pytest.approx(typical)
    assert typical_time(points(*ratios)) == pytest.approx(50 * typical)


def test_nothing_known_has_no_ratio_and_no_time() -> None:
    assert typical_ratio(points(None)) is None
    assert typical_time([]) == 0.0


@pytest.mark.django_db
def test_many_variants_are_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [run.pk for run in make_history(5)]
    whole = series_of(numbers, [Step(LABEL, BASE)])
    monkeypatch.setattr(step_series, "_AT_ONCE", 2)
    assert series_of(numbers, [Step(LABEL, BASE)]) == whole
    assert [*whole[Step(LABEL, BASE)]] == numbers


@pytest.mark.django_db
@pytest.mark.parametrize("label", [LABEL, BASE])
def test_a_step_is_disturbed_where_either_of_its_variants_is(label: str) -> None:
    first, second = make_history(2)
    second.variants.filter(label=label).update(verdict={"grade": {"word": "poor"}})
    series = series_of([first.pk, second.pk], [Step(LABEL, BASE), Step(BASE)])
    told = [point.is_disturbed for point in series[Step(LABEL, BASE)].values()]
    assert told == [False, True]
    assert series[Step(BASE)][second.pk].is_disturbed == (label == BASE)
