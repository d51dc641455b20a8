"""benchmarks.loop_cost: both loops run, as the clients have them."""

import numpy as np
import pytest

from benchmarks import loop_cost


@pytest.mark.parametrize("measure", [loop_cost._measure_python, loop_cost._measure_c])
def test_each_pair_has_the_times_of_both_loops(monkeypatch: pytest.MonkeyPatch, measure: object) -> None:
    monkeypatch.setattr(loop_cost, "PYTHON_OPERATIONS", 100)
    monkeypatch.setattr(loop_cost, "C_OPERATIONS", 100)
    assert callable(measure)
    pairs = measure(3)
    assert pairs.shape == (3, 2)
    assert np.all(pairs > 0)
