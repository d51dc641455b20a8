"""What slices took of counters that another machine read, against a machine whose truth is known."""

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
    stretches: Sequence[CounterInterval], rates: Sequence[float], times: Sequence[int]
) -> dict[str, list[int]]:
    """Each column's processor time at those times: growing at the stretch's rate inside it, and still between."""
    names = {name for stretch in stretches for name in stretch.columns}
    worked = list(zip(stretches, rates, strict=True))
    return {
        name: [_until(at, [pair for pair in worked if name in pair[0].columns]) for at in times]
        for name in names
    }


def _until(at: int, worked: Sequence[tuple[CounterInterval, float]]) -> int:
    return round(sum(rate * min(max(at - one.begin_ns, 0), one.length_ns) for one, rate in worked))


def clock(period_ns: int, until_ns: int, seed: int = 0) -> list[int]:
    """Readings about every so often."""
    chance = random.Random(seed)
    return list(
        accumulate(
            chance.randrange(period_ns // 2, 3 * period_ns // 2) for _ in range(until_ns // period_ns * 2)
        )
    )


def truth(stretches: Sequence[CounterInterval], rates: Sequence[float]) -> list[int]:
    return [round(stretch.length_ns * rate) for stretch, rate in zip(stretches, rates, strict=True)]


class TestOwnProcesses:
    """A variant with processes of its own is exact, however coarse the readings: it stands by for a whole round."""

    @pytest.mark.parametrize("seed", range(5))
    def test_every_slice_is_exact(self, seed: int) -> None:
        stretches = turns(40, 100 * MS, 1 * MS, ["a", "b", "c", "d"])
        rates = [0.1 + 0.02 * at for at in range(40)]
        times = clock(60 * MS, 5000 * MS, seed)
        readings = CounterSamples.of(times, machine(stretches, rates, times))
        assert growth(readings, stretches, error_ns=2 * MS) == truth(stretches, rates)

    def test_a_clock_that_is_off_by_less_than_its_error_changes_nothing(self) -> None:
        stretches = turns(12, 100 * MS, 1 * MS, ["a", "b", "c"])
        rates = [0.5] * 12
        times = clock(20 * MS, 2000 * MS)
        readings = CounterSamples.of(times, machine(stretches, rates, times))
        for shift in (-5 * MS, 5 * MS):
            assert growth(readings.on_clock(ClockOffset(shift, 0)), stretches, 5 * MS) == truth(
                stretches, rates
            )

    def test_several_processes_add_up(self) -> None:
        stretch = CounterInterval(10 * MS, 20 * MS, frozenset({"a", "b"}))
        readings = CounterSamples.of([0, 30 * MS], {"a": [5, 7], "b": [100, 150], "c": [0, 10**9]})
        assert growth(readings, [stretch], 0) == [52]


class TestSharedProcesses:
    """Behind a transaction pooler all variants share the server's processes: only the time between slices is still."""

    def test_readings_between_slices_are_exact(self) -> None:
        stretches = turns(30, 100 * MS, 12 * MS, ["all"])
        rates = [0.2 + 0.02 * at for at in range(30)]
        times = list(range(5 * MS, 4000 * MS, 5 * MS))
        readings = CounterSamples.of(times, machine(stretches, rates, times))
        assert growth(readings, stretches, error_ns=1 * MS) == truth(stretches, rates)

    def test_without_readings_between_slices_neighbours_share_little(self) -> None:
        stretches = turns(30, 100 * MS, 1 * MS, ["all"])
        rates = [0.2 + 0.02 * (at * 7 % 30) for at in range(30)]
        times = clock(8 * MS, 4000 * MS)
        readings = CounterSamples.of(times, machine(stretches, rates, times))
        found = growth(readings, stretches, error_ns=1 * MS)
        for one, want in zip(found, truth(stretches, rates), strict=True):
            assert one == pytest.approx(want, abs=3 * MS)
        assert sum(one or 0 for one in found) == pytest.approx(sum(truth(stretches, rates)), rel=1e-6)

    def test_readings_too_far_apart_tell_nothing(self) -> None:
        stretches = turns(6, 100 * MS, 1 * MS, ["all"])
        times = list(range(0, 1000 * MS, 60 * MS))
        readings = CounterSamples.of(times, machine(stretches, [0.5] * 6, times))
        found = growth(readings, stretches, error_ns=1 * MS)
        assert found[1:-1] == [None] * 4


class TestUnknown:
    STRETCH = CounterInterval(100 * MS, 200 * MS, frozenset({"a"}))

    def test_clocks_too_far_apart(self) -> None:
        readings = CounterSamples.of([0, 300 * MS], {"a": [0, 50]})
        assert growth(readings, [self.STRETCH], 10 * MS) == [50]
        assert growth(readings, [self.STRETCH], 10 * MS + 1) == [None]

    def test_a_column_that_nobody_read(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"b": [0, 50]}), [self.STRETCH], 0) == [None]

    def test_a_process_that_could_not_be_read(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [7, UNKNOWN]}), [self.STRETCH], 0) == [None]

    def test_one_of_two_that_could_not_be_read(self) -> None:
        both = CounterInterval(100 * MS, 200 * MS, frozenset({"a", "b"}))
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [7, 8], "b": [3, UNKNOWN]}), [both], 0) == [None]

    def test_a_counter_that_ran_backwards_is_another_process(self) -> None:
        assert growth(CounterSamples.of([0, 300 * MS], {"a": [50, 20]}), [self.STRETCH], 0) == [None]

    def test_readings_that_begin_too_late_or_end_too_early(self) -> None:
        assert growth(CounterSamples.of([150 * MS, 300 * MS], {"a": [0, 50]}), [self.STRETCH], 0) == [None]
        assert growth(CounterSamples.of([0, 150 * MS], {"a": [0, 50]}), [self.STRETCH], 0) == [None]
        assert growth(CounterSamples.of([], {"a": []}), [self.STRETCH], 0) == [None]

    def test_no_processes_at_all(self) -> None:
        readings = CounterSamples.of([0, 300 * MS], {"a": [0, 50]})
        assert growth(readings, [CounterInterval(100 * MS, 200 * MS, frozenset())], 0) == [None]


