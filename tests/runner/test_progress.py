"""The share of a run that is done, by the time that its slices take."""

from pgperf.core.records import Definition, Plan, WorkloadDefinition
from pgperf.runner import preflight
from pgperf.runner.plan import make_plan
from pgperf.runner.progress import Progress
from tests.runner.builders import definition

WORKS = tuple(WorkloadDefinition(f"w{at}", "SELECT 1") for at in range(3))


class Watch:
    """The time that slices have taken, in seconds."""

    spent = 0.0

    def __call__(self) -> float:
        return self.spent


def two_cohorts(**more: object) -> Plan:
    """Two cohorts of one block of two rounds, each with two variants."""
    what: Definition = definition(workloads=WORKS[:1], rounds=2, slice_ms=0, **more)
    (cohort,) = make_plan(what).cohorts
    return Plan(what, (cohort, cohort))


def shares(plan: Plan, round_s: list[float]) -> list[float]:
    """After each round, where the rounds take so long."""
    watch = Watch()
    progress, size, found = Progress(plan, watch, diagnoses=True), 2, []
    for at, seconds in enumerate(round_s, 1):
        watch.spent += seconds
        found.append(progress.share(at * size, 0))
    return found


def test_rounds_as_long_as_predicted_have_equal_shares() -> None:
    plan = two_cohorts()
    round_s = preflight.round_s(plan.definition, plan.cohorts[0])
    assert [round(share, 9) for share in shares(plan, [round_s] * 4)] == [0.25, 0.5, 0.75, 1.0]


def test_a_slow_workload_counts_by_its_own_time() -> None:
    """The first cohort takes as long as predicted; the second 100 times as long."""
    plan = two_cohorts()
    fast = preflight.round_s(plan.definition, plan.cohorts[0])
    found = shares(plan, [100 * fast, 100 * fast, fast, fast])
    assert found[1] > 0.98
    assert found[-1] == 1.0


def test_a_share_never_shrinks() -> None:
    plan = two_cohorts()
    fast = preflight.round_s(plan.definition, plan.cohorts[0])
    found = shares(plan, [fast, fast, 100 * fast, 100 * fast])
    assert found == sorted(found)
    assert found[1] == 0.5
    assert 0.5 < found[2] < 0.51
    assert found[-1] == 1.0


def test_a_diagnostic_slice_counts_by_its_own_time() -> None:
    """Slices of ten seconds: after all of them, the diagnostic slices of one second are left."""
    plan = two_cohorts(diagnostic_ms=1000)
    watch = Watch()
    progress = Progress(plan, watch, diagnoses=True)
    watch.spent = 20.0
    progress.share(2, 0)
    assert progress.diagnostic == 4
    for done in (4, 6, 8):
        watch.spent += 20.0
        share = progress.share(done, 0)
    left_s = 4 * preflight.diagnostic_s(plan.definition)
    assert abs(share - 80 / (80 + left_s)) < 1e-9
    assert progress.share(8, 4) == 1.0
