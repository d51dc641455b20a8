"""Two clocks by way of a third: the truth is always inside the error that is claimed."""

import random

import pytest

from pgperf.runner.remote.clock_offset import ClockOffset, Ping


def ask(offset_ns: int, at_ns: int, there_ns: int, back_ns: int) -> Ping:
    """A question to a clock that is `offset_ns` ahead, with so long a way there and back."""
    return Ping(at_ns, at_ns + there_ns + offset_ns, at_ns + there_ns + back_ns)


def test_a_way_that_is_as_long_there_as_back_gives_the_offset_exactly() -> None:
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


def test_nobody_answered() -> None:
    with pytest.raises(ValueError):
        ClockOffset.best_of([])


def test_clocks_that_drift_apart_are_less_certain() -> None:
    assert ClockOffset.over(ClockOffset(1_000, 10), ClockOffset(1_000, 30)) == ClockOffset(1_000, 30)
    assert ClockOffset.over(ClockOffset(1_000, 10), ClockOffset(2_000, 30)) == ClockOffset(1_500, 530)


def test_from_one_clock_to_another_by_way_of_the_third() -> None:
    ours, theirs = ClockOffset(7_000, 10), ClockOffset(-2_000, 5)
    assert ours.then_back(theirs) == ClockOffset(9_000, 15)


def test_it_travels_as_json() -> None:
    offset = ClockOffset(-7, 3)
    assert ClockOffset.from_json(offset.to_json()) == offset


@pytest.mark.parametrize(
    "data", [None, {}, {"ns": 1}, {"ns": "x", "error_ns": 1}, [1, 2], {"ns": None, "error_ns": 0}]
)
def test_what_is_no_offset_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        ClockOffset.from_json(data)
