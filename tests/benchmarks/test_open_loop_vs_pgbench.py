"""benchmarks.open_loop_vs_pgbench: which operations found the client idle."""

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

