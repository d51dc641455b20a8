"""What counts of a slice: own stretches, and the common window of several clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.runner.slice_window import SliceWindow, recorded_from_the_start, time_per_op_us
from tests.runner.slice_replies import reply

MS = 1_000_000


def test_one_client_counts_all_it_recorded() -> None:
    durations = np.array([3, 4, 5], dtype=np.uint64)
    window = SliceWindow.of(protocol.Slice(seq=1, window_ns=10), [reply(100, 3)], [durations])
    assert (window.ops, window.length_ns) == (3, 12)


def test_several_clients_count_what_ended_inside_the_common_window() -> None:
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    opens = 1050 * MS
    each = np.full(12, MS, dtype=np.uint64)  # from the opening: ten end inside, two after
    slow = np.full(6, 2 * MS, dtype=np.uint64)  # ends at 2, 4, 6, 8, 10 | 12
    window = SliceWindow.of(request, [reply(opens, 12), reply(opens, 6)], [each, slow])
    assert (window.ops, window.length_ns) == (15, 10 * MS)
    assert window.disturbed == ""


def test_the_window_is_shorter_where_a_first_operation_ended_in_it() -> None:
    """That one is not recorded, so the throughput would lack it."""
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    opens = 1050 * MS
    early = np.full(12, MS, dtype=np.uint64)  # one ends before the later one has begun
    late = np.full(6, 2 * MS, dtype=np.uint64)  # ends at 3, 5, 7, 9 | 11, 13
    window = SliceWindow.of(request, [reply(opens, 12), reply(opens + MS, 6)], [early, late])
    assert (window.ops, window.length_ns) == (9 + 4, 9 * MS)
    assert window.disturbed == ""


def test_what_was_under_way_when_the_window_opened_counts_whole() -> None:
    """So a client that never rests is busy for just as long as the window, however few operations
    end in it.
    """
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=40 * MS, lead_in_ops=1)
    sent = recorded_from_the_start(request)
    assert (sent.lead_in_ns, sent.window_ns, sent.lead_in_ops) == (0, 90 * MS, 1)
    lasting = [np.full(40, length, dtype=np.uint64) for length in (4 * MS, 10 * MS)]
    window = SliceWindow.of(request, [reply(1001 * MS, 40), reply(1001 * MS, 40)], lasting)
    assert window.ops == 40 // 4 + 40 // 10
    assert window.durations.sum() == 2 * window.length_ns


@pytest.mark.parametrize(
    "request_", [protocol.Slice(seq=1, start_ns=1, count=5), protocol.Slice(seq=1, lead_in_ns=7, window_ns=9)]
)
def test_one_client_and_a_number_of_operations_have_a_lead_in(request_: protocol.Slice) -> None:
    assert recorded_from_the_start(request_) is request_


def test_a_client_that_began_late_is_said_so() -> None:
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    durations = np.full(3, MS, dtype=np.uint64)
    window = SliceWindow.of(request, [reply(1050 * MS, 3), reply(1055 * MS, 3)], [durations, durations])
    assert "began after" in window.disturbed
    assert window.length_ns == 10 * MS  # the first client ended nothing after that


def test_a_late_slice_too_has_its_throughput_from_when_all_had_begun() -> None:
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    durations = np.full(9, MS, dtype=np.uint64)
    window = SliceWindow.of(request, [reply(1050 * MS, 9), reply(1055 * MS, 9)], [durations, durations])
    assert "began after" in window.disturbed
    assert (window.ops, window.length_ns) == (4 + 5, 5 * MS)


@pytest.mark.parametrize("length", [{"count": 2}, {"lead_in_ns": 50 * MS, "window_ns": 10 * MS}])
def test_the_time_until_all_had_led_in_is_known(length: dict[str, int]) -> None:
    """From the common start, so it contains the time that a client waited for a CPU."""
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ops=1, **{"lead_in_ns": 0, **length})
    durations = np.full(2, MS, dtype=np.uint64)
    replies = [reply(1030 * MS, 2), reply(1047 * MS, 2)]
    assert SliceWindow.of(request, replies, [durations, durations]).led_in_ns == 47 * MS


def test_one_client_waits_for_no_common_start() -> None:
    window = SliceWindow.of(
        protocol.Slice(seq=1, count=2), [reply(1030 * MS, 2)], [np.ones(2, dtype=np.uint64)]
    )
    assert window.led_in_ns == 0


class TestWorkers:
    """A client's reply has the chains of its workers one after the other."""

    REQUEST = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)

    def test_each_chain_is_cut_to_the_common_window(self) -> None:
        one = reply(1049 * MS, 7)._replace(worker_ops=[5, 2], worker_first_ns=[1049 * MS, 1050 * MS])
        durations = np.array([2 * MS, 4 * MS, 3 * MS, MS, 9 * MS, 6 * MS, 4 * MS], dtype=np.uint64)
        window = SliceWindow.of(self.REQUEST, [one], [durations])
        assert window.durations.tolist() == [2 * MS, 4 * MS, 3 * MS, MS, 6 * MS, 4 * MS]
        assert (window.ops, window.length_ns, window.disturbed) == (6, 10 * MS, "")

    def test_several_clients_with_several_workers(self) -> None:
        each = reply(1050 * MS, 4)._replace(worker_ops=[1, 3], worker_first_ns=[1050 * MS] * 2)
        durations = np.array([5 * MS, 4 * MS, 4 * MS, 4 * MS], dtype=np.uint64)
        assert SliceWindow.of(self.REQUEST, [each, each], [durations, durations]).ops == 6

    def test_by_count_waiting_for_the_slowest_is_no_part_of_the_window(self) -> None:
        one = reply(0, 4)._replace(worker_ops=[2, 2], worker_first_ns=[0, 5])
        durations = np.array([3, 4, 10, 20], dtype=np.uint64)
        window = SliceWindow.of(protocol.Slice(seq=1, count=2), [one], [durations])
        assert (window.ops, window.length_ns) == (4, (7 + 30) // 2)

    @pytest.mark.parametrize(
        ("worker_ops", "first_ms", "words"),
        [([2, 0], 1050, "completed nothing"), ([1, 1], 1055, "began after")],
    )
    def test_one_worker_disturbs_the_slice(self, worker_ops: list[int], first_ms: int, words: str) -> None:
        one = reply(0, 2)._replace(worker_ops=worker_ops, worker_first_ns=[1050 * MS, first_ms * MS])
        window = SliceWindow.of(self.REQUEST, [one], [np.full(2, MS, dtype=np.uint64)])
        assert words in window.disturbed


def test_a_full_recording_is_said_so() -> None:
    window = SliceWindow.of(
        protocol.Slice(seq=1, window_ns=10), [reply(0, 1, capped=True)], [np.ones(1, dtype=np.uint64)]
    )
    assert "full" in window.disturbed


def test_a_program_that_overran_its_time_disturbs_the_slice() -> None:
    counted = reply(0, 300)._replace(nbytes=0, window_ns=9_000 * MS)
    request, nothing = protocol.Slice(seq=1, window_ns=3_000 * MS), [np.zeros(0, dtype=np.uint64)]
    assert SliceWindow.of(request, [counted], nothing).disturbed == ""
    stuck = SliceWindow.of(request, [counted._replace(overran_ns=6_040 * MS)], nothing)
    assert stuck.disturbed == "pgbench took 6.0 s more than its time: the server stood still"


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
    request = protocol.Slice(seq=1, start_ns=MS, lead_in_ns=MS, window_ns=20 * MS)
    first = 2 * MS + offset
    expected, end = 0, first
    for length in lengths:
        end += length
        expected += 2 * MS < end <= 22 * MS
    durations = np.array(lengths, dtype=np.uint64)
    window = SliceWindow.of(request, [reply(first, len(lengths))] * 2, [durations] * 2)
    assert window.ops == 2 * expected
