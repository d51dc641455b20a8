"""The engine end to end with the fake client: known durations in, the same durations out; and every
way to fail.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from pgperf.analysis.cpu_accounting import cpu_account
from pgperf.core import protocol
from pgperf.core.exceptions import (
    BudgetTooShort,
    ClientFailed,
    LoadHostFailed,
    PreflightRefused,
    RunCancelled,
    TimeIsUp,
)
from pgperf.core.records import Definition, Route, VariantBlock, WorkloadDefinition
from pgperf.runner import client_startup
from pgperf.runner.block_processes import process_cpu_of
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import cgroups
from pgperf.runner.cpu.host import Host
from pgperf.runner.pace import Pace
from pgperf.runner.plan import make_plan
from pgperf.runner.progress import Progress
from pgperf.runner.run import RunResult, RunSettings, _placed, _run_cohort, execute
from pgperf.runner.run_context import RunContext
from pgperf.runner.slice_length import Need, pilot_slice
from tests.runner.builders import definition
from tests.runner.forked_clients import Nursery, of_no_site
from tests.waiting import until

ROUTES = {"here": Route("here", "localhost", 1, "none", "nobody", "")}
MACHINE = RunSettings(build_dir="", run_id="test")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with of_no_site("fake") as found:
        yield found


@pytest.fixture
def started() -> None:
    """Clients start by themselves: their own processes are looked at."""


@pytest.fixture(autouse=True)
def forked(request: pytest.FixtureRequest, nursery: Nursery) -> Iterator[None]:
    """Other clients are forked."""
    with nullcontext() if "started" in request.fixturenames else nursery.raising():
        yield


class Watcher:
    """An Observer that remembers, and cancels when told to."""

    def __init__(self, cancel_when: Callable[[], bool] = lambda: False) -> None:
        self.blocks: list[VariantBlock] = []
        self.shares: list[float] = []
        self.said: list[str] = []
        self.cancelled = cancel_when

    def block_done(self, blocks: list[VariantBlock]) -> None:
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None:
        self.said.append(message)
        if "clients start" not in message:
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
    assert len(watcher.shares) == 6
    assert watcher.shares == sorted(watcher.shares)
    assert watcher.shares[-1] == 1
    assert outcome.timings.wall_s > outcome.timings.slices_s > 0


def test_a_load_host_knows_the_placement_of_both_kinds_of_clients() -> None:
    """It has clients of a database beside those that request pages."""
    server = SimpleNamespace(
        pin_refusal=lambda: "", cpus_refusal=lambda _cpus: "", bind=lambda _plan, _placed: None
    )
    hosts = SimpleNamespace(own_machine="here", machines=["here"])
    plan = make_plan(definition(placement="apart", load_hosts=(0, 1)))
    _plan, cpu_placement = _placed(plan, server, hosts)  # type: ignore[arg-type]
    assert hosts.own_placement == cpu_placement


def test_a_server_that_may_not_have_its_cpus_leaves_all_to_the_scheduler() -> None:
    """Its control group may have other CPUs than the worker's."""
    refused: list[frozenset[int] | None] = []
    server = SimpleNamespace(
        pin_refusal=lambda: "",
        cpus_refusal=lambda cpus: refused.append(cpus) or "not those",
        bind=lambda _plan, _placed: None,
    )
    plan, found = _placed(make_plan(definition(placement="together")), server)  # type: ignore[arg-type]
    assert (found.placement, found.note) == ("scheduler", "together not possible: not those")
    assert {variant.placement for variant in plan.variants} == {"scheduler"}
    assert len(refused) == 1
    assert refused[0]


