"""The signed-rank interval against its definition and against scipy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pgperf.analysis import paired_statistics
from pgperf.analysis.paired_statistics import (
    Estimate,
    hodges_lehmann,
    interpolated_rank_interval,
    log_ratios,
    signed_rank_interval,
)

#: Multiples of 1/64: exact under the additions and doublings below.
values = st.lists(st.integers(-6400, 6400).map(lambda i: i / 64), min_size=6, max_size=25).map(np.array)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95])


@pytest.mark.parametrize("n", range(1, 13))
def test_null_distribution_counts_every_choice_of_ranks(n: int) -> None:
    sums = [sum(chosen) for k in range(n + 1) for chosen in itertools.combinations(range(1, n + 1), k)]
    counted = np.cumsum(np.bincount(sums)) / 2**n
    assert paired_statistics._null_cdf(n) == pytest.approx(counted, rel=1e-12)


@pytest.mark.parametrize("n", [6, 9, 14, 20, 40])
def test_interval_keeps_what_scipys_test_keeps(n: int) -> None:
    """Brute force: a centre is inside exactly if Wilcoxon's exact test of the shifted values does
    not reject it.
    """
    data = np.random.default_rng(n).normal(0.3, 1, n)
    found = signed_rank_interval(data)
    assert found.low is not None
    assert found.high is not None
    for centre in np.linspace(found.low - 0.4, found.high + 0.4, 41):
        p = stats.wilcoxon(data - centre, method="exact").pvalue
        assert (p > 1 - found.confidence + 1e-9) == (found.low < centre < found.high)


@pytest.mark.parametrize(("n", "confidence"), [(6, 0.96875), (8, 0.9609375), (20, 0.951559)])
def test_achieved_confidence(n: int, confidence: float) -> None:
    assert signed_rank_interval(np.arange(n)).confidence == pytest.approx(confidence, abs=1e-6)


@pytest.mark.parametrize("n", range(1, 6))
def test_five_values_have_no_bounds_at_95_percent(n: int) -> None:
    assert signed_rank_interval(np.arange(n, dtype=float)) == Estimate((n - 1) / 2, None, None, n, 0.0)


def test_six_values_give_their_range() -> None:
    found = signed_rank_interval(np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]))
    assert (found.low, found.centre, found.high) == (1.0, 3.5, 6.0)


@given(values, confidences)
def test_interpolation_stays_between_the_neighbouring_ranks(data: np.ndarray, confidence: float) -> None:
    outer, found = (rule(data, confidence) for rule in (signed_rank_interval, interpolated_rank_interval))
    k, _ = paired_statistics._rank(len(data), confidence)
    averages = np.sort(paired_statistics.walsh_averages(data))
    bounds = (outer.low, found.low, averages[k], averages[-k - 1], found.high, outer.high)
    assert None not in bounds
    assert list(bounds[:3]) == sorted(bounds[:3])
    assert list(bounds[3:]) == sorted(bounds[3:])
    assert (found.centre, found.confidence) == (outer.centre, confidence)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_interpolation_is_exact_where_ranks_are(k: int) -> None:
    data = np.random.default_rng(k).normal(size=9)
    exact = signed_rank_interval(data, 1 - 2 * float(paired_statistics._null_cdf(9)[k - 1]))
    found = interpolated_rank_interval(data, exact.confidence)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_interpolation_cannot_go_beyond_the_range() -> None:
    assert interpolated_rank_interval(np.arange(6.0), 0.97) == Estimate(2.5, None, None, 6, 0.0)


def test_many_values_agree_with_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = paired_statistics._rank(paired_statistics.EXACT_PAIRS, 0.95)
    monkeypatch.setattr(paired_statistics, "EXACT_PAIRS", paired_statistics.EXACT_PAIRS - 1)
    approximate = paired_statistics._rank(100, 0.95)
    assert abs(exact[0] - approximate[0]) <= 1
    assert exact[1] == pytest.approx(approximate[1], abs=2e-4)


@given(values, confidences, st.integers(-50, 50), st.sampled_from([0.25, 1.0, 2.0, 8.0]))
def test_shift_and_scale_go_through(data: np.ndarray, confidence: float, shift: int, scale: float) -> None:
    plain, moved = (
        signed_rank_interval(data, confidence),
        signed_rank_interval(data * scale + shift, confidence),
    )
    for before, after in ((plain.centre, moved.centre), (plain.low, moved.low), (plain.high, moved.high)):
        assert before is not None
        assert after == pytest.approx(before * scale + shift, abs=1e-9)


@given(values, confidences)
def test_changing_signs_mirrors_the_interval(data: np.ndarray, confidence: float) -> None:
    plain, mirrored = signed_rank_interval(data, confidence), signed_rank_interval(-data, confidence)
    assert plain.low is not None
    assert plain.high is not None
    assert (mirrored.centre, mirrored.low, mirrored.high) == (-plain.centre, -plain.high, -plain.low)


@given(values)
def test_more_confidence_is_never_narrower_and_all_have_the_centre(data: np.ndarray) -> None:
    found = [signed_rank_interval(data, confidence) for confidence in (0.5, 0.8, 0.9, 0.95)]
    lows = [estimate.low for estimate in found if estimate.low is not None]
    highs = [estimate.high for estimate in found if estimate.high is not None]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert all(low <= found[0].centre <= high for low, high in zip(lows, highs, strict=True))


@given(values, st.integers(0, 24), st.floats(0, 100))
def test_a_longer_value_never_lowers_anything(data: np.ndarray, index: int, more: float) -> None:
    raised = data.copy()
    raised[index % len(data)] += more
    before, after = signed_rank_interval(data), signed_rank_interval(raised)
    assert before.low is not None
    assert after.low is not None
    assert before.high is not None
    assert after.high is not None
    assert after.centre >= before.centre
    assert after.low >= before.low
    assert after.high >= before.high


def test_zeros_and_ties_are_kept() -> None:
    assert signed_rank_interval(np.zeros(8)) == Estimate(0.0, 0.0, 0.0, 8, 0.9609375)
    tied = signed_rank_interval(np.array([0.0, 0, 0, 1, 1, 1]))
    assert (tied.low, tied.centre, tied.high) == (0.0, 0.5, 1.0)


def test_one_bad_value_in_five_hardly_moves_the_centre() -> None:
    assert hodges_lehmann(np.array([1.0, 1.02, 0.98, 1.01, 50.0])) == pytest.approx(1.01, abs=0.02)


def test_log_ratio_is_positive_where_the_variant_is_slower() -> None:
    assert log_ratios(np.array([2.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx(
        [math.log(2), -math.log(2)]
    )


def test_scale_of_ratios_and_moving() -> None:
    estimate = Estimate(0.0, -0.1, 0.2, 6, 0.95)
    assert estimate.exp() == Estimate(1.0, math.exp(-0.1), math.exp(0.2), 6, 0.95)
    assert estimate.moved_to(1.0) == Estimate(1.0, 0.9, 1.2, 6, 0.95)
    assert Estimate(0.0, None, None, 1, 0.0).exp() == Estimate(1.0, None, None, 1, 0.0)
    assert Estimate(0.0, None, None, 1, 0.0).half_width() is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array))
def test_the_centre_is_the_median_of_the_walsh_averages(few: np.ndarray) -> None:
    """Also of so few values that no array is made of them."""
    averages = [(one + other) / 2 for one, other in itertools.combinations_with_replacement(few, 2)]
    assert hodges_lehmann(few) == float(np.median(averages))
