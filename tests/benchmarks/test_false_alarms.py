"""benchmarks.false_alarms: the compared pairs, the definition of an alarm, and the bar."""

import json
import math
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import false_alarms, json_lines
from benchmarks.block_collector import BlockCollector
from benchmarks.false_alarms import (
    BESIDE_LOAD,
    FULL,
    WIDER,
    RunsBar,
    _definition,
    bar_of,
    bias,
    count,
    judged,
    rate_of_runs,
    with_duplicates,
)
from pgperf.analysis.outcome import DIFFERS, INCONCLUSIVE
from pgperf.analysis.summary import summarise
from pgperf.core import limits
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import ENDING, Ending, Plan, Variant, VariantBlock
from pgperf.runner import preflight, run_time
from pgperf.runner.plan import make_plan, round_order
from tests.core.builders import slice_record

PAGE = Path(__file__).parents[2] / "docs" / "campaigns" / "false-alarms.md"


def options(**fields: Any) -> Namespace:
    usual = {"quick": False, "suite": False, "stopping": False, "rivals": 0, "rounds": 2}
    return Namespace(**{**usual, "comparisons": 400, "seed": 1, "out": None, **fields})


PLAN = with_duplicates(make_plan(_definition(options(), 1)))


def row(low: float = 0.99, high: float = 1.01, outcome: str = INCONCLUSIVE) -> dict[str, Any]:
    return {"ratio": 1.0, "low": low, "high": high, "outcome": outcome}


def block(variant: Variant, number: int) -> VariantBlock:
    slices = tuple(slice_record(round=at, us_per_op=100.0 + number + at) for at in range(2))
    return VariantBlock(variant=variant, cohort=0, block=number, slices=slices)


def test_every_variant_has_a_duplicate_and_is_compared_with_it() -> None:
    assert len(PLAN.variants) == 24
    assert sum(variant.control for variant in PLAN.variants) == 12
    assert sorted(round_order(PLAN, 0, 0, 0)) == list(range(24))
    blocks = [block(variant, number) for number in range(6) for variant in PLAN.variants]
    rows = [
        row for row in summarise(PLAN.definition, PLAN.variants, blocks, "psycopg")["comparisons"] if row.aa
    ]
    assert len({variant for row in rows for variant in (row.variant, row.baseline)}) == 24
    assert count([judged(row, seed=1) for row in rows]) == (0, 0)


def test_an_interval_that_excludes_one_is_an_alarm() -> None:
    found = [row(), row(low=1.001), row(high=0.999), row(low=1.02, high=1.03, outcome=DIFFERS)]
    assert count(found) == (3, 1)
    assert count([{"low": None, "high": None, "outcome": INCONCLUSIVE}]) == (0, 0)


@pytest.mark.parametrize(
    ("alarms", "differs", "holds"),
    [(20, 0, True), (12, 3, True), (28, 0, True), (11, 0, False), (29, 0, False), (20, 4, False)],
)
def test_the_bar_for_400_comparisons(alarms: int, differs: int, holds: bool) -> None:
    found = [row(low=1.001, outcome=DIFFERS if i < differs else INCONCLUSIVE) for i in range(alarms)]
    assert FULL.holds([*found, *[row()] * (400 - alarms)]) is holds


@pytest.mark.parametrize(("alarms", "holds"), [(0, True), (3, True), (6, False)])
def test_the_bar_for_one_run(alarms: int, holds: bool) -> None:
    assert WIDER.holds([*[row(low=1.001)] * alarms, *[row()] * (12 - alarms)]) is holds


def test_a_suite_duplicates_every_variant_of_three_workloads() -> None:
    plan = with_duplicates(make_plan(_definition(options(suite=True), 1)))
    assert len({variant.workload for variant in plan.variants}) == 3
    assert (len(plan.variants), sum(variant.control for variant in plan.variants)) == (36, 18)


def of_runs(*alarms: int, differs: int = 0) -> list[dict[str, Any]]:
    """Runs of 18 comparisons with so many alarms each; the first `differs` runs have a "differs"."""
    return [
        {**row(low=1.001 if at < many else 0.99), "seed": seed}
        | ({"outcome": DIFFERS} if seed < differs and at == 0 else {})
        for seed, many in enumerate(alarms)
        for at in range(18)
    ]


@pytest.mark.parametrize(
    ("alarms", "differs", "holds"),
    [
        ([1] * 20 + [0, 2], 0, True),
        ([0] * 22, 0, False),
        ([3, 4, 3, 2] * 6, 0, False),
        ([1] * 20 + [0, 2], 1, True),
        ([1] * 20 + [0, 2], 2, False),
    ],
)
def test_the_bar_with_the_runs_as_the_sample(alarms: list[int], differs: int, holds: bool) -> None:
    assert RunsBar().holds(of_runs(*alarms, differs=differs)) is holds


def test_alarms_that_come_in_the_same_runs_widen_the_interval() -> None:
    low, high = rate_of_runs(of_runs(*[1] * 10, *[0] * 10))
    clustered_low, clustered_high = rate_of_runs(of_runs(10, *[0] * 19))
    assert clustered_high - clustered_low > 2 * (high - low)