def test_a_block_that_lost_a_load_host_leaves_no_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured again as a whole, so the run would have all of it twice."""
    failures = [LoadHostFailed("b", "gone"), LoadHostFailed("c", "gone")]

    def diagnosed(context: Any, _cohort: int, _block: int, done: Callable[[list[Any]], None]) -> None:
        context.diagnosed += 2
        context.statement_times.append("statements")
        context.page_parts.append("parts")
        done(["block"])
        if failures:
            raise failures.pop()

    hosts = SimpleNamespace(end=lambda: None, go_on_without=lambda _host, _why: True)
    context: Any = RunContext(*[None] * 10, load_hosts=hosts)  # type: ignore[arg-type]
    context.statement_times.append("of the cohort before")
    context.diagnosed = 1
    kept: list[Any] = []
    monkeypatch.setattr("pgperf.runner.run.run_block", diagnosed)
    _run_cohort(context, 1, 0, kept.extend)
    assert kept == ["block"]
    assert context.statement_times == ["of the cohort before", "statements"]
    assert (context.page_parts, context.diagnosed) == (["parts"], 3)


@pytest.mark.parametrize("cost_ns", [None, 1_500.0])
def test_a_block_keeps_the_cost_of_a_slow_clock(
    cost_ns: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the runner to the summary, which the grade reads."""
    monkeypatch.setattr("pgperf.runner.block_processes.slow_read_ns", lambda: cost_ns)
    watcher = Watcher()
    run(definition(), watcher)
    assert [block.cpu_account.get("clock_read_ns") for block in watcher.blocks] == [cost_ns, cost_ns]
    account = cpu_account(watcher.blocks[:1])
    assert account is not None
    assert account.clock_read_ns == cost_ns


def test_a_quota_that_was_set_since_the_last_block_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pooler is the same process in all blocks, and in the next run of this worker."""
    monkeypatch.setattr(cgroups, "groups_of", lambda *_around: [tmp_path])
    pooler = frozenset({0})
    assert cgroups.quota_groups(pooler) == ()
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    process_cpu_of(Host.here(), [])
    assert cgroups.quota_groups(pooler) == (tmp_path,)


def test_each_block_is_announced_before_its_clients_start() -> None:
    events: list[object] = []
    watcher = Watcher()
    watcher.block_done = lambda blocks: events.append("done")  # type: ignore[method-assign]

    def announce(block: int, routes: Sequence[str]) -> None:
        events.append((block, list(routes)))

    run(definition(blocks=2), watcher, replace(MACHINE, before_block=announce))
    assert events == [(0, ["here"]), "done", (1, ["here"]), "done"]


def test_each_block_starts_its_clients_in_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    def started(*given: Any, turn: str, **more: Any) -> Any:
        turns.append(turn)
        return client_startup.started(*given, turn=turn, **more)

    monkeypatch.setattr("pgperf.runner.block.started", started)
    run(definition(blocks=3), Watcher())
    assert turns == ["0/0", "0/1", "0/2"]


def test_the_first_blocks_have_cold_phases_and_the_others_do_not() -> None:
    watcher = Watcher()
    run(definition(blocks=2, cold_blocks=1), watcher)
    assert [b.cold_us["startup"] is not None for b in watcher.blocks] == [True, True, False, False]


def test_slices_hold_together(started: None) -> None:
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


def test_clients_whose_operations_outlast_the_lead_in_begin_before_the_window(started: None) -> None:
    """Connecting, operating and closing take 26 ms here, the lead-in that is asked for 1 ms: without a
    longer one each slice would be late. On a busy machine one may be.
    """
    watcher = Watcher()
    what = definition(
        clients=(3,), connection_modes=("per_operation",), slice_ms=200, lead_in_ms=1, rounds=3,
        nominal_us={"fake": 15_000.0},
    )  # fmt: skip
    run(what, watcher)
    marks = [record.disturbed for block in watcher.blocks for record in block.slices]
    assert marks.count("") > len(marks) / 2


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

    def noted(op_s: float, connections: int) -> protocol.Slice:
        known.append(op_s)
        return pilot_slice(op_s, connections)

    monkeypatch.setattr("pgperf.runner.pilot.pilot_slice", noted)
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
    with pytest.raises(ClientFailed, match=r"no answer within its deadline of \d"):
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
        """The pilot finds the nominal times, so that a busy machine lengthens none of them."""
        chosen: dict[str, int] = {}

        def found(_context: RunContext, group: ClientGroup) -> Need:
            op_ns = self.us[group.variant.workload] * 1000
            return Need(group.variant.connections, op_ns, op_ns)

        def noted(
            _progress: Progress, _cohort: int, slices: dict[str, protocol.Slice], _op_s: object
        ) -> None:
            chosen.update({workload: piece.window_ns for workload, piece in slices.items()})

        monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MIN_NS", 2_000_000)
        monkeypatch.setattr("pgperf.runner.pilot._need", found)
        monkeypatch.setattr(Progress, "piloted", noted)
        watcher = Watcher()
        run(self.what, watcher)
        assert chosen == {"fast": 2_000_000, "slow": 200_000_000, "middle": 10_000_000}
        for block in watcher.blocks:
            assert len(block.slices) == 2, "two rounds, of the variant and of its control"
            assert min(piece.window_ns for piece in block.slices) >= chosen[block.variant.workload]

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


@pytest.fixture
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is."""
    monkeypatch.setattr("pgperf.runner.run_time.promised_s", lambda plan: 600.0)