def test_a_value_as_it_was_first_read_after_a_moment() -> None:
    readings = CounterSamples.of([10, 20, 30], {"load": [5, 3, UNKNOWN]})
    assert [readings.at("load", moment) for moment in (0, 10, 11, 21, 31)] == [5, 5, 3, None, None]
    assert readings.at("other", 0) is None


def test_what_grows_all_the_time_may_be_read_a_whole_slice_apart() -> None:
    stretches = turns(6, 100 * MS, 1 * MS, ["all"])
    times = list(range(0, 1000 * MS, 60 * MS))
    steady = {"all": [at // 10 for at in times]}
    found = growth(CounterSamples.of(times, steady), stretches, 1 * MS, steady=True)
    assert found[1:-1] == [pytest.approx(10 * MS, rel=0.02)] * 4


class TestPacked:
    def test_they_arrive_as_they_were(self) -> None:
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

    def test_who_stands_by_takes_next_to_nothing(self) -> None:
        times = range(0, 10**10, 5 * MS)
        parked = {str(pid): [pid] * len(times) for pid in range(17)}
        assert len(CounterSamples.of(times, parked).pack()) < 400

    @pytest.mark.parametrize(
        "packed",
        [b"", b"x", CounterSamples.of([1, 2], {"a": [1, 2]}).pack()[:-1]]
        + [zlib.compress(text) for text in (b"[]", b"{}", b'{"times_ns":[1],"columns":{"a":[1,2]}}',
           b'{"times_ns":[1,0],"columns":{}}', b'{"times_ns":["x"],"columns":{}}', b'{"times_ns":[1],"columns":[1]}')],
    )  # fmt: skip
    def test_broken_bytes_are_refused_in_words(self, packed: bytes) -> None:
        with pytest.raises(AgentFailed, match="samples"):
            CounterSamples.unpack(packed)
