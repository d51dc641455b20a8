"""The time budget of a run: how many rounds a block gets, and whether another block begins."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import BudgetTooShort, TimeIsUp
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Page, Plan, WorkloadDefinition
from pgperf.runner import run_time
from pgperf.runner.pace import Pace
from pgperf.runner.plan import make_plan
from pgperf.runner.progress import Progress
from pgperf.runner.run_time import COLD_START, DIAGNOSTIC, PILOT, RESTART, ROUND, START, WARM_UP
from tests.runner.builders import definition
from tests.runner.test_progress import Watch

ROUNDS = 10


def planned(cohorts: int = 1, **more: object) -> Plan:
    what = definition(rounds=ROUNDS, slice_ms=0, diagnostic_ms=0, **more)
    (cohort,) = make_plan(what).cohorts
    return Plan(what, (cohort,) * cohorts)


class Run:
    """Walks through a run; each step takes a number of seconds that may depend on the time."""

    def __init__(self, plan: Plan, **seconds: float) -> None:
        self.plan, self.watch = plan, Watch()
        self.progress = Progress(plan, diagnoses=True, clock=self.watch)
        self.pace = Pace(plan, self.progress, clock=self.watch)
        self.seconds = {"start": 0.1, "warm_up": 0.5, "pilot": 0.2, "round": 0.5, **seconds}
        self.rounds: list[int] = []
        self.diagnosed: list[tuple[int, int]] = []

    def step(self, cohort: int, part: str, kind: str) -> None:
        self.watch.now += self.seconds[kind]
        self.progress.ended(cohort, part)

    def block(self, block: int) -> None:
        begin, once = self.watch.now, 0.0
        for cohort, variants in enumerate(self.plan.cohorts):
            if run_time.restarted(self.plan.definition, variants):
                self.step(cohort, RESTART, "restart")
            cold = block < self.plan.definition.cold_blocks
            self.step(cohort, COLD_START if cold else START, "start")
            self.step(cohort, WARM_UP, "warm_up")
            if not block:
                self.step(cohort, PILOT, "pilot")
                once += self.seconds["pilot"]
            count = 0
            for _round in self.pace.rounds(cohort, block):
                self.step(cohort, ROUND, "round")
                count += 1
            self.rounds.append(count)
            once += self.diagnose(cohort, block)
        self.pace.block_ended(self.watch.now - begin - once)

    def diagnose(self, cohort: int, block: int) -> float:
        """The time of the diagnostic slices, if that block ends with them."""
        if not self.plan.definition.diagnostic_ms or not self.pace.diagnoses(cohort, block):
            return 0.0
        begin = self.watch.now
        for _variant in self.plan.cohorts[cohort].diagnosed:
            self.step(cohort, DIAGNOSTIC, "diagnostic")
        self.diagnosed.append((cohort, block))
        return self.watch.now - begin

    def all(self, slower_after: int = 1000, times: float = 1.0) -> float:
        """Seconds that the run took; `times` as long from the block `slower_after` on."""
        for block in range(self.plan.definition.most_blocks):
            if block == slower_after:
                self.seconds = {kind: times * each for kind, each in self.seconds.items()}
            if not self.pace.has_time_for_block():
                break
            self.block(block)
        return self.pace.passed_s()


def test_a_fixed_run_has_all_its_blocks_and_rounds_however_long_they_take() -> None:
    run = Run(planned(blocks=3), round=1000.0)
    run.all()
    assert run.rounds == [ROUNDS] * 3
    assert run.pace.left_s() == math.inf


def test_a_run_with_time_to_spare_has_all_rounds_and_as_many_blocks_as_fit() -> None:
    run = Run(planned(budget_s=60))
    took_s = run.all()
    assert set(run.rounds) == {ROUNDS}
    block_s = 0.1 + 0.5 + ROUNDS * 0.5
    assert 60 - block_s <= took_s <= 60
    assert len(run.rounds) == int((60 - 0.2) / block_s)


def test_a_run_that_ends_after_its_blocks_has_no_more_in_its_budget() -> None:
    run = Run(planned(budget_s=600, blocks=6, ends_after_blocks=True))
    assert run.all() < 60
    assert run.rounds == [ROUNDS] * 6
    slow = Run(planned(budget_s=60, blocks=6, ends_after_blocks=True), round=2.0)
    assert slow.all() <= 60
    assert len(slow.rounds) == 6
    assert all(1 <= count < ROUNDS for count in slow.rounds)


def test_slow_operations_get_fewer_rounds_so_that_six_blocks_fit() -> None:
    run = Run(planned(budget_s=60), round=2.0)
    took_s = run.all()
    assert len(run.rounds) >= LEAST_BLOCKS
    assert all(1 <= count < ROUNDS for count in run.rounds)
    assert max(run.rounds) - min(run.rounds) <= 1
    assert took_s <= 60


@pytest.mark.parametrize("cohorts", [1, 2])
def test_a_run_whose_six_blocks_cannot_fit_is_refused_with_the_least_time(cohorts: int) -> None:
    """The pilot has found rounds of 9 s; six of them for each cohort take longer than 40 s."""
    run = Run(planned(cohorts, budget_s=40))
    run.step(0, COLD_START, "start")
    run.step(0, WARM_UP, "warm_up")
    run.step(0, PILOT, "pilot")
    cohort = run.plan.cohorts[0]
    slices = run_time.predicted_slices(run.plan.definition, cohort)
    longer = {name: each._replace(window_ns=int(4.5e9)) for name, each in slices.items()}
    run.progress.piloted(0, longer, dict.fromkeys(cohort.variants, 0.01))
    with pytest.raises(
        BudgetTooShort, match=r"time budget: 6 blocks take at least (\d+) s .* set a time budget of"
    ):
        next(run.pace.rounds(0, 0))


@given(
    times=st.floats(1, 8), since=st.integers(1, 12), round_s=st.floats(0.05, 2), start_s=st.floats(0.05, 1),
    cohorts=st.integers(1, 3), budget_s=st.integers(60, 120),
)  # fmt: skip
def test_a_run_keeps_its_promise_by_a_quarter_also_if_load_comes_later(
    times: float, since: int, round_s: float, start_s: float, cohorts: int, budget_s: int
) -> None:
    run = Run(planned(cohorts, budget_s=budget_s), round=round_s, start=start_s)
    try:
        took_s = run.all(since, times)
    except BudgetTooShort:
        assert run.pace.passed_s() < budget_s / 2
        return
    begun_last_s = cohorts * times * (start_s + 0.5 + round_s)
    assert took_s <= budget_s + begun_last_s
    if begun_last_s < budget_s / 4:
        assert took_s <= 1.25 * budget_s


def site(budget_s: int, cohorts: int = 2) -> Plan:
    """A step of a web site in each cohort, whose servers start anew before each block."""
    page = WorkloadDefinition("page", "", page=Page("/"))
    return planned(
        cohorts, budget_s=budget_s, workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""},
        restart_s=2.0,
    )  # fmt: skip


@pytest.mark.parametrize("restart", [0.5, 2.0, 6.0])
def test_a_run_that_starts_web_servers_anew_keeps_its_promise(restart: float) -> None:
    run = Run(site(120), restart=restart, round=0.3)
    took_s = run.all()
    assert took_s <= 120
    assert len(run.rounds) >= 2 * LEAST_BLOCKS


def test_restarts_that_take_too_long_are_refused_after_the_first_ones() -> None:
    """Twelve of 15 s do not fit into two minutes."""
    run = Run(site(120), restart=15.0)
    with pytest.raises(BudgetTooShort, match=r"at least (1[89]|2)\d+ s"):
        run.all()
    assert run.pace.passed_s() < 20


def test_a_block_after_the_sixth_begins_only_if_the_slowest_so_far_would_fit() -> None:
    run = Run(planned(budget_s=100), round=0.1)
    for block in range(LEAST_BLOCKS):
        run.block(block)
    run.pace.block_ended(30.0)
    run.watch.now = 1000 + 69.9
    assert run.pace.has_time_for_block()
    run.watch.now = 1000 + 70.1
    assert not run.pace.has_time_for_block()


def test_a_client_that_hangs_is_given_up_soon_after_the_budget() -> None:
    run = Run(planned(budget_s=100))
    run.watch.now = 1000 + 110
    run.pace.check()
    run.watch.now = 1000 + 120
    with pytest.raises(TimeIsUp, match="time budget"):
        run.pace.check()


def last_block_s(plan: Plan, spent_s: float, slice_s: float, *, repeats: bool) -> tuple[float, int]:
    """The time at the end of a block that ends with one diagnostic slice of each cohort, and how many
    were repeated. `spent_s`: when it began.
    """
    run, repeated = Run(plan, diagnostic=slice_s), 0
    run.watch.now += spent_s
    for cohort in range(len(plan.cohorts)):
        for part, kind in (
            (START, "start"),
            (WARM_UP, "warm_up"),
            (ROUND, "round"),
            (DIAGNOSTIC, "diagnostic"),
        ):
            run.step(cohort, part, kind)
        while repeats and run.pace.has_time_to_repeat(cohort, plan.definition.diagnosed_block):
            run.step(cohort, DIAGNOSTIC, "diagnostic")
            repeated += 1
    return run.pace.passed_s(), repeated


@given(
    slice_s=st.floats(0.1, 4), spent=st.floats(0, 1.2), cohorts=st.integers(1, 3),
    time=st.sampled_from([{"budget_s": 60}, {"precision": 2.0}, {"precision": 0.0, "blocks": 4}]),
)  # fmt: skip
def test_repeated_diagnostic_slices_keep_the_promise(
    slice_s: float, spent: float, cohorts: int, time: dict[str, float]
) -> None:
    """Also that of a run of a fixed length."""
    plan = planned(cohorts, **time)
    plan = replace(plan, definition=replace(plan.definition, diagnostic_ms=1000))
    promised_s = run_time.promised_s(plan)
    least_s, _none = last_block_s(plan, spent * promised_s, slice_s, repeats=False)
    took_s, repeated = last_block_s(plan, spent * promised_s, slice_s, repeats=True)
    assert took_s <= max(least_s, promised_s) + 1e-6
    assert repeated or least_s + slice_s > promised_s - 1e-6


def test_there_is_no_time_to_repeat_a_slice_once_the_promise_is_used_up() -> None:
    for plan in (planned(budget_s=60), planned(precision=0.0, blocks=3)):
        plan = replace(plan, definition=replace(plan.definition, diagnostic_ms=1000))
        run = Run(plan)
        run.step(0, DIAGNOSTIC, "start")
        assert run.pace.has_time_to_repeat(0, 5)
        run.watch.now += run_time.promised_s(plan)
        assert not run.pace.has_time_to_repeat(0, 5)


def diagnosing(cohorts: int = 1, **more: object) -> Run:
    plan = planned(cohorts, budget_s=60, **more)
    plan = replace(plan, definition=replace(plan.definition, diagnostic_ms=1000))
    return Run(plan, diagnostic=1.2)


@pytest.mark.parametrize("cohorts", [1, 2])
def test_the_sixth_block_is_diagnosed_where_it_fits(cohorts: int) -> None:
    run = diagnosing(cohorts)
    assert run.all() <= 60
    assert run.diagnosed == [(cohort, LEAST_BLOCKS - 1) for cohort in range(cohorts)]


@pytest.mark.parametrize(("cohorts", "times"), [(1, 14.0), (1, 20.0), (1, 30.0), (2, 6.0), (2, 14.0)])
def test_a_run_that_does_not_reach_its_sixth_block_is_diagnosed_once_all_the_same(
    cohorts: int, times: float
) -> None:
    """Rounds take much longer from the third block on."""
    run = diagnosing(cohorts)
    for block in range(LEAST_BLOCKS):
        if not run.pace.has_time_for_block():
            break
        run.seconds["round"] = 0.5 if block < 2 else 0.5 * times
        run.block(block)
    assert run.pace.blocks < LEAST_BLOCKS
    (block,) = {block for _cohort, block in run.diagnosed}
    assert [cohort for cohort, _block in run.diagnosed] == list(range(cohorts))
    assert block < LEAST_BLOCKS - 1
    assert run.pace.passed_s() <= 60 * 1.15


def test_a_fixed_run_is_diagnosed_in_its_last_block() -> None:
    plan = planned(blocks=3)
    run = Run(replace(plan, definition=replace(plan.definition, diagnostic_ms=1000)), diagnostic=100.0)
    run.all()
    assert run.diagnosed == [(0, 2)]


def test_a_promise_without_a_budget_leaves_time_for_a_busy_machine() -> None:
    """Four times as much for a short run, a minute more for a longer one, half as much again for the
    longest.
    """
    plans = [planned(cohorts, precision=2.0, blocks=6) for cohorts in (1, 30, 300)]
    plans = [replace(each, definition=replace(each.definition, rounds=1)) for each in plans]
    short_s, longer_s, longest_s = map(run_time.least_s, plans)
    assert short_s < 20 < longer_s < 120 < longest_s
    assert list(map(run_time.promised_s, plans)) == [
        pytest.approx(4 * short_s), pytest.approx(60 + longer_s), pytest.approx(1.5 * longest_s),
    ]  # fmt: skip


def test_a_promise_ends_where_no_run_may_be_longer() -> None:
    plan = planned(300, precision=2.0, blocks=6)
    most_s = run_time.promised_s(plan) - 10
    pace = Pace(plan, Progress(plan, diagnoses=False), most_s=most_s)
    assert pace.budget_s == pytest.approx(most_s)


def test_diagnostic_slices_are_part_of_the_time() -> None:
    plan = planned(budget_s=60)
    with_it = replace(plan, definition=replace(plan.definition, diagnostic_ms=5000))
    plain, diagnosed = (Run(each, round=1.0) for each in (plan, with_it))
    for run in (plain, diagnosed):
        run.step(0, COLD_START, "start")
        run.step(0, WARM_UP, "warm_up")
        run.step(0, PILOT, "pilot")
        run.step(0, ROUND, "round")
    assert diagnosed.progress.expected_s(run_time.Step(0, DIAGNOSTIC)) > 5
    assert plain.pace.affordable_rounds(0, 0) > diagnosed.pace.affordable_rounds(0, 0)
