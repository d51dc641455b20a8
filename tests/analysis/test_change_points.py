"""Change points: found where a level moves, and nowhere else."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.change_points import (
    LEAST_AFTER,
    LEAST_BEFORE,
    WINDOW,
    at_place,
    find,
    least_change,
)

US = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


def noise(n: int, seed: int = 1, correlation: float = 0.0) -> np.ndarray:
    """Of 2 % around 100 µs."""
    random = np.random.default_rng(seed).standard_normal(n)
    random[1:] *= math.sqrt(1 - correlation**2)
    for at in range(1, n):
        random[at] += correlation * random[at - 1]
    return 100 + 2 * random


def places(values: Sequence[float] | np.ndarray) -> list[int]:
    return [change.at for change in find(list(values))]


@pytest.mark.parametrize("size", [-30.0, -8.0, 8.0, 30.0])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_step_is_found_at_its_place(size: float, correlation: float) -> None:
    values = noise(90, correlation=correlation)
    values[50:] += size
    [change] = find(list(values))
    assert abs(change.at - 50) <= 2
    assert change.after - change.before == pytest.approx(size, abs=3)
    assert change.low < change.after - change.before < change.high


@pytest.mark.parametrize(
    ("correlation", "size", "runs"), [(0.0, 40.0, 100), (0.5, 40.0, 100), (0.5, 10.0, 50)]
)
def test_intervals_contain_the_step(correlation: float, size: float, runs: int) -> None:
    """Also of waves, and of a new level that is far from the median of all runs."""
    covered = []
    for seed in range(300):
        values = noise(50 + runs, seed, correlation)
        values[50:] += size
        covered += [change.low <= size <= change.high for change in find(list(values))[:1]]
    assert 0.93 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("seed", range(8))
def test_a_stable_series_has_none(seed: int) -> None:
    assert places(noise(100, seed)) == []
    assert places(noise(100, seed, correlation=0.5)) == []
    assert places(100 + np.random.default_rng(seed).standard_t(3, 100)) == []


@pytest.mark.parametrize("far", [1e2, 1e4, 1e9])
@pytest.mark.parametrize("run", [20, 48, 49])
def test_one_or_two_bad_runs_are_no_change(far: float, run: int) -> None:
    values = noise(50)
    values[run : run + LEAST_AFTER - 1] += far
    assert places(values) == []


def test_several_steps_are_found_in_order() -> None:
    values = noise(120)
    values[40:] += 15
    values[80:] -= 25
    assert places(values) == pytest.approx([40, 80], abs=1)


def test_a_change_is_found_soon_after_it() -> None:
    values = noise(60)
    values[50:] += 20
    assert places(values[:50]) == []
    assert places(values[:56]) == pytest.approx([50], abs=1)


def test_noise_smaller_than_the_runs_own_intervals_is_not_believed() -> None:
    """Values that happen to lie close together say nothing about a step within their intervals."""
    values = [100.0 + 0.01 * (at % 3) for at in range(20)]
    moved = values + [102.0 + 0.01 * (at % 3) for at in range(8)]
    assert places(moved) == [20]
    assert find(moved, [3.0] * len(moved)) == []
    assert find(moved, [None] * len(moved)) != []


def test_intervals_of_few_blocks_are_many_standard_errors_wide() -> None:
    """Of three blocks 4.3 of them: the same intervals of many blocks leave this step in doubt."""
    moved = [100.0 + 0.3 * (at % 3) for at in range(20)] + [102.0 + 0.3 * (at % 3) for at in range(8)]
    half_widths = [3.0] * len(moved)
    assert [change.at for change in find(moved, half_widths, blocks=3)] == [20]
    assert find(moved, half_widths) == []


def test_a_change_below_the_margin_does_not_count() -> None:
    values = [100.0 + 0.01 * (at % 3) for at in range(60)] + [100.5 + 0.01 * (at % 3) for at in range(30)]
    assert places(values) == [60]
    assert find(values, least=least_change(100.0)) == []
    assert least_change(-100.0) == least_change(100.0) == pytest.approx(1.0)


def test_only_the_latest_runs_are_looked_at() -> None:
    values = noise(WINDOW + 60)
    values[:50] += 40
    assert places(values) == []
    values[WINDOW:] += 40
    assert places(values) == pytest.approx([WINDOW], abs=1)


@given(st.lists(US, max_size=LEAST_BEFORE + LEAST_AFTER - 1))
def test_a_short_series_has_none(values: list[float]) -> None:
    assert find(values) == []


@given(st.lists(US, max_size=60))
def test_every_answer_is_a_place_with_a_finite_interval(values: list[float]) -> None:
    found = find(values)
    assert [change.at for change in found] == sorted({change.at for change in found})
    for change in found:
        assert LEAST_BEFORE <= change.at <= len(values) - LEAST_AFTER
        assert math.isfinite(change.low)
        assert math.isfinite(change.high)
        assert change.low <= change.high


@given(US, st.integers(0, 60))
def test_a_constant_series_has_none(level: float, runs: int) -> None:
    assert find([level] * runs) == []


@given(st.floats(1e-3, 1e6), st.floats(-1e6, 1e6))
def test_neither_the_unit_nor_an_offset_matters(factor: float, offset: float) -> None:
    values = noise(40)
    values[30:] += 20
    moved = [factor * (value + offset) for value in values]
    assert places(moved) == places(values) != []


@pytest.mark.parametrize("size", [0.0, 8.0])
def test_at_a_given_place_the_interval_contains_the_step_or_none(size: float) -> None:
    values = noise(60)
    values[30:] += size
    change = at_place([*values], 30)
    assert change.low < size < change.high
    assert (change.low > 0) == (size > 0)
    assert (change.before, change.after) == (np.median(values[:30]), np.median(values[30:]))


def test_intervals_that_hold_together_are_wider() -> None:
    alone, together = (at_place([*noise(30)], 20, among=count) for count in (1, 5))
    assert together.low < alone.low < alone.high < together.high


@pytest.mark.parametrize("at", [0, LEAST_AFTER - 1, 30 - LEAST_AFTER + 1, 30])
def test_a_level_of_too_few_values_is_refused(at: int) -> None:
    with pytest.raises(ValueError, match="too few"):
        at_place([*noise(30)], at)
