"""The bars on late operations of an open loop."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from benchmarks import schedule_accuracy
from benchmarks.c_program import compiled
from pgperf.core.layers import LAYERS


@pytest.mark.parametrize(
    ("layer", "late_us", "holds"),
    [
        ("libpq", 99.0, True),
        ("libpq", 101.0, False),
        ("django_orm", 999.0, True),
        ("asyncpg", 1001.0, False),
        ("http", 999.0, True),
    ],
)
def test_the_bar_is_that_of_the_client(
    layer: str, late_us: float, holds: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two operations in a hundred are late: the 99th percentile is one of them."""
    lag_us = np.repeat([10.0, late_us], [980, 20])
    assert schedule_accuracy._row(layer, lag_us) is holds
    assert "of 1000 operations" in capsys.readouterr().out


def test_both_event_loops_are_measured() -> None:
    measured = {*schedule_accuracy.SIMPLE, *schedule_accuracy.EXTENDED}
    assert {name for name, layer in LAYERS.items() if layer.event_loop == "uvloop"} <= measured


def test_the_timer_alone_wakes_up_as_often_as_a_client() -> None:
    own: Any = SimpleNamespace(clients=[psutil.Process()])
    with compiled(schedule_accuracy.TIMER) as program:
        late_us = schedule_accuracy.BareTimer(program, rate=1000.0, slot_s=1).late_us(own)
    assert len(late_us) == 1000
    assert 0 <= late_us.min() < 100_000


def test_a_late_timer_is_named_with_a_bar_that_is_missed() -> None:
    assert schedule_accuracy._why(np.full(100, 99.0)) == ""
    assert "timer alone is 4,213 µs late" in schedule_accuracy._why(np.full(100, 4213.0))
