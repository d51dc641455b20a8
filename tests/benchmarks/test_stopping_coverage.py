"""The simulation of runs that stop early: its arithmetic, and a small seeded run of it."""

import numpy as np
import pytest

from benchmarks.stopping_coverage import HIGH, LOW, SHAPES, Cell, Runs, holds
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
    still = Runs(lambda _rng, shape: np.zeros(shape), 8, 3)
    assert still.coverage(0.001, stopping.factor) == Cell(1.0, 6)


def test_the_bar_has_two_sides() -> None:
    assert holds([Cell(0.95, 6)], 8000)
    assert not holds([Cell(0.95, 6), Cell(0.92, 6)], 8000)
    assert not holds([Cell(0.985, 6)], 8000)