def test_duplicates_that_are_faster_in_each_run_are_a_bias() -> None:
    rows = [{"seed": seed, "ratio": ratio} for seed in range(4) for ratio in (0.98, 0.99 + seed / 1000)]
    mean, low, high = bias(rows)
    assert low < mean < high < 0
    assert mean == pytest.approx(np.mean(np.log([row["ratio"] for row in rows])))
    centre, *span = bias(rows[:2])
    assert centre < 0
    assert all(map(math.isnan, span))


@pytest.mark.parametrize(
    ("alarms", "differs", "holds"),
    [([0] * 22, 0, True), ([1] * 20 + [0, 2], 1, True), ([3, 4, 3, 2] * 6, 0, False), ([0] * 22, 2, False)],
)
def test_beside_load_alarms_may_be_rarer(alarms: list[int], differs: int, holds: bool) -> None:
    assert BESIDE_LOAD.holds(of_runs(*alarms, differs=differs)) is holds


@pytest.mark.parametrize(
    ("fields", "bar"),
    [
        ({}, FULL),
        ({"suite": True}, RunsBar()),
        ({"stopping": True}, RunsBar()),
        ({"stopping": True, "rivals": 4}, BESIDE_LOAD),
        ({"stopping": True, "quick": True}, WIDER),
    ],
)
def test_each_condition_has_its_bar(fields: dict[str, Any], bar: object) -> None:
    assert bar_of(options(**fields)) == bar


def declared() -> list[Namespace]:
    """The options of each command of the page that has runs as users have them."""
    page = PAGE.read_text()
    commands = re.findall(
        r"^    python -m benchmarks\.false_alarms (.*--stopping.*) --out \$FILE$", page, re.M
    )
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for command in commands:
            assert "--seed " in command
            patch.setattr("sys.argv", ["false_alarms", *command.split()])
            found.append(false_alarms._options())
        return found


def test_the_page_declares_conditions_and_seeds() -> None:
    quiet, suite, loaded = declared()
    assert [each.rivals for each in (quiet, suite, loaded)] == [0, 0, 4]
    assert [each.suite for each in (quiet, suite, loaded)] == [False, True, False]
    page = PAGE.read_text()
    last, last_of_suite = (
        each.seed + math.ceil(each.comparisons / pairs) - 1 for each, pairs in ((quiet, 12), (suite, 18))
    )
    assert loaded.seed == quiet.seed
    assert f"{quiet.seed} to {last}, with `--suite` {suite.seed} to {last_of_suite}." in page


def test_a_run_that_stops_ends_as_a_quick_run_of_a_user() -> None:
    what = _definition(options(stopping=True), 1)
    assert what.stops_early
    assert (what.precision, what.budget_s) == (limits.PRECISION.quick, limits.BUDGET_S.quick) == (5.0, 60)
    assert _definition(options(), 1).is_fixed


@pytest.mark.parametrize("suite", [False, True])
@pytest.mark.parametrize("quick", [False, True])
def test_the_blocks_of_a_run_that_stops_fit_on_a_quiet_machine(suite: bool, quick: bool) -> None:
    what = _definition(options(stopping=True, suite=suite, quick=quick, rounds=7), 1)
    assert run_time.least_s(with_duplicates(make_plan(what))) < 0.8 * what.budget_s


Measured = list[tuple[int, bool]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, without_stack: Callable[..., None]) -> Measured:
    """The seeds that are measured, each with whether it stops. Each has 12 comparisons, 5 % of which
    are alarms; seeds from 1000 on are refused.
    """
    done: Measured = []

    def run(plan: Any, *machine: object) -> dict[str, Any]:
        seed = plan.definition.seed
        done.append((seed, plan.definition.stops_early))
        if seed >= 1000:
            return {"refused": "time budget: too short", "ended": "", "seconds": None, "comparisons": []}
        alarms = (0, 1, 1, 0, 1)[seed % 5]
        rows = [
            {**row(low=1.001 if at < alarms else 0.99), "seed": seed, "layer": "libpq"} for at in range(12)
        ]
        return {"refused": "", "ended": "precision", "seconds": 40.0, "comparisons": rows}

    without_stack(false_alarms, "stack_machine", "make_fixture")
    monkeypatch.setattr(false_alarms, "stack_routes", lambda env: {"tcp": None})
    monkeypatch.setattr(false_alarms, "run_of", run)
    return done


