"""The search for the highest rate against servers of known capacity, and in runs."""

import json
import math
import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.spinners import spinning
from pgperf.analysis.grade import Disturbance, Grade, GradeWord, Source
from pgperf.analysis.rate_search import Outcome, RateSearch, searches
from pgperf.analysis.summary import summarise
from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostFailed
from pgperf.core.records import Route, Variant, WorkloadDefinition
from pgperf.runner.plan import make_plan, round_order, sharing
from pgperf.runner.rate_search import CURVE, Searches, tried
from pgperf.runner.run import RunSettings, _run_cohort, execute
from pgperf.runner.run_context import RunContext
from pgperf.runner.slice_length import WINDOW_MAX_NS, length_s
from pgperf.runner.slice_length import searched as searched_slice
from pgperf.runner.slice_window import SliceWindow
from tests.analysis.synthetic import definition as asked
from tests.analysis.synthetic import piece
from tests.runner import simulated_server
from tests.runner.builders import definition
from tests.runner.simulated_server import CLOSED, SEARCH, Server
from tests.runner.test_open_loop import MS, REQUEST, window
from tests.runner.test_run import Watcher, run

CALM = Grade(GradeWord.GOOD, 0.0)


def width(one: RateSearch) -> float:
    """Of the interval of the rate, as a logarithm."""
    assert one.low
    assert one.high
    return math.log(one.high / one.low)


def found(server: Server, limit_ms: float, grade: Grade = CALM, **options: int) -> RateSearch:
    blocks = simulated_server.searched(server, limit_ms, **options)
    (one,) = searches(limit_ms, blocks, {CLOSED: server.per_s}, {CLOSED: grade})
    return one


def server(per_s: float, seed: int, **options: float) -> Server:
    return Server(per_s, np.random.default_rng(seed), **options)


@pytest.mark.parametrize(("per_s", "limit_ms", "window_s"), [(5000.0, 10.0, 1.0), (1000.0, 50.0, 1.0)])
def test_intervals_of_searches_contain_what_the_server_can_do(
    per_s: float, limit_ms: float, window_s: float
) -> None:
    """The speed scatters from round to round, which the closed loop shows only afterwards: a queue is
    the longer for it, so the highest load is that of a slightly slower server.
    """
    of = [found(server(per_s, seed, window_s=window_s), limit_ms) for seed in range(40)]
    assert {each.outcome for each in of} == {Outcome.FOUND}
    truth = server(per_s, 0).highest_load(limit_ms)
    covered = [each for each in of if each.share_low < truth * 1.005 and truth * 0.96 < each.share_high]
    assert len(covered) >= 37
    assert np.median([each.share for each in of]) == pytest.approx(truth, rel=0.05)
    apart = [
        (one, other) for one, other in combinations(of, 2) if one.high < other.low or other.high < one.low
    ]
    assert len(apart) <= 0.03 * math.comb(len(of), 2)


def test_searches_over_load_hosts_are_told_apart() -> None:
    blocks = simulated_server.searched(server(5000.0, 1), 10.0)
    away = [replace(block, variant=replace(block.variant, hosts=2)) for block in blocks]
    both = searches(10.0, [*blocks, *away], {CLOSED: 5000.0, replace(CLOSED, hosts=2): 5000.0}, {})
    assert [each.hosts for each in both] == [0, 2]


def test_each_step_tells_how_many_operations_had_not_begun() -> None:
    blocks = [
        replace(block, slices=tuple(replace(each, backlog=7) for each in block.slices))
        for block in simulated_server.searched(server(5000.0, 1), 10.0)
    ]
    (one,) = searches(10.0, blocks, {CLOSED: 5000.0}, {CLOSED: CALM})
    assert {step.backlog for step in one.steps} == {7}
    assert sum(point.backlog for point in one.points()) == 7 * len(one.steps)


def test_more_blocks_narrow_the_interval() -> None:
    few, many = (
        np.median([width(found(server(5000.0, seed), 10.0, blocks=blocks)) for seed in range(8)])
        for blocks in (6, 24)
    )
    assert many < 0.7 * few


def test_a_tighter_limit_leaves_a_lower_rate() -> None:
    loose, tight = (found(server(5000.0, 1), limit_ms) for limit_ms in (10.0, 1.5))
    assert loose.share > 1.5 * tight.share
    assert tight.share == pytest.approx(server(5000.0, 1).highest_load(1.5), rel=0.5)


