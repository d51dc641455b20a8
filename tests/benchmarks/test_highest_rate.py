"""The bars on searches for the highest rate."""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import highest_rate
from pgperf.analysis.rate_search import Outcome


def search(low: float | None = 900.0, high: float | None = 1100.0, **more: Any) -> Any:
    found = {"outcome": Outcome.FOUND, "rate": 1000.0, "share": 0.9, "low": low, "high": high}
    return SimpleNamespace(**{**found, **more})


def without_number(outcome: Outcome) -> Any:
    return search(None, None, outcome=outcome, rate=None, share=None)


QUIET = [search(), search(1050.0, 1200.0)]


def test_the_bars_hold() -> None:
    assert highest_rate._holds(QUIET, without_number(Outcome.DISTURBED), misses=0)


@pytest.mark.parametrize("outcome", sorted({*Outcome} - {Outcome.FOUND, Outcome.DISTURBED}))
def test_another_reason_than_the_load_is_a_wrong_one(outcome: Outcome) -> None:
    assert not highest_rate._holds(QUIET, without_number(outcome), misses=0)


@pytest.mark.parametrize(
    ("searches", "beside_load"),
    [
        ([*QUIET, without_number(Outcome.ALL_HOLD)], without_number(Outcome.DISTURBED)),
        ([*QUIET, search(1101.0, 1300.0)], without_number(Outcome.DISTURBED)),
        ([*QUIET, search(share=1.03)], without_number(Outcome.DISTURBED)),
        (QUIET, search()),
    ],
    ids=["none found", "no common rate", "more than the closed loop", "a number beside load"],
)
def test_each_bar_can_break(searches: list[Any], beside_load: Any) -> None:
    assert not highest_rate._holds(searches, beside_load, misses=0)
