"""The bars on late operations of an open loop."""

import numpy as np
import pytest

from benchmarks import schedule_accuracy
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
