import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import latency

from .synthetic import block, timed_block, variant


def lognormal(n: int, seed: int = 1, centre_ns: float = 60_000) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(math.log(centre_ns), 0.3, n).astype(np.uint64)


@given(st.lists(st.integers(0, 1 << 45), max_size=300))
def test_fold_counts_as_the_library_does(durations: list[int]) -> None:
    one_by_one = latency.empty()
    for duration in durations:
        one_by_one.record_value(min(max(duration, latency.LOWEST_NS), latency.HIGHEST_NS))
    folded = latency.merge([latency.fold(np.array(durations, dtype=np.uint64))])
    assert folded.get_total_count() == len(durations)
    assert list(folded.counts) == list(one_by_one.counts)


def test_percentiles_are_at_most_a_thousandth_too_high() -> None:
    durations = np.sort(lognormal(50_000))
    histogram = latency.merge([latency.fold(durations)])
    for percentile in (50.0, 90.0, 99.0, 99.9):
        exact = durations[round(percentile / 100 * len(durations)) - 1]
        assert exact <= (latency.percentile_ns(histogram, percentile) or 0) <= exact * 1.001


def test_merging_equals_folding_everything_at_once() -> None:
    parts = [lognormal(1000, seed) for seed in range(4)]
    merged = latency.merge([latency.fold(part) for part in parts])
    assert list(merged.counts) == list(latency.merge([latency.fold(np.concatenate(parts))]).counts)


@pytest.mark.parametrize(("percentile", "enough"), [(50.0, 1), (95.0, 1), (99.0, 1_000), (99.9, 10_000)])
def test_high_percentiles_need_samples(percentile: float, enough: int) -> None:
    few = latency.merge([latency.fold(lognormal(enough - 1))])
    assert latency.percentile_ns(few, percentile) is None
    assert latency.percentile_ns(latency.merge([latency.fold(lognormal(enough))]), percentile)


def test_a_block_of_200_000_samples_stays_small() -> None:
    assert len(latency.fold(lognormal(200_000))) < 6_000


def test_missing_histograms_count_as_empty() -> None:
    assert latency.merge([b"", latency.fold(np.zeros(0, dtype=np.uint64))]).get_total_count() == 0


def test_summary_is_exact_but_for_the_percentiles() -> None:
    parts = [lognormal(3000, 2), lognormal(2000, 3)]
    both = np.concatenate(parts).astype(np.float64) / 1000
    found = latency.summary_us([timed_block(variant(), number, part) for number, part in enumerate(parts)])
    assert list(found) == ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "max"]
    assert found["min"] == both.min()
    assert found["max"] == both.max()
    assert found["mean"] == pytest.approx(both.mean(), rel=1e-12)
    assert found["stddev"] == pytest.approx(both.std(), rel=1e-6)
    assert found["p99"] == pytest.approx(np.percentile(both, 99), rel=0.002)


def test_percentiles_stay_between_minimum_and_maximum() -> None:
    found = latency.summary_us([timed_block(variant(), 0, np.full(2000, 123_457, dtype=np.uint64))])
    assert set(found.values()) == {0.0, 123.457}
    assert found["stddev"] == 0.0


def test_variation_is_relative_to_the_mean() -> None:
    assert latency.variation({"mean": 200.0, "stddev": 50.0}) == 0.25
    assert latency.variation({"mean": 200.0, "stddev": 0.0}) == 0.0
    for unknown in ({}, {"mean": None, "stddev": None}, {"mean": 200.0, "stddev": None}):
        assert latency.variation(unknown) is None


def test_few_samples_have_no_p99() -> None:
    found = latency.summary_us([timed_block(variant(), 0, lognormal(999))])
    assert found["p99"] is None
    assert found["p95"] is not None


def test_no_block_has_no_latency() -> None:
    assert set(latency.summary_us([]).values()) == {None}
    assert set(latency.summary_us([block(variant(), 0, [])]).values()) == {None}


def test_phases_are_summarised_like_whole_operations() -> None:
    parts = [lognormal(3000, 4), lognormal(2000, 5)]
    blocks = [
        replace(timed_block(variant(), number, part), phases={"connect": latency.sums(part)})
        for number, part in enumerate(parts)
    ]
    assert latency.phases_us(blocks) == {"connect": latency.summary_us(blocks)}
    assert latency.phases_us([timed_block(variant(), 0, parts[0])]) == {}
    assert set(
        latency.phases_us([replace(blocks[0], phases={"close": latency.sums(parts[0][:0])})])[
            "close"
        ].values()
    ) == {None}