@pytest.mark.usefixtures("enough_time")
def test_a_run_stops_at_the_first_look_that_is_precise_enough() -> None:
    """Any scatter of a duplicate is within ±1,000 %."""
    watcher = Watcher()
    outcome = run(definition(blocks=20, precision=1000.0), watcher)
    assert {block.block for block in watcher.blocks} == set(range(6))
    ending = outcome.environment["ending"]
    assert (ending["reason"], ending["blocks"], ending["target"]) == ("precision", 6, 10.0)
    assert 0 < ending["precision"] <= 10
    assert 0 < ending["seconds"] <= ending["budget_s"]


@pytest.mark.usefixtures("enough_time")
def test_a_run_that_is_never_precise_enough_has_all_its_blocks() -> None:
    watcher = Watcher()
    outcome = run(definition(blocks=7, precision=1e-9), watcher)
    assert {block.block for block in watcher.blocks} == set(range(7))
    assert outcome.environment["ending"]["reason"] == "blocks"
    assert outcome.environment["ending"]["precision"] > 0


@pytest.mark.parametrize("fixed", [{"precision": 0.0, "blocks": 8}, {"precision": 1000.0, "blocks": 5}])
def test_a_run_of_a_fixed_length_has_all_its_blocks_and_does_not_look(fixed: dict[str, Any]) -> None:
    watcher = Watcher()
    outcome = run(definition(**fixed), watcher)
    assert {block.block for block in watcher.blocks} == set(range(fixed["blocks"]))
    assert "ending" not in outcome.environment


def test_a_run_ends_when_no_block_fits_into_the_rest_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "has_time_for_block", lambda pace: pace.blocks < 7)
    watcher = Watcher()
    outcome = run(definition(budget_s=600), watcher)
    assert {block.block for block in watcher.blocks} == set(range(7))
    ending = outcome.environment["ending"]
    assert (ending["reason"], ending["blocks"], ending["budget_s"]) == ("budget", 7, 600)
    assert ending["precision"] > 0


def test_a_run_whose_six_blocks_cannot_fit_does_not_start() -> None:
    watcher = Watcher()
    with pytest.raises(BudgetTooShort, match="time budget: 6 blocks take at least") as refused:
        run(definition(budget_s=1, cold_blocks=6), watcher)
    assert isinstance(refused.value, PreflightRefused)
    assert watcher.blocks == []


def test_a_run_whose_first_operations_show_that_six_blocks_cannot_fit_ends_before_it_times_any() -> None:
    """An operation takes 0.15 s: six blocks with two variants of five operations take 9 s."""
    watcher = Watcher()
    with pytest.raises(BudgetTooShort, match="set a time budget of"):
        run(definition(budget_s=5, slice_ms=0, nominal_us={"fake": 150_000.0}, warm_up_ops=1), watcher)
    assert watcher.blocks == []


def test_a_block_that_hangs_after_the_budget_is_given_up_and_those_before_it_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(pace: Pace, cohort: int, block: int) -> Iterator[int]:
        yield 0
        if block == 6:
            raise TimeIsUp("time budget: the run has 600 s and took 700 s")

    monkeypatch.setattr(Pace, "rounds", late)
    watcher = Watcher()
    outcome = run(definition(budget_s=600), watcher)
    assert {block.block for block in watcher.blocks} == set(range(6))
    assert outcome.environment["ending"]["reason"] == "budget"


