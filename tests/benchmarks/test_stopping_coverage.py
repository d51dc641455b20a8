"""The simulation of runs that stop early: its arithmetic, and a small seeded run of it."""

import numpy as np
import pytest

from benchmarks.stopping_coverage import COMPARISONS, HIGH, LOW, SHAPES, Cell, Runs, holds, log_ratios
from pgperf.analysis import stopping


@pytest.fixture(scope="module")
def normal() -> Runs:
    return Runs(SHAPES["normal"], 15, 600)


def test_an_easy_target_ends_at_the_first_look_and_an_impossible_one_with_the_budget(normal: Runs) -> None:
    assert normal.coverage(9, stopping.factor).blocks == 6
    assert normal.coverage(0, stopping.factor).blocks == 15


def test_wider_intervals_pay_for_the_looks(normal: Runs) -> None:
    """The same draws: without wider intervals they cover less often."""
    widened, plain = (normal.coverage(0.65, rule) for rule in (stopping.factor, lambda _blocks: 1.0))
    assert plain.coverage < widened.coverage
    assert LOW - 0.03 < widened.coverage < HIGH + 0.03


def test_a_run_ends_at_the_first_look_that_is_narrow_enough() -> None:
    """Blocks without scatter are known at once, also with no time for a second look."""
    still = Runs(lambda _rng, values: np.zeros_like(values), 8, 3)
    assert [still.coverage(0.001, stopping.factor, count) for count in COMPARISONS] == [Cell(1.0, 0.0, 6)] * 3


@pytest.mark.parametrize("name", SHAPES)
def test_comparisons_with_one_reference_are_half_correlated(name: str) -> None:
    values = log_ratios(SHAPES[name], (20_000, 2, 3))
    assert values.std() == pytest.approx(1, abs=0.05)
    assert np.corrcoef(values[:, 0, 0], values[:, 0, 2])[0, 1] == pytest.approx(0.5, abs=0.06)
    assert np.corrcoef(values[:, 0, 0], values[:, 1, 0])[0, 1] == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize(("name", "reach"), [("normal", 1.960), ("heavy tails", 1.963), ("uniform", 1.645)])
def test_a_comparison_scatters_as_its_name_says(name: str, reach: float) -> None:
    """95 % are within so many standard deviations; of t with 4 degrees of freedom, 2.776 / sqrt(2)."""
    values = np.abs(log_ratios(SHAPES[name], (40_000, 1, 1)))
    assert np.quantile(values, 0.95) == pytest.approx(reach, abs=0.04)
    assert (np.quantile(values, 0.999) > 4) == (name == "heavy tails")


def test_a_run_goes_on_until_its_widest_comparison_is_narrow_enough() -> None:
    """All but the first scatter 800 times as much."""
    unlike = Runs(lambda _rng, values: values * np.array([1, *[800] * 7]), 8, 100)
    assert unlike.coverage(9, stopping.factor, 1).blocks == 6
    assert unlike.coverage(9, stopping.factor, 3).blocks == unlike.coverage(9, stopping.factor, 8).blocks == 8


def test_more_comparisons_stop_later_and_cover_in_as_many_cases(normal: Runs) -> None:
    found = [normal.coverage(0.65, stopping.factor, count) for count in COMPARISONS]
    assert found[0].blocks < found[1].blocks < found[2].blocks
    assert all(LOW - 0.03 < cell.coverage < HIGH + 0.03 for cell in found)


def test_the_error_counts_runs_and_not_their_intervals(normal: Runs) -> None:
    """Eight copies of one comparison say no more than one."""
    copies = Runs(lambda _rng, values: values[:, :, :1].repeat(8, axis=2), 8, 200)
    one, eight = (copies.coverage(0.8, stopping.factor, count) for count in (1, 8))
    assert (eight.coverage, eight.error, eight.blocks) == pytest.approx((one.coverage, one.error, one.blocks))
    assert one.error == pytest.approx((one.coverage * (1 - one.coverage) / 200) ** 0.5)
    assert normal.coverage(9, stopping.factor, 8).error < normal.coverage(9, stopping.factor, 1).error


def test_a_cell_shows_its_error() -> None:
    assert str(Cell(0.951, 0.0024, 11.2)) == "95.1 % ± 0.24 % (11)"


def test_the_bar_has_two_sides() -> None:
    assert holds([Cell(0.95, 0.002, 6)], 8000)
    assert not holds([Cell(0.95, 0.002, 6), Cell(0.92, 0.002, 6)], 8000)
    assert not holds([Cell(0.985, 0.002, 6)], 8000)
