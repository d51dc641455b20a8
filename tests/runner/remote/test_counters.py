"""The growth of remote counters in slices, against a simulated machine with known CPU times."""

import random
import zlib
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest

from pgperf.core.exceptions import AgentFailed
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runner.remote.counters import UNKNOWN, CounterInterval, CounterSamples, growth

MS = 1_000_000


def turns(count: int, length_ns: int, gap_ns: int, owners: Sequence[str]) -> list[CounterInterval]:
    """Slices one after the other, the owners taking turns."""
    begins = [200 * MS + at * (length_ns + gap_ns) for at in range(count)]
    return [
        CounterInterval(begin, begin + length_ns, frozenset({owners[at % len(owners)]}))
        for at, begin in enumerate(begins)
    ]


def machine(
    intervals: Sequence[CounterInterval], rates: Sequence[float], times: Sequence[int]
) -> dict[str, list[int]]:
    """Each column's CPU time at those times.

    It grows at an interval's rate inside it, and not in between.
    """
    names = {name for interval in intervals for name in interval.columns}
    worked = list(zip(intervals, rates, strict=True))
    return {
        name: [_until(at, [pair for pair in worked if name in pair[0].columns]) for at in times]
        for name in names
    }


def _until(at: int, worked: Sequence[tuple[CounterInterval, float]]) -> int:
    return round(sum(rate * min(max(at - one.begin_ns, 0), one.length_ns) for one, rate in worked))


def clock(period_ns: int, until_ns: int, seed: int = 0) -> list[int]:
    """Irregular sample times."""
    chance = random.Random(seed)
    return list(
        accumulate(
            chance.randrange(period_ns // 2, 3 * period_ns // 2) for _ in range(until_ns // period_ns * 2)
        )
    )


def truth(intervals: Sequence[CounterInterval], rates: Sequence[float]) -> list[int]:
    return [round(interval.length_ns * rate) for interval, rate in zip(intervals, rates, strict=True)]


class TestOwnProcesses:
    """Growth is exact for a variant with its own processes, which are idle for the rest of the
    round.
    """

    @pytest.mark.parametrize("seed", range(5))
    def test_every_slice_is_exact(self, seed: int) -> None:
        intervals = turns(40, 100 * MS, 1 * MS, ["a", "b", "c", "d"])
        rates = [0.1 + 0.02 * at for at in range(40)]
        times = clock(60 * MS, 5000 * MS, seed)
        samples = CounterSamples.of(times, machine(intervals, rates, times))
        assert growth(samples, intervals, error_ns=2 * MS) == truth(intervals, rates)

    def test_a_clock_that_is_off_by_less_than_its_error_changes_nothing(self) -> None:
        intervals = turns(12, 100 * MS, 1 * MS, ["a", "b", "c"])
        rates = [0.5] * 12
        times = clock(20 * MS, 2000 * MS)
        samples = CounterSamples.of(times, machine(intervals, rates, times))
        for shift in (-5 * MS, 5 * MS):
            assert growth(samples.on_clock(ClockOffset(shift, 0)), intervals, 5 * MS) == truth(
                intervals, rates
            )

    def test_several_processes_add_up(self) -> None:
        interval = CounterInterval(10 * MS, 20 * MS, frozenset({"a", "b"}))
        samples = CounterSamples.of([0, 30 * MS], {"a": [5, 7], "b": [100, 150], "c": [0, 10**9]})
        assert growth(samples, [interval], 0) == [52]


class TestSharedProcesses:
    """Behind a transaction pooler all variants share backends, which are idle only between slices."""

    def test_samples_between_slices_give_exact_growth(self) -> None:
        intervals = turns(30, 100 * MS, 12 * MS, ["all"])
        rates = [0.2 + 0.02 * at for at in range(30)]
        times = list(range(5 * MS, 4000 * MS, 5 * MS))
        samples = CounterSamples.of(times, machine(intervals, rates, times))
        assert growth(samples, intervals, error_ns=1 * MS) == truth(intervals, rates)

    def test_without_samples_between_slices_growth_is_interpolated(self) -> None:
        intervals = turns(30, 100 * MS, 1 * MS, ["all"])
        rates = [0.2 + 0.02 * (at * 7 % 30) for at in range(30)]
        times = clock(8 * MS, 4000 * MS)
        samples = CounterSamples.of(times, machine(intervals, rates, times))
        found = growth(samples, intervals, error_ns=1 * MS)
        for one, want in zip(found, truth(intervals, rates), strict=True):
            assert one == pytest.approx(want, abs=3 * MS)
        assert sum(one or 0 for one in found) == pytest.approx(sum(truth(intervals, rates)), rel=1e-6)

    def test_samples_too_far_apart_give_unknown_growth(self) -> None:
        intervals = turns(6, 100 * MS, 1 * MS, ["all"])
        times = list(range(0, 1000 * MS, 60 * MS))
        samples = CounterSamples.of(times, machine(intervals, [0.5] * 6, times))
        found = growth(samples, intervals, error_ns=1 * MS)
        assert found[1:-1] == [None] * 4


class TestUnknown:
    INTERVAL = CounterInterval(100 * MS, 200 * MS, frozenset({"a"}))

    def test_clocks_too_far_apart(self) -> None:
        samples = CounterSamples.of([0, 300 * MS], {"a": [0, 50]})
        assert growth(samples, [self.INTERVAL], 10 * MS) == [50]
        assert growth(samples, [self.INTERVAL], 10 * MS + 1) == [None]

    def test_a_column_without_samples(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"b": [0, 50]}), [self.INTERVAL], 0) == [None]

    def test_a_process_that_could_not_be_read(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [7, UNKNOWN]}), [self.INTERVAL], 0) == [None]

    def test_one_of_two_that_could_not_be_read(self) -> None:
        both = CounterInterval(100 * MS, 200 * MS, frozenset({"a", "b"}))
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [7, 8], "b": [3, UNKNOWN]}), [both], 0) == [None]

    def test_a_counter_that_ran_backwards_is_another_process(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [50, 20]}), [self.INTERVAL], 0) == [None]

    def test_samples_that_begin_too_late_or_end_too_early(self) -> None:
        assert growth(CounterSamples.of([150 * MS, 300 * MS], {"a": [0, 50]}), [self.INTERVAL], 0) == [None]
        assert growth(CounterSamples.of([0, 150 * MS], {"a": [0, 50]}), [self.INTERVAL], 0) == [None]
        assert growth(CounterSamples.of([], {"a": []}), [self.INTERVAL], 0) == [None]

    def test_no_processes_at_all(self) -> None:
        samples = CounterSamples.of([0, 300 * MS], {"a": [0, 50]})
        assert growth(samples, [CounterInterval(100 * MS, 200 * MS, frozenset())], 0) == [None]