def ask(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> int:
    monkeypatch.setattr(false_alarms, "_options", lambda: options(**fields))
    return false_alarms.main()


def test_a_campaign_goes_on_after_the_seeds_of_its_file_and_conditions(
    tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs.jsonl"
    assert ask(monkeypatch, out=out, comparisons=20) == 1  # fewer alarms than 3 %
    assert ask(monkeypatch, out=out, stopping=True, comparisons=24) == 1
    assert capsys.readouterr().out.endswith("verdict: not judged: 24 comparisons of a campaign of 400\n")
    assert ask(monkeypatch, out=out, stopping=True) == 0
    said = capsys.readouterr().out
    assert "ended by: precision 34; 40 s in the middle\nrefused: 0 of 34 runs\n" in said
    assert said.endswith("failed: 0 of 34 runs\nseeds 1 to 34\nverdict: the bar holds\n")
    assert measured == [(1, False), (2, False), *((seed, True) for seed in range(1, 35))]
    assert ask(monkeypatch, out=out, stopping=True) == 0
    assert len(measured) == len(json_lines.read(out)) == 36


def test_refused_runs_are_kept_and_shown_and_replaced(
    tmp_path: Path, measured: Measured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs.jsonl"
    assert ask(monkeypatch, out=out, stopping=True, seed=977) == 1
    assert [seed for seed, _ in measured] == [*range(977, 1035)][: len(measured)]
    lines = json_lines.read(out)
    assert sum(bool(line["refused"]) for line in lines) == len(lines) - 23
    said = capsys.readouterr().out
    assert "  seed 1000: time budget: too short\n" in said
    assert said.endswith("verdict: not judged: 276 comparisons of a campaign of 400\n")


def test_a_campaign_whose_runs_are_all_refused_ends(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(monkeypatch, stopping=True, seed=1000, quick=True) == 1
    assert len(measured) == 1
    assert "refused: 1 of 1 runs" in capsys.readouterr().out


def test_a_run_that_is_refused_for_its_time_has_no_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise preflight.too_short(80.0, 60.0)

    monkeypatch.setattr(false_alarms, "execute", refuse)
    machine = false_alarms.RunSettings("build", "false-alarms")
    found = false_alarms.run_of(PLAN, {}, machine, lambda each: each.aa)
    assert "at least 80 s" in found["refused"]
    assert found["comparisons"] == []


def test_a_run_whose_client_fails_is_kept_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ClientFailed("libpq: ended unexpectedly")

    monkeypatch.setattr(false_alarms, "execute", fail)
    machine = false_alarms.RunSettings("build", "false-alarms")
    found = false_alarms.run_of(PLAN, {}, machine, lambda each: each.aa)
    assert (found["failed"], found["refused"], found["comparisons"]) == ("libpq: ended unexpectedly", "", [])


def test_a_run_that_failed_counts_as_a_false_differs() -> None:
    found = of_runs(*[1] * 20, 0, 2)
    assert RunsBar().holds(found, failed=1)
    assert not RunsBar().holds(found, failed=2)
    three = of_runs(*[1] * 22, differs=3)
    assert FULL.holds(three)
    assert not FULL.holds(three, failed=1)


def test_few_runs_may_fail_of_a_whole_campaign() -> None:
    """Each has many comparisons, so as a "differs" alone a failed one would count for little."""
    quiet = of_runs(*[1] * 22)
    assert FULL.holds(quiet, failed=1)
    assert not FULL.holds(quiet, failed=2)


def failed_runs(seeds: Any) -> list[json_lines.Line]:
    found = {"refused": "", "failed": "libpq: ended unexpectedly", "ended": "", "seconds": None}
    return [{"seed": seed, **found, "comparisons": []} for seed in seeds]


def test_the_verdict_shows_failed_runs_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = of_runs(*[1] * 22, 0, 2)
    good: list[json_lines.Line] = [
        {"seed": seed, "refused": "", "comparisons": [row for row in found if row["seed"] == seed]}
        for seed in range(24)
    ]
    assert false_alarms.judge(options(), [*good, *failed_runs([24])], RunsBar()) == 0
    said = capsys.readouterr().out
    assert said.startswith("failed: 1 of 25 runs\n  seed 24: libpq: ended unexpectedly\n")
    assert false_alarms.judge(options(), [*good, *failed_runs([24, 25])], RunsBar()) == 1


def test_a_campaign_whose_runs_all_fail_ends() -> None:
    def measure(units: Any) -> Any:
        yield from failed_runs(unit["seed"] for unit in units)

    runs = false_alarms.campaign(options(), {}, 12, measure)
    assert {run["failed"] for run in runs} == {"libpq: ended unexpectedly"}
    assert len(runs) == 34


def test_a_run_is_kept_with_its_end_and_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Ending(reason="budget", blocks=6, seconds=58.0, budget_s=60.0, precision=0.06, target=0.05)

    def execute(plan: Plan, routes: object, machine: object, collector: BlockCollector) -> Namespace:
        collector.block_done([block(variant, number) for number in range(6) for variant in plan.variants])
        return Namespace(plan=plan, environment={ENDING: ending.to_json()})

    monkeypatch.setattr(false_alarms, "execute", execute)
    machine = false_alarms.RunSettings("build", "false-alarms")
    found = false_alarms.run_of(PLAN, {}, machine, lambda each: each.aa)
    assert (found["refused"], found["ended"], found["seconds"]) == ("", "budget", 58.0)
    assert [row["seed"] for row in found["comparisons"]] == [1] * 12
    assert json.loads(json.dumps(found)) == found
