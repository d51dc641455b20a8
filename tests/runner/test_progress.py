"""The share of a run that is done and the time that is left, by the wall time of its steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.records import Page, Plan, WorkloadDefinition
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from pgperf.runner.progress import Progress
from pgperf.runner.run_time import COLD_START, DIAGNOSTIC, PILOT, RESTART, ROUND, START, WARM_UP, Step
from tests.runner.builders import definition


class Watch:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Run:
    """Walks through the steps of a plan; each takes `times` as long as predicted."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.watch = plan, Watch()
        self.progress = Progress(plan, diagnoses=True, clock=self.watch)

    def step(self, cohort: int, part: str, seconds: float | None = None, times: float = 1.0) -> float:
        predicted_s = run_time.predicted_s(self.plan, Step(cohort, part))
        self.watch.now += times * predicted_s if seconds is None else seconds
        self.progress.ended(cohort, part)
        return self.progress.share()


def two_cohorts(**more: object) -> Plan:
    """Two cohorts, each with two variants; two rounds in each of two blocks, one of them cold."""
    what = definition(rounds=2, blocks=2, slice_ms=0, **more)
    (cohort,) = make_plan(what).cohorts
    return Plan(what, (cohort, cohort))


def steps(plan: Plan) -> list[Step]:
    """In the order of the run."""
    blocks = plan.definition.blocks
    found = []
    for block in range(blocks):
        for cohort in range(len(plan.cohorts)):
            parts = [START if block else COLD_START, WARM_UP, *([] if block else [PILOT])]
            diagnoses = plan.definition.diagnostic_ms and block == blocks - 1
            parts += [ROUND] * plan.definition.rounds + [DIAGNOSTIC] * (2 if diagnoses else 0)
            found += [Step(cohort, part) for part in parts]
    return found


def test_a_run_that_takes_as_long_as_predicted_is_predicted_throughout() -> None:
    plan = two_cohorts(diagnostic_ms=1000)
    run = Run(plan)
    total_s = run.progress.left_s()
    for step in steps(plan):
        share = run.step(*step)
        assert share == pytest.approx((run.watch.now - 1000) / total_s)
        assert run.progress.left_s() == pytest.approx(total_s - (run.watch.now - 1000), abs=1e-6)
    assert (share, run.progress.left_s()) == (1.0, 0)


@given(st.lists(st.floats(0.01, 100), min_size=22, max_size=22))
def test_a_share_never_shrinks_and_ends_at_one(seconds: list[float]) -> None:
    plan = two_cohorts(diagnostic_ms=1000)
    run, order = Run(plan), steps(plan)
    shares = [run.step(*step, seconds=each_s) for step, each_s in zip(order, seconds, strict=True)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_late_starts_make_the_next_starts_late() -> None:
    """On a busy machine, the clients of one cohort start ten times later than predicted: so will
    those of the other cohort, in cold blocks and in later ones.
    """
    plan = two_cohorts()
    run = Run(plan)
    before_s = run.progress.left_s()
    run.step(0, COLD_START, times=10)
    predicted = {part: run_time.predicted_s(plan, Step(0, part)) for part in (START, COLD_START)}
    expected_s = before_s - predicted[COLD_START] + 9 * (predicted[COLD_START] + 2 * predicted[START])
    assert run.progress.left_s() == pytest.approx(expected_s)


def test_the_first_restart_of_web_servers_corrects_the_next_ones_and_no_start_of_clients() -> None:
    page = WorkloadDefinition("page", "", page=Page("/"))
    plan = two_cohorts(
        workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""}, restart_s=2.0
    )
    run = Run(plan)
    before_s = run.progress.left_s()
    run.step(0, RESTART, seconds=6.0)
    run.step(0, COLD_START)
    cold_s = run_time.predicted_s(plan, Step(0, COLD_START))
    assert run.progress.left_s() == pytest.approx(before_s - 2.0 - cold_s + 3 * 4.0)
    assert run.progress.expected_s(Step(1, RESTART)) == pytest.approx(6.0)
    assert run.progress.expected_s(Step(1, COLD_START)) == pytest.approx(cold_s)


def test_the_pilot_corrects_the_rounds_of_its_cohort() -> None:
    """An operation of 40 ms, which nothing could predict: each slice takes 2 s."""
    plan = two_cohorts()
    run = Run(plan)
    for part in (COLD_START, WARM_UP, PILOT):
        run.step(0, part)
    before_s, cohort = run.progress.left_s(), plan.cohorts[0]
    slow = dict.fromkeys(cohort.variants, 0.040)
    slices = {
        "spin": run_time.predicted_slices(plan.definition, cohort)["spin"]._replace(window_ns=2 * 10**9)
    }
    run.progress.piloted(0, slices, slow)
    lead_in_s = 10 * 0.040 - 0.001
    assert run.progress.left_s() - before_s == pytest.approx(
        4 * 2 * (lead_in_s + 2.0 - 0.050 + 0.040), abs=0.01
    )
    run.step(0, ROUND, seconds=4.1)
    assert run.progress.left_s() < 20  # the rounds of the other cohort are not late


def test_the_pilot_corrects_the_diagnostic_slices_too() -> None:
    """An operation of 5 s in the lead-in, and one that the window of a second cannot cut."""
    plan = two_cohorts(diagnostic_ms=1000)
    run, cohort = Run(plan), plan.cohorts[0]
    for part in (COLD_START, WARM_UP, PILOT):
        run.step(0, part)
    before_s = run.progress.expected_s(Step(0, DIAGNOSTIC))
    slices = run_time.predicted_slices(plan.definition, cohort)
    run.progress.piloted(0, slices, dict.fromkeys(cohort.variants, 5.0))
    after_s = run.progress.expected_s(Step(0, DIAGNOSTIC))
    assert after_s - before_s == pytest.approx(10.0, abs=plan.definition.lead_in_ms / 1000)
    assert run.progress.expected_s(Step(1, DIAGNOSTIC)) == pytest.approx(before_s)


def test_a_round_counts_with_the_mean_of_those_before() -> None:
    plan = two_cohorts()
    run = Run(plan)
    for part in (COLD_START, WARM_UP, PILOT):
        run.step(0, part)
    for seconds in (10.0, 30.0):
        run.step(0, ROUND, seconds=seconds)
    left_s = run.progress.left_s()
    run.step(0, ROUND, seconds=20.0)
    assert left_s - run.progress.left_s() == pytest.approx(20.0)
