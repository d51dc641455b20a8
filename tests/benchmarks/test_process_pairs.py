"""benchmarks.process_pairs: the luck of a process is in the interval."""

import pytest

from benchmarks.process_pairs import ratio

LUCK = (0.97, 0.98, 0.99, 1.0, 1.0, 1.01, 1.02, 1.03)


def test_slices_that_agree_do_not_hide_processes_that_differ() -> None:
    found = ratio([[100.0 * luck] * 5 for luck in LUCK], [[100.0] * 5] * 8)
    assert found.centre == pytest.approx(1.0, abs=0.001)
    assert found.n == 8
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.985
    assert found.high > 1.015


def test_a_constant_ratio_has_a_narrow_interval() -> None:
    theirs = [[100.0, 110.0], [90.0, 105.0], [95.0, 101.0]]
    found = ratio([[1.5 * us for us in own] for own in theirs], theirs)
    assert (found.low, found.centre, found.high) == pytest.approx((1.5, 1.5, 1.5))