def test_a_limit_that_no_rate_holds_has_no_number() -> None:
    one = found(server(5000.0, 1), 0.5)
    assert (one.outcome, one.rate, one.low, one.share) == (Outcome.NONE_HOLDS, None, None, None)
    assert min(step.share for step in one.steps) < 0.05


def test_a_limit_that_every_rate_holds_has_no_number() -> None:
    one = found(server(5000.0, 1, window_s=0.2), 1000.0)
    assert (one.outcome, one.rate) == (Outcome.ALL_HOLD, None)


def test_beside_load_there_is_no_number() -> None:
    one = found(server(5000.0, 1), 10.0, Grade(GradeWord.POOR, 0.4))
    assert (one.outcome, one.rate, one.share, one.grade) == (Outcome.DISTURBED, None, None, "poor")
    assert len(one.steps) == 48


def test_a_quota_of_the_server_leaves_the_number() -> None:
    """It stops the server for 40 % of the time; others took less than 1 %."""
    own = Disturbance(Source.THROTTLING, "server", 40.0, 0.4), Disturbance(Source.STEAL, "host", 0.5, 0.0025)
    one = found(server(5000.0, 1), 10.0, Grade(GradeWord.POOR, 0.405, own))
    assert (one.outcome, one.grade) == (Outcome.FOUND, "poor")
    assert one.rate == found(server(5000.0, 1), 10.0).rate


def test_the_drift_of_the_machine_moves_rate_and_capacity_alike() -> None:
    one = found(server(5000.0, 3, block_scatter=0.3, round_scatter=0.01), 10.0)
    assert math.log(one.share_high / one.share_low) < 0.5 * math.log(one.high / one.low)


def test_slices_of_the_curve_take_turns_with_bisection() -> None:
    shares = [
        step.share for step in found(server(5000.0, 2, block_scatter=0.0, round_scatter=0.0), 10.0).steps
    ]
    assert shares[::3][:5] == pytest.approx(CURVE, rel=1e-6)
    assert all(abs(share - 0.9) < 0.25 for share in [*shares[10::3], *shares[11::3]])


@pytest.mark.parametrize("op_s", [1e-12, 0.0, 1e9])
def test_a_search_keeps_within_what_clients_can_be_asked_for(op_s: float) -> None:
    own = Searches()
    own.begin_block(SEARCH, op_s, 10.0)
    own.begin_block(CLOSED, op_s, 10.0)
    rate = own.next_rate(SEARCH)
    assert rate is not None
    assert protocol.MIN_RATE <= rate <= protocol.MAX_RATE
    assert own.next_rate(CLOSED) is None


def test_a_slice_with_failed_requests_says_nothing() -> None:
    own, empty = Searches(), SliceWindow(0, 0, np.zeros(0, np.uint64))
    own.begin_block(SEARCH, 1e-3, 10.0)
    own.learned(CLOSED, piece(1e3, 0), empty, None)
    own.learned(CLOSED, piece(1.0, 0, errors=1), empty, None)
    own.learned(SEARCH, piece(1.0, 0, errors=1, due=100), empty, 1.0)
    assert own.next_rate(SEARCH) == pytest.approx(500.0)


@pytest.mark.parametrize(
    ("of", "failed", "expected"),
    [(SEARCH, 1, Outcome.FOUND), (SEARCH, 2, Outcome.UNKNOWN), (CLOSED, 2, Outcome.UNKNOWN)],
)
def test_a_search_in_which_too_many_requests_failed_found_nothing(
    of: Variant, failed: int, expected: Outcome
) -> None:
    """More than one in a thousand, as for every variant."""
    requests = {"requests": 1000, "errors": {"status 503": failed}, "lengths": [9]}
    measured = [
        replace(each, http=requests) if each.variant == of else each
        for each in simulated_server.searched(server(1000.0, 1), 50.0)
    ]
    summary = summarise(replace(asked(), rate_search_ms=50.0), [CLOSED, SEARCH], measured, "psycopg")
    (one,) = map(RateSearch.from_json, summary["rate_searches"])
    assert (one.outcome, one.rate is None) == (expected, expected == Outcome.UNKNOWN)


