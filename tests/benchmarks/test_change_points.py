"""benchmarks.change_points: when its bar holds."""

from dataclasses import replace

import pytest

from benchmarks import change_points
from benchmarks.change_points import CASES, Figures

INDEPENDENT, OUTLIERS = CASES[0], CASES[2]
TRIALS = 1_000


def figures(alarms: int = 0, found: int = TRIALS, covered: int | None = None) -> Figures:
    """Of 1,000 series; the steps that are found are found after 8 runs."""
    return Figures(alarms, [8] * found + [9] * (TRIALS - found), covered)


@pytest.mark.parametrize(("alarms", "holds"), [(10, True), (16, True), (17, False)])
def test_alarms_fail_the_bar_only_with_their_whole_interval(alarms: int, holds: bool) -> None:
    """A share beyond the bar whose interval reaches it passes; docs/history.md calls that open."""
    assert figures(alarms).holds(OUTLIERS) is holds
    assert figures(alarms).holds(INDEPENDENT) is holds


@pytest.mark.parametrize(("found", "holds"), [(900, True), (882, True), (870, False)])
def test_steps_that_are_found_too_late_fail_it(found: int, holds: bool) -> None:
    assert figures(found=found).holds(INDEPENDENT) is holds
    assert figures(found=found).holds(replace(INDEPENDENT, within=15))
    assert figures(found=found).holds(OUTLIERS), "no bar for its delays"


def test_intervals_that_lack_the_step_fail_it() -> None:
    assert figures(covered=940).holds(INDEPENDENT)
    assert not figures(covered=930).holds(INDEPENDENT)


def test_the_same_seed_finds_the_same_and_holds_the_bar() -> None:
    found = change_points.own(INDEPENDENT, seed=880088, trials=12)
    assert found == change_points.own(INDEPENDENT, seed=880088, trials=12)
    assert (found.alarms, found.found, found.found_within(15)) == (0, 12, 12)
    assert found.holds(INDEPENDENT)
    assert not replace(found, alarms=12).holds(INDEPENDENT)
