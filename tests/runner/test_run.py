"""The engine end to end with the fake client: known durations in, the same durations out; and every
way to fail.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, PreflightRefused, RunCancelled
from pgperf.core.records import Definition, Route, VariantBlock, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunResult, RunSettings, execute
from pgperf.runner.slice_length import pilot_slice
from tests.runner.builders import definition

ROUTES = {"here": Route("here", "localhost", 1, "none", "nobody", "")}
MACHINE = RunSettings(build_dir="", run_id="test")


class Watcher:
    """An Observer that remembers, and cancels when told to."""

    def __init__(self, cancel_when: Callable[[], bool] = lambda: False) -> None:
        self.blocks: list[VariantBlock] = []
        self.shares: list[float] = []
        self.cancelled = cancel_when

    def block_done(self, blocks: list[VariantBlock]) -> None:
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None:
        self.shares.append(share)


def run(what: Definition, watcher: Watcher, machine: RunSettings = MACHINE) -> RunResult:
    return execute(make_plan(what), ROUTES, machine, watcher)


def test_every_variant_gets_every_slice_of_every_block() -> None:
    watcher = Watcher()
    outcome = run(definition(blocks=2, rounds=3), watcher)
    assert [(b.block, b.variant.control, len(b.slices)) for b in watcher.blocks] == [
        (0, 0, 3),
        (0, 1, 3),
        (1, 0, 3),
        (1, 1, 3),
    ]
    assert watcher.shares == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert outcome.timings.wall_s > outcome.timings.slices_s > 0


def test_the_first_blocks_have_cold_phases_and_the_others_do_not() -> None:
    watcher = Watcher()
    run(definition(blocks=2, cold_blocks=1), watcher)
    assert [b.cold_us["startup"] is not None for b in watcher.blocks] == [True, True, False, False]


def test_slices_hold_together() -> None:
    watcher = Watcher()
    run(definition(), watcher)
    for block in watcher.blocks:
        for record in block.slices:
            assert record.ops > 0
            assert record.rows == record.ops * block.rows_per_op
            assert record.us_per_op <= record.window_ns / record.ops / 1000
            assert record.us_per_op >= 20  # the fake spins for at least its nominal time
            assert record.lead_in_ops >= 10
            assert record.client_ns
            assert record.server_ns is None
            assert record.pooler_ns == 0
        assert block.latency_sum_ns == sum(record.window_ns for record in block.slices)
        assert block.histogram


def test_clients_whose_operations_outlast_the_lead_in_begin_before_the_window() -> None:
    """Connecting, operating and closing take 26 ms here, the lead-in that is asked for 1 ms."""
    watcher = Watcher()
    what = definition(
        clients=(3,), connection_modes=("per_operation",), slice_ms=200, lead_in_ms=1, rounds=3,
        nominal_us={"fake": 15_000.0},
    )  # fmt: skip
    run(what, watcher)
    assert {record.disturbed for block in watcher.blocks for record in block.slices} == {""}


def test_several_clients_share_one_window() -> None:
    watcher = Watcher()
    run(definition(clients=(2,), slice_ms=20, lead_in_ms=20), watcher)
    for block in watcher.blocks:
        assert all(record.window_ns == 20_000_000 for record in block.slices)


def test_cold_phases_belong_to_the_variant_that_owns_the_clients() -> None:
    watcher = Watcher()
    run(definition(clients=(1, 2), rounds=2), watcher)
    found = {(b.variant.clients, b.variant.control): (len(b.slices), bool(b.cold_us)) for b in watcher.blocks}
    assert found == {(1, 0): (2, False), (2, 0): (2, True), (1, 1): (2, True)}


def test_the_pilot_sets_the_window_from_the_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MIN_NS", 2_000_000)
    watcher = Watcher()
    run(definition(slice_ms=0, nominal_us={"fake": 100.0}), watcher)
    assert all(record.window_ns >= 50 * 100_000 for block in watcher.blocks for record in block.slices)


def test_the_pilot_knows_the_time_of_one_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[float] = []

    def noted(op_s: float) -> protocol.Slice:
        known.append(op_s)
        return pilot_slice(op_s)

    monkeypatch.setattr("pgperf.runner.block.pilot_slice", noted)
    run(definition(slice_ms=0, nominal_us={"fake": 100.0}), Watcher())
    assert len(known) == 2  # the variant and its control
    assert min(known) >= 100e-6


def test_work_too_slow_for_a_window_goes_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MAX_NS", 1_000_000)
    watcher = Watcher()
    run(definition(slice_ms=0, nominal_us={"fake": 100.0}), watcher)
    assert {record.ops for block in watcher.blocks for record in block.slices} <= set(range(1, 11))


def test_cancel_is_honoured_between_rounds_and_finished_blocks_stay() -> None:
    watcher = Watcher()
    watcher.cancelled = lambda: len(watcher.shares) == 3
    with pytest.raises(RunCancelled):
        run(definition(blocks=3, rounds=2), watcher)
    assert {b.block for b in watcher.blocks} == {0}


def test_the_time_limit_ends_the_run() -> None:
    with pytest.raises(PreflightRefused, match="time"):
        run(definition(), Watcher(), replace(MACHINE, max_run_seconds=0.1))


@pytest.mark.parametrize(
    ("misbehaviour", "words"), [("die", "ended unexpectedly"), ("garbage", "not a message"), ("fail", "fake")]
)
def test_a_client_that_fails_fails_the_run_with_its_name(misbehaviour: str, words: str) -> None:
    what = definition()
    what = replace(what, workloads=(replace(what.workloads[0], sql=misbehaviour),))
    with pytest.raises(ClientFailed, match=words):
        run(what, Watcher())


def test_a_client_that_hangs_is_killed_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgperf.runner.client_group.SLICE_GRACE_S", 0.1)
    what = definition()
    with pytest.raises(ClientFailed, match="no answer within its deadline"):
        run(replace(what, workloads=(replace(what.workloads[0], sql="hang"),)), Watcher())


class TestSuite:
    """Three workloads, one of them slow, each with a window of its own."""

    names = ("fast", "slow", "middle")
    us = {"fast": 20.0, "slow": 4000.0, "middle": 200.0}
    what = definition(
        workloads=tuple(WorkloadDefinition(name, "SELECT 1") for name in names), rounds=2, slice_ms=0,
        nominal_us={f"fake · here · {name}{end}": us for name, us in us.items() for end in ("", " · control 1")},
    )  # fmt: skip

    def test_a_slow_workload_does_not_lengthen_the_slices_of_the_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MIN_NS", 2_000_000)
        watcher = Watcher()
        run(self.what, watcher)
        windows: dict[str, list[int]] = {name: [] for name in self.names}
        for block in watcher.blocks:
            windows[block.variant.workload] += [piece.window_ns for piece in block.slices]
        assert all(len(own) == 4 for own in windows.values()), "two rounds, with its control"
        assert min(windows["slow"]) >= 50 * 4_000_000
        assert max(windows["fast"]) < min(windows["slow"]) / 4
        assert max(windows["middle"]) < min(windows["slow"]) / 4

    def test_the_workloads_take_turns_within_a_round(self) -> None:
        watcher = Watcher()
        run(replace(self.what, slice_ms=2), watcher)
        slices = sorted(
            (piece.round, piece.position, block.variant.workload)
            for block in watcher.blocks
            for piece in block.slices
        )
        for number in range(2):
            turns = [work for round_, _at, work in slices if round_ == number]
            assert len(turns) == 6
            assert len(list(groupby(turns))) == 3