def test_a_block_has_a_capacity_of_its_own_and_keeps_what_was_found() -> None:
    own, window = Searches(), SliceWindow(0, 0, np.full(1000, 1000, np.uint64))
    own.begin_block(SEARCH, 1e-3, 10.0)
    own.learned(CLOSED, piece(1e3, 0), window, None)
    for _ in range(8):
        own.learned(SEARCH, piece(1.0, 0, due=1000), window, own.next_rate(SEARCH))
    before = own.next_rate(SEARCH)
    own.begin_block(SEARCH, 1e-3, 10.0)
    assert own.next_rate(SEARCH) == pytest.approx(before)
    own.learned(CLOSED, piece(2e3, 0), window, None)
    assert own.next_rate(SEARCH) == pytest.approx(before / 2)


def test_a_block_that_lost_a_load_host_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured again, and the search begins it with what it had found before."""
    window, failures = SliceWindow(0, 0, np.full(1000, 1000, np.uint64)), ["b", "c"]
    first_rates: list[float | None] = []

    def searching(context: RunContext, _cohort: int, _block: int, _done: object) -> None:
        context.searches.begin_block(SEARCH, 1e-3, 10.0)
        first_rates.append(context.searches.next_rate(SEARCH))
        context.searches.learned(CLOSED, piece(2e3, 0), window, None)
        for _ in range(8):
            rate = context.searches.next_rate(SEARCH)
            context.searches.learned(SEARCH, piece(1.0, 0, due=1000), window, rate)
        if failures:
            raise LoadHostFailed(failures.pop(), "gone")

    hosts = SimpleNamespace(end=lambda: None, go_on_without=lambda _host, _why: True)
    context: Any = RunContext(*[None] * 10, load_hosts=hosts)  # type: ignore[arg-type]
    monkeypatch.setattr("pgperf.runner.run.run_block", searching)
    _run_cohort(context, 0, 0, lambda _blocks: None)
    first = first_rates[0]
    assert first_rates == [first] * 3
    failures.append("d")
    _run_cohort(context, 0, 1, lambda _blocks: None)
    *_, second, again = first_rates
    assert (len(first_rates), again) == (5, second)
    assert second != first, "of a block that counts it keeps what it found"


def test_operations_that_had_not_begun_count_with_the_time_they_had_waited() -> None:
    """The first of the window takes 60 ms, and the eight after it wait for 80, 70, .. 10 ms."""
    of = window([1.0] * 5 + [61.0, 1.0], [0.0] * 7, REQUEST)
    assert of.waited.tolist() == [each * 10 * MS for each in range(8, 0, -1)]
    assert tried(of, 45.0)["over"] == 5
    assert tried(of, 45.0)["p50_ns"] == 40 * MS
    assert tried(of, 45.0)["p99_ns"] is None


def test_a_slice_is_long_enough_for_a_percentile_and_for_the_limit() -> None:
    request = protocol.Slice(seq=1, lead_in_ns=MS, window_ns=50 * MS)
    lengths = [
        searched_slice(request, SEARCH, *asked).window_ns // MS
        for asked in ((5000.0, 10.0), (500.0, 10.0), (5000.0, 300.0), (5.0, 10.0), (5000.0, 1000.0))
    ]
    assert lengths == [1000, 2400, 3000, WINDOW_MAX_NS // MS, WINDOW_MAX_NS // MS]
    assert length_s(request, 0.0, SEARCH, 10.0) == pytest.approx(1.25)
    assert length_s(request, 0.0, SEARCH, 300.0) == pytest.approx(3.75)


def test_a_search_shares_the_processes_of_its_closed_loop_and_has_no_control() -> None:
    plan = make_plan(definition(layers=("libpq", "psycopg"), rates=(None, 100.0), rate_search_ms=10.0))
    own = [variant for variant in plan.variants if not variant.control]
    assert [variant.is_search for variant in own] == [False] * 4 + [True] * 2
    assert own[-1].label == "psycopg · here · highest rate exponential"
    assert own[-1].closed == own[1]
    assert [len(members) for members in sharing(own).values()] == [3, 3]
    assert not any(variant.is_search for variant in plan.variants if variant.control)
    assert [variant for cohort in plan.cohorts for variant in cohort.diagnosed if variant.is_search] == []


def test_in_the_first_round_the_closed_loops_come_first() -> None:
    plan = make_plan(definition(layers=("libpq", "psycopg"), rate_search_ms=10.0))
    searching = [variant.is_search for variant in plan.cohorts[0].variants]
    first, *later = ([searching[at] for at in round_order(plan, 0, 0, number)] for number in range(6))
    assert first == sorted(first)
    assert any(order != sorted(order) for order in later)


def test_a_tool_has_no_search() -> None:
    plan = make_plan(definition(layers=("libpq", "pgbench"), rate_search_ms=10.0))
    assert {variant.layer for variant in plan.variants if variant.is_search} == {"libpq"}
    assert [(left.layer, left.loop) for left in plan.skipped] == [("pgbench", "open")]


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their proper length has a test of its own."""
    monkeypatch.setattr("pgperf.runner.slice_length.WINDOW_MAX_NS", 300 * MS)


