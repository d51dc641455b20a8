"""What an agent saw, laid beside the slices of a run: by variant, by role, and for the host as a whole."""

from typing import Any

import pytest

from pgperf.records import SliceRecord
from pgperf.runner.readings import AUXILIARIES, HOST, UNKNOWN, Readings, run_of, wait_of
from pgperf.runner.remote import Order, Piece, Seen, Staff, filled, host_spent

MS = 1_000_000
POOLER = ("db1", 6432)
#: Two variants, one with two backends; each has two slices of 100 ms, one after the other, with 50 ms in between.
ONE, TWO = Staff((11,)), Staff((21, 22), POOLER)


def record(begin_ms: int, **fields: Any) -> SliceRecord:
    return SliceRecord(0, 0, 1, 1, 0, 1, 1.0, 1.0, 0, 0, started_ns=begin_ms * MS, **fields)


def piece(begin_ms: int, staff: Staff, **fields: Any) -> Piece:
    return Piece(record(begin_ms, **fields), (begin_ms + 100) * MS, staff)


PIECES = [piece(100, ONE, pooler_ns=0), piece(400, ONE, pooler_ns=0), piece(250, TWO), piece(550, TWO)]
TIMES = [at * MS for at in (50, 225, 375, 525, 700)]


def seen(**columns: list[int]) -> Seen:
    """Read before, between and after the slices, so that every figure is exact."""
    values = {
        run_of(11): [100, 110, 110, 130, 130],
        wait_of(11): [0, 1, 1, 3, 3],
        run_of(21): [0, 0, 5, 5, 25],
        run_of(22): [0, 0, 7, 7, 17],
        wait_of(21): [0, 0, 2, 2, 4],
        wait_of(22): [0, 0, 2, 2, 4],
        AUXILIARIES: [1000, 1001, 1003, 1006, 1010],
        run_of(31): [0, 0, 40, 40, 90],
        wait_of(31): [0, 0, 4, 4, 9],
        f"{HOST}.busy": [0, 100, 200, 300, 400],
        f"{HOST}.idle": [0, 10, 20, 30, 40],
        f"{HOST}.iowait": [0, 0, 0, 0, 0],
        f"{HOST}.steal": [5, 5, 5, 5, 6],
        **columns,
    }
    return Seen(Readings.of(TIMES, values), 2 * MS, {POOLER: 31}, 4)


def test_each_slice_has_what_its_own_backends_took() -> None:
    found = filled(PIECES, seen())
    assert [one.server_ns for one in found] == [10, 20, 12, 30]
    assert [one.server_wait_ns for one in found] == [1, 2, 4, 4]
    assert [one.server_most_ns for one in found] == [10, 20, 7, 20]
    assert [one.auxiliary_ns for one in found] == [1, 3, 2, 4]


def test_the_rest_of_a_record_is_as_it_was() -> None:
    found = filled(PIECES, seen())
    assert [one.started_ns for one in found] == [100 * MS, 400 * MS, 250 * MS, 550 * MS]


def test_a_pooler_over_there_is_seen_and_a_direct_route_has_none() -> None:
    found = filled(PIECES, seen())
    assert [(one.pooler_ns, one.pooler_wait_ns) for one in found] == [(0, None), (0, None), (40, 4), (50, 5)]


def test_a_pooler_over_here_stays_as_it_was_read() -> None:
    local = [piece(100, Staff((11,), ("127.0.0.1", 6432)), pooler_ns=77)]
    assert [one.pooler_ns for one in filled(local, seen())] == [77]


def test_an_unseen_backend_makes_its_variant_unknown_and_no_other() -> None:
    found = filled(PIECES, seen(**{run_of(22): [UNKNOWN] * 5}))
    assert [one.server_ns for one in found] == [10, 20, None, None]
    assert [one.server_most_ns for one in found] == [10, 20, None, None]


def test_without_backends_the_server_is_unknown() -> None:
    assert [one.server_ns for one in filled([piece(100, Staff())], seen())] == [None]


def test_the_host_over_all_slices() -> None:
    assert host_spent(PIECES, seen()) == {"busy": 400, "idle": 40, "iowait": 0, "steal": 1}
    assert host_spent(PIECES, seen(**{f"{HOST}.steal": [UNKNOWN] * 5}))["steal"] is None


def test_nothing_measured() -> None:
    assert filled([], seen()) == []
    assert host_spent([], seen())["busy"] is None


class TestOrder:
    def test_it_travels_as_json(self) -> None:
        order = Order({11: 1.5, 12: None}, [11], [POOLER])
        assert Order.from_json(order.to_json()) == order

    @pytest.mark.parametrize(
        "data", [{}, {"sessions": [], "backends": []}, {"sessions": [[1]], "backends": [], "poolers": []},
                 {"sessions": 7, "backends": [], "poolers": []}, {"sessions": [], "backends": ["x"], "poolers": []}]
    )  # fmt: skip
    def test_anything_else_is_refused(self, data: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            Order.from_json(data)
