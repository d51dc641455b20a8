"""What is typical of the runs of a level."""

import pytest

from pgperf.runs.step_series import Point, typical_ratio, typical_time


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
