"""The parts of one operation's time as one bar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.reports.dashboard.time_bar import whole_percents


@pytest.mark.parametrize(
    ("shares", "whole"),
    [
        ([], []),
        ([1.0], [100]),
        ([0.457, 0.157, 0.386], [46, 16, 38]),  # rounded alone, they are 101
        ([1 / 3, 1 / 3, 1 / 3], [34, 33, 33]),
        ([0.996, 0.004], [100, 0]),
    ],
)
def test_whole_percentages_of_a_bar(shares: list[float], whole: list[int]) -> None:
    assert whole_percents(shares) == whole


@given(st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=1, max_size=14))
def test_they_add_up_to_100_and_each_is_next_to_its_share(times_us: list[float]) -> None:
    shares = [us / sum(times_us) for us in times_us]
    whole = whole_percents(shares)
    assert sum(whole) == 100
    assert all(abs(each - 100 * share) <= 1 for each, share in zip(whole, shares, strict=True))
