"""The offset of two clocks through a third: the true offset is within the stated error."""

import random

import pytest

from pgperf.runner.remote.clock_offset import ClockOffset, Ping


def ask(offset_ns: int, at_ns: int, there_ns: int, back_ns: int) -> Ping:
    """A question to a clock that is `offset_ns` ahead, with so long a way there and back."""
    return Ping(at_ns, at_ns + there_ns + offset_ns, at_ns + there_ns + back_ns)


def test_equal_travel_times_give_the_exact_offset() -> None:
    assert ClockOffset.best_of([ask(1_000_000, 50, 300, 300)]) == ClockOffset(1_000_000, 300)


def test_the_quickest_answer_counts() -> None:
    slow, quick = ask(5_000, 0, 90_000, 10_000), ask(5_000, 10**9, 120, 80)
    assert ClockOffset.best_of([slow, quick, slow]).error_ns == 100


@pytest.mark.parametrize("seed", range(20))
def test_the_truth_is_inside_the_error(seed: int) -> None:
    chance = random.Random(seed)
    truth = chance.randrange(-(10**18), 10**18)
    pings = [
        ask(truth, at * 10**6, chance.randrange(1, 10**6), chance.randrange(1, 10**6)) for at in range(8)
    ]
    offset = ClockOffset.best_of(pings)
    assert abs(offset.ns - truth) <= offset.error_ns


def test_no_answer_raises_value_error() -> None:
    with pytest.raises(ValueError):
        ClockOffset.best_of([])


def test_clocks_that_drift_apart_are_less_certain() -> None:
    assert ClockOffset.over(ClockOffset(1_000, 10), ClockOffset(1_000, 30)) == ClockOffset(1_000, 30)
    assert ClockOffset.over(ClockOffset(1_000, 10), ClockOffset(2_000, 30)) == ClockOffset(1_510, 520)


def test_a_worse_measurement_that_contains_the_better_one_is_the_bound_of_both() -> None:
    worse, better = ClockOffset(1_000, 50), ClockOffset(1_030, 10)
    assert ClockOffset.over(worse, better) == ClockOffset.over(better, worse) == worse


@pytest.mark.parametrize("seed", range(20))
def test_a_drift_within_the_errors_is_inside_the_error(seed: int) -> None:
    """Whatever the offset was at both measurements, it was in between, and so was the truth."""
    chance = random.Random(seed)
    truths = chance.randrange(1_000), chance.randrange(1_000)
    first, last = (ClockOffset(truth + chance.randrange(-700, 701), 700) for truth in truths)
    over = ClockOffset.over(first, last)
    assert all(abs(over.ns - truth) <= over.error_ns for truth in truths)


def test_only_what_the_errors_do_not_explain_is_sure_to_be_drift() -> None:
    assert ClockOffset.drift_ns(ClockOffset(1_000, 30), ClockOffset(1_050, 30)) == 0
    assert ClockOffset.drift_ns(ClockOffset(1_000, 30), ClockOffset(900, 30)) == 40


def test_the_offset_between_two_clocks_through_the_third() -> None:
    ours, theirs = ClockOffset(7_000, 10), ClockOffset(-2_000, 5)
    assert ours.then_back(theirs) == ClockOffset(9_000, 15)


def test_json_round_trip() -> None:
    offset = ClockOffset(-7, 3)
    assert ClockOffset.from_json(offset.to_json()) == offset


@pytest.mark.parametrize(
    "data", [None, {}, {"ns": 1}, {"ns": "x", "error_ns": 1}, [1, 2], {"ns": None, "error_ns": 0}]
)
def test_json_without_an_offset_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        ClockOffset.from_json(data)
