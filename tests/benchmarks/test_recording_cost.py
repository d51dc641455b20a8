"""benchmarks.recording_cost: both loops run, and the line says what recording adds."""

import numpy as np
import pytest

from benchmarks import recording_cost
from benchmarks.recording_cost import Taken
from pgperf.clients import timed_loop


def test_each_driver_has_a_client() -> None:
    assert set(recording_cost.CLIENTS) == set(recording_cost.MODES)


def test_each_pair_has_the_times_of_both_loops() -> None:
    asked: list[int] = []

    def bare(count: int) -> Taken:
        asked.append(count)
        return Taken(20.0, 9.0)

    found = recording_cost._measured((bare, lambda count: Taken(21.0, 9.5)), 3, 50)
    assert found.tolist() == [[[20.0, 9.0], [21.0, 9.5]]] * 3
    assert asked == [50] * 4  # the first one warms up


def test_the_recorded_loop_is_timed_without_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 100_000, 1_000))
    monkeypatch.setattr(timed_loop, "monotonic_ns", lambda: next(times))
    taken = recording_cost._recorded(lambda: 1)(4)
    assert taken.us == 1.0


def test_a_line_has_what_recording_adds() -> None:
    found = np.array([[[20.0 + at, 9.0], [21.0 + at, 9.5]] for at in range(20)])
    assert recording_cost.row("psycopg2", found).split() == [
        "psycopg2", "29.5", "30.5", "1.00", "1.000", "to", "1.000", "0.50", "0.500", "to", "0.500", "20",
    ]  # fmt: skip
