"""How long a cohort's slices are."""

import pytest

from pgperf.core import protocol
from pgperf.runner.block import fitting, pilot_slice

MS = 1_000_000
ASKED = protocol.Slice(seq=0, start_ns=0, lead_in_ops=10, lead_in_ns=50 * MS)


@pytest.mark.parametrize(
    ("clients", "op_ms", "slice_ms"),
    [
        (1, 0.02, 50),  # never shorter
        (1, 4, 200),
        (2, 4, 100),  # 25 operations of each
        (5, 8, 80),
        (32, 8, 80),  # no fewer than 10 of each
        (1, 100, 5000),
    ],
)
def test_a_window_has_50_operations_of_a_variant_and_10_of_each_client(
    clients: int, op_ms: float, slice_ms: int
) -> None:
    assert fitting(ASKED, [(clients, op_ms * MS)]).window_ns == slice_ms * MS


def test_the_most_demanding_decides() -> None:
    assert fitting(ASKED, [(1, 4 * MS), (32, 8 * MS), (1, 0.02 * MS)]).window_ns == 200 * MS


def test_slower_work_goes_by_count() -> None:
    found = fitting(ASKED, [(1, 200 * MS), (1, 1 * MS)])
    assert (found.window_ns, found.lead_in_ns, found.lead_in_ops, found.count) == (0, 0, 1, 25)
    assert fitting(ASKED, [(1, 9000 * MS)]).count == 1


def test_several_slow_clients_get_time_to_lead_in() -> None:
    assert fitting(ASKED, [(8, 30 * MS)]).lead_in_ns == 90 * MS
    assert fitting(ASKED, [(8, 3 * MS)]).lead_in_ns == 50 * MS
    assert fitting(ASKED, [(1, 30 * MS)]).lead_in_ns == 50 * MS  # ten operations, however long they take


@pytest.mark.parametrize(
    ("op_s", "count"), [(0.0, 20), (0.00002, 20), (0.05, 20), (0.1, 10), (0.4, 2), (0.9, 1), (30.0, 1)]
)
def test_a_pilot_takes_about_a_second_at_most(op_s: float, count: int) -> None:
    found = pilot_slice(op_s)
    assert (found.count, found.window_ns, found.lead_in_ns) == (count, 0, 0)
    assert found.lead_in_ops == min(2, count)
