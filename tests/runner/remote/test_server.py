"""An agent's samples in the slices of a run: by variant, by role, and for the host."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pgperf.core.records import SliceRecord
from pgperf.runner.cpu.top import HOST as HOST_LINE
from pgperf.runner.remote.counters import (
    AUXILIARIES,
    HOST,
    TOP,
    UNKNOWN,
    CounterSamples,
    run_column,
    wait_column,
)
from pgperf.runner.remote.server import (
    AgentSamples,
    DiagnosticInterval,
    RemotePooler,
    RemoteProcess,
    RemoteProcesses,
    VariantSlices,
    WatchRequest,
    complete_slices,
    complete_top,
)

MS = 1_000_000
POOLER = ("db1", 6432)
#: Two variants, one with two backends; each has two slices of 100 ms, one after the other, with 50
#: ms in between.
ONE, TWO = RemoteProcesses((11,)), RemoteProcesses((21, 22), POOLER)


def record(begin_ms: int, **fields: Any) -> SliceRecord:
    return SliceRecord(
        round=0,
        position=0,
        ops=1,
        rows=1,
        lead_in_ops=0,
        window_ns=1,
        us_per_op=1.0,
        ops_per_s=1.0,
        user_ns=0,
        sys_ns=0,
        started_ns=begin_ms * MS,
        **fields,
    )


def sheet(processes: RemoteProcesses, *begins_ms: int, **fields: Any) -> VariantSlices:
    return VariantSlices(
        processes, [record(at, **fields) for at in begins_ms], [(at + 100) * MS for at in begins_ms]
    )


SHEETS = [sheet(ONE, 100, 400, pooler_ns=0), sheet(TWO, 250, 550)]
TIMES = [at * MS for at in (50, 225, 375, 525, 700)]


def seen(**columns: list[int]) -> AgentSamples:
    """Samples before, between and after the slices, so that every figure is exact."""
    values = {
        run_column(11): [100, 110, 110, 130, 130],
        wait_column(11): [0, 1, 1, 3, 3],
        run_column(21): [0, 0, 5, 5, 25],
        run_column(22): [0, 0, 7, 7, 17],
        wait_column(21): [0, 0, 2, 2, 4],
        wait_column(22): [0, 0, 2, 2, 4],
        AUXILIARIES: [1000, 1001, 1003, 1006, 1010],
        run_column(31): [0, 0, 40, 40, 90],
        wait_column(31): [0, 0, 4, 4, 9],
        f"{HOST}.busy": [0, 100, 200, 300, 400],
        f"{HOST}.idle": [0, 10, 20, 30, 40],
        f"{HOST}.iowait": [0, 0, 0, 0, 0],
        f"{HOST}.steal": [5, 5, 5, 5, 6],
        **columns,
    }
    return AgentSamples(CounterSamples.of(TIMES, values), 2 * MS, {POOLER: RemotePooler(31, (21, 22))}, 4)


def told(name: str, sheets: Sequence[VariantSlices] = SHEETS, **columns: list[int]) -> list[list[int | None]]:
    return [
        [getattr(one, name) for one in found.records] for found in complete_slices(sheets, seen(**columns))
    ]


def test_each_slice_has_the_cpu_time_of_its_own_backends() -> None:
    assert told("server_ns") == [[10, 20], [12, 30]]
    assert told("server_wait_ns") == [[1, 2], [4, 4]]
    assert told("server_busiest_ns") == [[10, 20], [7, 20]]
    assert told("auxiliary_ns") == [[1, 3], [2, 4]]


def test_other_fields_of_a_record_are_unchanged() -> None:
    assert told("started_ns") == [[100 * MS, 400 * MS], [250 * MS, 550 * MS]]


def test_a_remote_pooler_is_counted_for_pooled_routes_only() -> None:
    assert told("pooler_ns") == [[0, 0], [40, 50]]
    assert told("pooler_wait_ns") == [[None, None], [4, 5]]


def test_the_cpu_time_of_a_local_pooler_is_unchanged() -> None:
    assert told("pooler_ns", [sheet(RemoteProcesses((11,), ("127.0.0.1", 6432)), 100, pooler_ns=77)]) == [
        [77]
    ]


def test_an_invisible_backend_makes_only_its_variant_unknown() -> None:
    unseen = {run_column(22): [UNKNOWN] * 5}
    assert told("server_ns", **unseen) == [[10, 20], [None, None]]
    assert told("server_busiest_ns", **unseen) == [[10, 20], [None, None]]


def test_all_connections_of_a_transaction_pooler_count() -> None:
    shared = [
        sheet(RemoteProcesses((22,), POOLER, shared=True), 250),
        sheet(RemoteProcesses((), POOLER, shared=True), 550),
    ]
    assert told("server_ns", shared) == [[12], [30]]
    assert told("server_ns", [sheet(RemoteProcesses((22,), ("db9", 6432), shared=True), 250)]) == [[None]]


def test_without_backends_the_server_is_unknown() -> None:
    assert told("server_ns", [sheet(RemoteProcesses(), 100)]) == [[None]]


def test_the_host_s_account_of_each_variant() -> None:
    one, two = complete_slices(SHEETS, seen())
    assert one.account == {
        "cpus": 4, "roles": {"server": 30, "auxiliaries": 4}, "elapsed_ns": 200 * MS, "busy_ns": 200, "iowait_ns": 0,
        "steal_ns": 0,
    }  # fmt: skip
    assert two.account["roles"] == {"server": 42, "auxiliaries": 6, "pooler": 90}
    assert two.account["steal_ns"] == 1


def test_a_partly_sampled_slice_is_not_in_the_account() -> None:
    late = [100, 110, 110, UNKNOWN, UNKNOWN]
    one, _two = complete_slices(SHEETS, seen(**{run_column(11): late}))
    assert [record.server_ns for record in one.records] == [10, None]
    assert one.account["roles"] == {"server": 10, "auxiliaries": 1}
    assert (one.account["elapsed_ns"], one.account["busy_ns"]) == (100 * MS, 100)


def test_busy_time_is_computed_from_the_unused_time_if_missing() -> None:
    (one,) = complete_slices(SHEETS[:1], seen(**{f"{HOST}.busy": [UNKNOWN] * 5}))
    assert one.account["busy_ns"] == 4 * 200 * MS - 20  # idle while its slices lasted
    (one,) = complete_slices(
        SHEETS[:1], seen(**{f"{HOST}.{name}": [UNKNOWN] * 5 for name in ("busy", "idle")})
    )
    assert (one.account["busy_ns"], one.account["elapsed_ns"]) == (0, 0)


def test_nothing_measured() -> None:
    (one,) = complete_slices([VariantSlices(ONE, [], [])], seen())
    assert (one.records, one.account["elapsed_ns"], one.account["busy_ns"]) == ([], 0, 0)


class TestTop:
    """The diagnostic slices of both variants: 100 ms of looking, of which 80 ms were the slice."""

    LOOKS = (
        DiagnosticInterval(ONE, 100 * MS, 200 * MS, 0.08),
        DiagnosticInterval(TWO, 250 * MS, 350 * MS, 0.08),
    )
    TICKS = {f"{TOP}.{name}": [0, 0, 0, 0, 0] for name in HOST_LINE} | {
        f"{TOP}.us": [0, 3, 4, 4, 4],
        f"{TOP}.id": [0, 1, 4, 4, 4],
        f"{TOP}.load1": [10, 150, 175, 200, 200],
        f"{TOP}.load5": [UNKNOWN] * 5,
    }

    def show(self, **columns: list[int]) -> list[dict[str, Any]]:
        told = replace(seen(**{**self.TICKS, **columns}), processes={21: RemoteProcess("postgres", 4096)})
        return complete_top(self.LOOKS, told)

    def test_the_host_s_line(self) -> None:
        one, two = (found["host"] for found in self.show())
        assert (one["us"], one["id"], one["st"]) == (75.0, 25.0, 0.0)
        assert (two["us"], two["id"]) == (25.0, 75.0)
        assert (one["load1"], one["load5"], one["load15"]) == (1.5, None, None)

    def test_a_line_that_could_not_be_read(self) -> None:
        (one, _two) = (found["host"] for found in self.show(**{f"{TOP}.wa": [UNKNOWN] * 5}))
        assert one["us"] is None

    def test_a_row_for_each_process_that_worked_for_it(self) -> None:
        one, two = (
            found["processes"] for found in self.show(**{run_column(21): [0, 0, 40 * MS, 40 * MS, 40 * MS]})
        )
        assert [(row["role"], row["pid"]) for row in one] == [("server", 11)]
        assert [(row["role"], row["pid"]) for row in two] == [("pooler", 31), ("server", 21), ("server", 22)]
        assert two[1] == {
            "role": "server", "pid": 21, "name": "postgres", "user": None, "cpu_percent": 50.0, "rss_bytes": 4096,
            "cpu_s": 0.04,
        }  # fmt: skip
        assert (two[2]["name"], two[2]["rss_bytes"]) == (None, None)

    def test_a_process_without_samples_has_no_row(self) -> None:
        told = replace(seen(), samples=CounterSamples.of(TIMES, self.TICKS))
        assert [found["processes"] for found in complete_top(self.LOOKS, told)] == [[], []]

    def test_one_that_could_not_be_read_is_unknown(self) -> None:
        one, _two = (found["processes"] for found in self.show(**{run_column(11): [UNKNOWN] * 5}))
        assert (one[0]["cpu_percent"], one[0]["cpu_s"]) == (None, None)


class TestOrder:
    def test_json_round_trip(self) -> None:
        order = WatchRequest(
            [["11", "name", "40000", "1.5", "192.0.2.7"], ["12", None, None, None, None]], [11], [POOLER]
        )
        assert WatchRequest.from_json(order.to_json()) == order

    @pytest.mark.parametrize(
        "data", [{}, {"sessions": [], "backends": []}, {"sessions": [["1"]], "backends": [], "poolers": []},
                 {"sessions": [["x", "", "1", "1", None]], "backends": [], "poolers": []},
                 {"sessions": [["1", "", "1", "x", None]], "backends": [], "poolers": []},
                 {"sessions": [["1", "", "1", "1", "db1"]], "backends": [], "poolers": []},
                 {"sessions": 7, "backends": [], "poolers": []}, {"sessions": [], "backends": ["x"], "poolers": []}]
    )  # fmt: skip
    def test_anything_else_is_refused(self, data: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            WatchRequest.from_json(data)
