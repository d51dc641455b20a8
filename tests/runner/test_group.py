"""What counts of a slice: own stretches, and the common window of several clients."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgperf import wire
from pgperf.runner.group import Window, time_per_op_us

MS = 1_000_000


def reply(first_ns: int, count: int, capped: bool = False) -> wire.SliceReply:
    return wire.SliceReply(1, count, count, 10, first_ns, 0, 0, capped, 8 * count)


def test_one_client_counts_all_it_recorded() -> None:
    durations = np.array([3, 4, 5], dtype=np.uint64)
    window = Window.of(wire.Slice(1, window_ns=10), [reply(100, 3)], [durations])
    assert (window.ops, window.length_ns) == (3, 12)


def test_several_clients_count_what_ended_inside_the_common_window() -> None:
    request = wire.Slice(1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    opens = 1050 * MS
    early = np.full(12, MS, dtype=np.uint64)  # from the opening: ten end inside, two after
    late = np.full(6, 2 * MS, dtype=np.uint64)  # from 1 ms after it: ends at 3, 5, 7, 9 | 11, 13
    window = Window.of(request, [reply(opens, 12), reply(opens + MS, 6)], [early, late])
    assert (window.ops, window.length_ns) == (14, 10 * MS)
    assert window.disturbed == ""


def test_a_client_that_began_late_is_said_so() -> None:
    request = wire.Slice(1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    durations = np.full(3, MS, dtype=np.uint64)
    window = Window.of(request, [reply(1050 * MS, 3), reply(1055 * MS, 3)], [durations, durations])
    assert "began after" in window.disturbed


def test_a_full_recording_is_said_so() -> None:
    window = Window.of(wire.Slice(1, window_ns=10), [reply(0, 1, capped=True)], [np.ones(1, dtype=np.uint64)])
    assert "full" in window.disturbed


def test_one_interruption_does_not_weigh_as_much_as_all_the_work() -> None:
    durations = np.array([20_000] * 199 + [4_000_000], dtype=np.uint64)
    assert time_per_op_us(durations) == 20.0


def test_few_operations_are_all_counted_whole() -> None:
    assert time_per_op_us(np.array([1000, 3000], dtype=np.uint64)) == 2.0
    assert time_per_op_us(np.zeros(0, dtype=np.uint64)) == 0.0


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=500))
def test_time_per_op_lies_between_the_shortest_and_the_plain_mean(lengths: list[int]) -> None:
    durations = np.array(lengths, dtype=np.uint64)
    assert (
        durations.min() / 1000 * (1 - 1e-9)
        <= time_per_op_us(durations)
        <= durations.mean() / 1000 * (1 + 1e-9)
    )


@given(st.lists(st.integers(1, 5 * MS), min_size=1, max_size=60), st.integers(0, 4 * MS))
def test_an_operation_is_inside_iff_it_ended_inside(lengths: list[int], offset: int) -> None:
    request = wire.Slice(1, start_ns=MS, lead_in_ns=MS, window_ns=20 * MS)
    first = 2 * MS + offset
    expected, end = 0, first
    for length in lengths:
        end += length
        expected += 2 * MS < end <= 22 * MS
    durations = np.array(lengths, dtype=np.uint64)
    window = Window.of(request, [reply(first, len(lengths))] * 2, [durations] * 2)
    assert window.ops == 2 * expected
