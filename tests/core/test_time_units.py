"""Units of time as people read them."""

import pytest

from pgperf.core.time_units import MICROSECONDS, MILLISECONDS, SECONDS, TimeUnit, decimals, unit_of


@pytest.mark.parametrize(
    ("times_us", "unit"),
    [
        ([], MICROSECONDS),
        ([None, 0.0, 9_999.4], MICROSECONDS),
        ([9_999.5], MILLISECONDS),
        ([3.2, -170_000.0], MILLISECONDS),
        ([9_999_400.0], MILLISECONDS),
        ([10_000_000.0, 1.0, None], SECONDS),
    ],
)
def test_the_longest_time_decides_the_unit(times_us: list[float | None], unit: TimeUnit) -> None:
    assert unit_of(times_us) is unit


@pytest.mark.parametrize(
    ("value", "few", "many"),
    [(123.4, 0, 0), (-12.3, 1, 1), (1.0, 2, 2), (0.215, 2, 3), (0.0032, 2, 5), (0, 2, 2)],
)
def test_a_number_has_three_digits_unless_it_would_need_too_many_decimals(
    value: float, few: int, many: int
) -> None:
    assert (decimals(value, 2), decimals(value, 5)) == (few, many)