def test_at_returns_the_first_sample_after_a_moment() -> None:
    samples = CounterSamples.of([10, 20, 30], {"load": [5, 3, UNKNOWN]})
    assert [samples.at("load", moment) for moment in (0, 10, 11, 21, 31)] == [5, 5, 3, None, None]
    assert samples.at("other", 0) is None


def test_samples_of_steady_columns_may_be_a_slice_apart() -> None:
    intervals = turns(6, 100 * MS, 1 * MS, ["all"])
    times = list(range(0, 1000 * MS, 60 * MS))
    steady = {"all": [at // 10 for at in times]}
    found = growth(CounterSamples.of(times, steady), intervals, 1 * MS, steady=True)
    assert found[1:-1] == [pytest.approx(10 * MS, rel=0.02)] * 4


class TestPacked:
    def test_unpacked_samples_equal_the_packed_ones(self) -> None:
        chance = random.Random(1)
        times = clock(5 * MS, 1000 * MS)
        column = list(accumulate(chance.randrange(10**7) for _ in times))
        sent = CounterSamples.of(
            times, {"busy": column, "parked": [3] * len(times), "gone": [9] + [UNKNOWN] * (len(times) - 1)}
        )
        got = CounterSamples.unpack(sent.pack())
        assert np.array_equal(got.times_ns, sent.times_ns)
        assert {name: list(values) for name, values in got.columns.items()} == {
            name: list(values) for name, values in sent.columns.items()
        }

    def test_idle_processes_take_almost_no_space(self) -> None:
        times = range(0, 10**10, 5 * MS)
        parked = {str(pid): [pid] * len(times) for pid in range(17)}
        assert len(CounterSamples.of(times, parked).pack()) < 400

    @pytest.mark.parametrize(
        "packed",
        [b"", b"x", CounterSamples.of([1, 2], {"a": [1, 2]}).pack()[:-1]]
        + [zlib.compress(text) for text in (b"[]", b"{}", b'{"times_ns":[1],"columns":{"a":[1,2]}}',
           b'{"times_ns":[1,0],"columns":{}}', b'{"times_ns":["x"],"columns":{}}', b'{"times_ns":[1],"columns":[1]}')],
    )  # fmt: skip
    def test_corrupt_bytes_are_refused_with_a_message(self, packed: bytes) -> None:
        with pytest.raises(AgentFailed, match="samples"):
            CounterSamples.unpack(packed)