def test_a_run_with_a_budget_that_reaches_the_limit_of_all_runs_keeps_its_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit passes when the seventh block has begun."""
    watcher, now = Watcher(), time.monotonic

    def later() -> float:
        return now() + (1e6 if sum("clients start" in text for text in watcher.said) > 6 else 0.0)

    monkeypatch.setattr("pgperf.runner.run.time", SimpleNamespace(monotonic=later))
    outcome = run(definition(budget_s=600), watcher, replace(MACHINE, max_run_seconds=600.0))
    assert {block.block for block in watcher.blocks} == set(range(6))
    assert outcome.environment["ending"]["reason"] == "budget"


def test_statements_of_a_block_that_is_given_up_do_not_stay_on_the_server(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second block on, they wait for a lock."""
    own = {name: getattr(routes["tcp"], name) for name in ("host", "port", "dbname", "user", "password")}
    work = WorkloadDefinition("locked", "SELECT pg_advisory_xact_lock_shared(4712)")
    what = definition(workloads=(work,), layers=("psycopg",), routes=("tcp",), budget_s=600, nominal_us={})
    with psycopg.connect(**own, autocommit=True) as other:

        def waiting() -> int:
            """How many clients wait for the lock."""
            row = other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgperf-late-%'"
                " AND wait_event = 'advisory'"
            ).fetchone()
            return int(row[0]) if row else 0

        def lock(block: int, routes: Sequence[str]) -> None:
            if block:
                other.execute("SELECT pg_advisory_lock(4712)")

        def check(pace: Pace) -> None:
            if waiting():
                raise TimeIsUp("time budget: the run has 600 s and took 700 s")

        monkeypatch.setattr(Pace, "check", check)
        watcher = Watcher()
        execute(make_plan(what), {"tcp": routes["tcp"]}, RunSettings("", "late", before_block=lock), watcher)
        assert {block.block for block in watcher.blocks} == {0}
        until(lambda: not waiting(), 30, "no client waits")


def test_a_budget_ends_a_run_whose_clients_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the deadline of a start, which has time for the slowest operations."""

    def late(pace: Pace) -> None:
        raise TimeIsUp("time budget: the run has 20 s and took 23 s")

    monkeypatch.setattr(Pace, "check", late)
    what = definition(budget_s=20)
    with pytest.raises(BudgetTooShort, match="6 blocks take at least"):
        run(replace(what, workloads=(replace(what.workloads[0], sql="hang at ready"),)), Watcher())


def test_a_first_block_that_hangs_names_six_times_what_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(pace: Pace, cohort: int, block: int) -> Iterator[int]:
        raise TimeIsUp("time budget: the run has 20 s and took 23 s")
        yield 0

    monkeypatch.setattr(Pace, "rounds", late)
    monkeypatch.setattr(Pace, "passed_s", lambda pace: 23.5)
    with pytest.raises(BudgetTooShort, match=r"6 blocks take at least 141 s .* and the run has 20 s"):
        run(definition(budget_s=20), Watcher())


@pytest.mark.usefixtures("enough_time")
def test_progress_says_what_the_run_does_how_precise_it_is_and_the_time_left() -> None:
    fixed, early, timed = Watcher(), Watcher(), Watcher()
    run(definition(blocks=2, rounds=2), fixed)
    assert re.fullmatch(
        r"Block 1 of 2: clients start and warm up\. \d+ s passed, about \d+ s left\.", fixed.said[0]
    )
    assert re.fullmatch(r"Block 2 of 2: round 2 of 2 is timed\. \d+ s passed\.", fixed.said[-1])
    run(definition(blocks=9, precision=1e-9), early)
    assert "Block 1: clients start and warm up. Precision not yet known, target" in early.said[0]
    assert re.search(r"Known to ±[\d.]+ %, target ±.* \d+ s passed\.", early.said[-1])
    run(definition(blocks=9, precision=1000.0, budget_s=600), timed)
    assert re.search(r" \d+ s passed, at most (9|10) min( \d+ s)? left\.$", timed.said[0])


def test_without_a_budget_progress_counts_the_planned_blocks() -> None:
    """The promise leaves time for a busy machine, so a quiet one would end at a quarter of it."""
    watcher = Watcher()
    run(definition(blocks=6, precision=1e-9, rounds=2), watcher)
    assert max(watcher.shares) > 0.8
