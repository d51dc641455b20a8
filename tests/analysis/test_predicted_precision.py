"""The precision that is predicted from slices: monotone, and that of simulated runs."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgperf.analysis import stopping
from pgperf.analysis.predicted_precision import LEAST_SLICES, block_scatter, half_width, pair_scatter
from pgperf.analysis.samples import BLOCKS, Sample, interval

BLOCK_COUNTS = st.integers(2, 99)
COMPARISONS = st.integers(1, 40)
SCATTERS = st.floats(0.001, 1.0)
STEPS = st.lists(st.floats(-0.4, 0.4), min_size=LEAST_SLICES, max_size=80)


@given(STEPS, st.floats(1, 4), st.integers(1, 30), st.floats(0.1, 1e6))
def test_more_scatter_is_never_predicted_narrower_and_the_speed_does_not_matter(
    steps: list[float], times: float, distance: int, us: float
) -> None:
    calm, wild = ([us * math.exp(each * step) for step in steps] for each in (1.0, times))
    narrow, wide = pair_scatter(calm, distance), pair_scatter(wild, distance)
    assert narrow is not None
    assert wide is not None
    assert wide == pytest.approx(times * narrow, rel=1e-6, abs=1e-9)
    assert block_scatter(wide, 5) >= block_scatter(narrow, 5) * (1 - 1e-9)


@given(SCATTERS, BLOCK_COUNTS, COMPARISONS)
@example(1.0, 7, 1)
@example(1.0, 29, 1)
def test_more_blocks_more_rounds_and_fewer_comparisons_are_narrower(
    scatter: float, blocks: int, comparisons: int
) -> None:
    """But for less than 0.4 %: a block more may come with a look, and ranks come in steps."""

    def width(blocks: int) -> float:
        return half_width(scatter, blocks, comparisons, stopping.factor(blocks))

    assert 0 < width(blocks + 1) < 1.004 * width(blocks)
    assert half_width(scatter, blocks, comparisons + 1) > half_width(scatter, blocks, comparisons)
    assert block_scatter(scatter, blocks + 1) < block_scatter(scatter, blocks)


def test_too_few_slices_predict_nothing() -> None:
    assert pair_scatter([100.0] * (LEAST_SLICES - 1)) is None
    assert pair_scatter([100.0] * LEAST_SLICES) == 0.0


@pytest.mark.parametrize("distance", [1, 5, 1000])
def test_the_scatter_of_pairs_is_that_of_normal_slices(distance: int) -> None:
    logs = np.random.default_rng(3).normal(0, 0.1, 4000)
    assert pair_scatter([*np.exp(logs)], distance) == pytest.approx(0.1 * math.sqrt(2), rel=0.05)


def test_slices_that_are_further_apart_scatter_more_where_the_machine_drifts() -> None:
    logs = np.cumsum(np.random.default_rng(4).normal(0, 0.02, 300))
    near, far = (pair_scatter([*np.exp(logs)], distance) for distance in (1, 10))
    assert near is not None
    assert far is not None
    assert far > 2 * near


def test_a_few_interrupted_slices_count_little() -> None:
    logs = np.random.default_rng(5).normal(0, 0.01, 80)
    calm = pair_scatter([*np.exp(logs)])
    logs[[10, 40, 70]] += 1.0
    hit = pair_scatter([*np.exp(logs)])
    assert calm is not None
    assert hit is not None
    assert hit < 0.4 * math.sqrt(2 * np.var(logs))


@pytest.mark.parametrize("comparisons", [1, 4, 14])
@pytest.mark.parametrize("blocks", [6, 8, 15])
def test_the_width_is_the_typical_one_of_the_widest_of_simulated_comparisons(
    blocks: int, comparisons: int
) -> None:
    """All have one base in common, as layers have libpq; both have half of the variance."""
    rng, widths = np.random.default_rng(6), []
    for _run in range(60):
        base = rng.normal(size=blocks)
        logs = [(rng.normal(size=blocks) - base) / math.sqrt(2) for _ in range(comparisons)]
        widths.append(max(interval(Sample(BLOCKS, each, blocks)).half_width() or 0.0 for each in logs))
    assert half_width(1.0, blocks, comparisons) == pytest.approx(np.median(widths), rel=0.17)
