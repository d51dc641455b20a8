"""The schedule of an open loop: its rate, its distribution, and what a window holds of it."""

from itertools import islice, pairwise
from math import log, sqrt

from hypothesis import given, settings
from hypothesis import strategies as st

from pgperf.core.protocol import MAX_RATE, MIN_RATE, SCHEDULES, Slice
from pgperf.core.schedule import due_in, intended_starts, uniform

OPERATIONS = 2_000
few = settings(max_examples=20, deadline=None)
rates = st.floats(1.0, MAX_RATE)
seeds = st.integers(0, 2**63 - 1)
kinds = st.sampled_from(SCHEDULES)


def of(rate: float, kind: str = "constant", seed: int = 0, **fields: int) -> Slice:
    return Slice(seq=1, lead_in_ns=0, rate=rate, schedule=kind, seed=seed, **fields)


def starts(request: Slice, operations: int = OPERATIONS) -> list[int]:
    return list(islice(intended_starts(request), operations))


def gaps(request: Slice) -> list[int]:
    return [later - before for before, later in pairwise(starts(request))]


@few
@given(rate=st.floats(MIN_RATE, MAX_RATE), offset_ns=st.integers(0, 10**12))
def test_a_constant_schedule_has_equal_gaps_to_the_nanosecond(rate: float, offset_ns: int) -> None:
    request = of(rate, offset_ns=offset_ns)
    assert starts(request)[0] == offset_ns
    assert all(abs(gap - 1e9 / rate) <= 1 for gap in gaps(request))
    assert abs(starts(request)[-1] - offset_ns - (OPERATIONS - 1) * 1e9 / rate) <= 1


@few
@given(rate=rates, seed=seeds)
def test_an_exponential_schedule_has_the_rate_on_average(rate: float, seed: int) -> None:
    """The mean of n gaps deviates by 1/sqrt(n) of itself; six of these are one in 500 million."""
    mean_ns = starts(of(rate, "exponential", seed))[-1] / OPERATIONS
    assert abs(mean_ns * rate / 1e9 - 1) < 6 / sqrt(OPERATIONS)


@few
@given(rate=st.floats(1.0, 10_000.0), seed=seeds)
def test_exponential_gaps_have_the_quantiles_of_their_distribution(rate: float, seed: int) -> None:
    found = sorted(gap * rate / 1e9 for gap in gaps(of(rate, "exponential", seed)))
    for share in (0.1, 0.5, 0.9, 0.99):
        below = sum(gap <= -log(1 - share) for gap in found) / len(found)
        assert abs(below - share) < 6 * sqrt(share * (1 - share) / len(found))


@few
@given(rate=rates, kind=kinds, seed=seeds)
def test_a_schedule_is_a_function_of_its_seed_and_never_goes_back(rate: float, kind: str, seed: int) -> None:
    request = of(rate, kind, seed)
    assert starts(request, 200) == starts(request, 200)
    assert all(gap >= 0 for gap in gaps(request))


@few
@given(seed=st.integers(0, 2**63 - 2))
def test_clients_with_adjacent_seeds_have_other_gaps(seed: int) -> None:
    one, other = (gaps(of(1000.0, "exponential", each)) for each in (seed, seed + 1))
    assert sum(a == b for a, b in zip(one, other, strict=True)) < OPERATIONS / 100


@few
@given(rate=rates, kind=kinds, seed=seeds, window_ns=st.integers(0, 10**7), offset_ns=st.integers(0, 10**7))
def test_a_window_holds_exactly_what_is_due_before_its_end(
    rate: float, kind: str, seed: int, window_ns: int, offset_ns: int
) -> None:
    request = of(rate, kind, seed, window_ns=window_ns, offset_ns=offset_ns)
    most = int(rate * window_ns / 1e9) * 10 + 100
    due = due_in(request, most)
    assert due == [start for start in starts(request, most) if start < window_ns]
    assert due_in(request._replace(count=7), 5) == starts(request, 5)
    assert due_in(request._replace(count=7), 100) == starts(request, 7)


@few
@given(seed=seeds, number=st.integers(1, 2**40))
def test_uniform_numbers_have_a_logarithm(seed: int, number: int) -> None:
    assert 0 < uniform(seed, number) <= 1