@pytest.mark.usefixtures("short_slices")
def test_a_run_searches_beside_the_closed_loop() -> None:
    """An operation takes 2 ms of one connection, so the capacity is near 500/s."""
    watcher = Watcher()
    what = definition(blocks=2, rounds=3, rate_search_ms=20.0, slice_ms=100, nominal_us={"fake": 2000.0})
    outcome = run(what, watcher)
    assert outcome.environment
    own = [block for block in watcher.blocks if block.variant.is_search]
    assert [len(block.slices) for block in own] == [3, 3]
    pieces = [piece for block in own for piece in block.slices]
    # Nothing may be due in these short slices where a stall had made the closed loop look slow.
    assert all(piece.due is not None and piece.over is not None for piece in pieces)
    assert any(piece.due for piece in pieces)
    assert [bool(piece.p50_ns) for piece in pieces] == [bool(piece.due) for piece in pieces]
    assert len({piece.asked_per_s for piece in pieces}) == 6
    others = [block for block in watcher.blocks if not block.variant.is_search]
    closed = next(block for block in others if not block.variant.control)
    assert pieces[0].asked_per_s == pytest.approx(closed.slices[0].ops_per_s / 2)
    assert {piece.asked_per_s for block in others for piece in block.slices} == {None}


@pytest.mark.usefixtures("short_slices")
def test_a_search_on_a_real_server(routes: dict[str, Route], c_client: Path) -> None:
    """How high the rate is depends on this machine; what the search says of it does not."""
    watcher = Watcher()
    work = WorkloadDefinition("one", "SELECT 1")
    what = definition(
        workloads=(work,), layers=("libpq",), routes=("socket",), clients=(2,), blocks=2, rounds=4,
        slice_ms=100, rate_search_ms=10.0,
    )  # fmt: skip
    outcome = execute(make_plan(what), routes, RunSettings(str(c_client.parent), "search"), watcher)
    summary = summarise(what, outcome.plan.variants, watcher.blocks, "psycopg")
    assert [row["label"] for row in summary["variants"]] == [
        "libpq · socket · 2 clients", "libpq · socket · 2 clients · control 1",
    ]  # fmt: skip
    (one,) = map(RateSearch.from_json, json.loads(json.dumps(summary["rate_searches"])))
    assert len(one.steps) == 8
    assert all(step.due and step.p50_us and 0 <= step.over <= step.due for step in one.steps)
    assert one.steps[0].p50_us < 1000 * one.limit_ms or one.steps[0].over
    assert (one.rate is None) == (one.outcome != Outcome.FOUND)
    if one.rate:
        assert one.low <= one.rate <= one.high
        assert one.rate == pytest.approx(one.share * one.capacity)


@pytest.mark.usefixtures("short_slices")
def test_beside_load_a_real_search_has_no_number(routes: dict[str, Route], c_client: Path) -> None:
    watcher = Watcher()
    what = definition(
        workloads=(WorkloadDefinition("one", "SELECT 1"),), layers=("libpq",), routes=("socket",), blocks=2,
        rounds=2, slice_ms=200, rate_search_ms=10.0,
    )  # fmt: skip
    with spinning(3 * len(os.sched_getaffinity(0)), most_s=120):
        outcome = execute(make_plan(what), routes, RunSettings(str(c_client.parent), "loaded"), watcher)
    summary = summarise(what, outcome.plan.variants, watcher.blocks, "psycopg")
    (one,) = map(RateSearch.from_json, summary["rate_searches"])
    assert (one.outcome, one.grade, one.rate) == (Outcome.DISTURBED, "poor", None)
