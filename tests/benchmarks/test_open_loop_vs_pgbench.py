"""benchmarks.open_loop_vs_pgbench: which operations found the client idle, and when both agree."""

import numpy as np
import pytest

from benchmarks import open_loop_vs_pgbench as script
from benchmarks.open_loop_vs_pgbench import Timed


def timed(due_us: list[float], latency_us: list[float], lag_us: list[float]) -> Timed:
    return Timed(*map(np.array, (due_us, latency_us, lag_us)))


def test_idle_operations_were_due_when_the_one_before_had_ended() -> None:
    slot = timed([0, 400, 500, 900], [320, 330, 300, 320], [300, 310, 280, 300])
    assert slot.idle_lag_us() == pytest.approx(310, abs=1)  # those of 400 and 900


def test_a_client_that_wakes_up_late_exceeds_the_bar() -> None:
    late_us = 3 * script.IDLE_LAG_US
    slot = timed([0, 1000, 2000], [late_us + 20] * 3, [late_us] * 3)
    assert slot.idle_lag_us() == late_us


def test_a_client_that_is_never_idle_fails_the_bar() -> None:
    assert timed([0, 10, 20], [50, 60, 70], [0, 40, 50]).idle_lag_us() > script.IDLE_LAG_US


@pytest.mark.parametrize(
    ("share", "later_us", "close"),
    [(0.1, 20, True), (0.1, 50, False), (0.5, 50, False), (0.9, 45, True), (0.9, 60, False)],
)
def test_the_default_timer_slack_is_outside_where_little_waits(
    share: float, later_us: float, close: bool
) -> None:
    due_us = np.arange(0, 10_000, 100.0)
    theirs = timed([*due_us], [30.0] * len(due_us), [5.0] * len(due_us))
    ours = theirs._replace(latency_us=theirs.latency_us + later_us, lag_us=theirs.lag_us + later_us)
    assert script._row(share, 10_000.0, [ours], [theirs]) is close
