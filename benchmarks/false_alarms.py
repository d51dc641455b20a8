"""Rate of false alarms: whole runs that compare every variant with a duplicate of itself.

    python -m benchmarks.false_alarms [--quick] [--suite] [--stopping] [--rivals N]
        [--comparisons 400] [--seed 1] [--out FILE]

Each run measures libpq, psycopg and the Django ORM over four routes (local socket, twice; TCP;
PgBouncer), and a duplicate of each. These are 12 disjoint pairs, planned, measured and judged like
the controls of every run. An alarm is a 95 % interval that excludes 1; the expected rate is 5 % of
the comparisons. The bar: 3 to 7 % alarms, under 1 % "differs", and at most 5 % of the runs fail.
`--quick`: one short run, under a minute; the bar is that chance alone explains the number of alarms.

`--suite`: three workloads that take turns, of 20 µs to 2 ms, through libpq, psycopg and Django's
cursor over two routes: 18 pairs in each run. The bar: the 95 % interval of the rate of alarms, with
the runs as its sample, contains 5 %, and at most 5 % of the runs have a "differs". It is for 400
comparisons or more; fewer are shown but not judged.

`--stopping`: runs end as users have them, when they know the ratios of the layers to ±5 % or after
60 s (with `--suite` 120 s), and have as many rounds as fit, up to seven. The bar is that of
`--suite`. With `--quick` on half of the routes, for at most 35 s.

`--rivals N`: N processes that spin run beside the whole campaign. Intervals that are too wide are no
false alarms, so the bar is that of `--stopping` but for the upper end: the lower end of the rate's
interval is at most 5 %.

`--out` keeps each run by its seed and its conditions, and runs that the file has are not repeated. A
run that is refused because its blocks cannot fit is kept as refused and has no comparisons. One whose
client fails is kept as failed, and each bar counts it as a false "differs". More runs follow until
there are as many comparisons as asked for, or until most runs were refused or failed.
"""

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import json_lines
from benchmarks.block_collector import BlockCollector
from benchmarks.options import ScriptParser, run_script
from benchmarks.spinners import DAY_S, spinning
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.catalog import FIXTURES
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core import limits
from pgperf.core.exceptions import BudgetTooShort, ClientFailed
from pgperf.core.records import (
    ENDING,
    Cohort,
    Definition,
    Ending,
    Plan,
    Route,
    Variant,
    WorkloadDefinition,
)
from pgperf.install.c_client import build
from pgperf.install.launch import django_driver
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("libpq", "psycopg", "django_orm")
ROUTES = ("socket", "socket-2", "tcp", "pgbouncer")
SUITE = (
    WorkloadDefinition("light", "SELECT 1"),
    SITE_BY_DOMAIN,
    WorkloadDefinition("heavy", "SELECT count(*) FROM generate_series(1, 20000)"),
)
SUITE_LAYERS, SUITE_ROUTES = ("libpq", "psycopg", "django_cursor"), ("socket", "tcp")
#: The fewest comparisons of a campaign with --suite, --stopping or --rivals.
CAMPAIGN = 400
#: The time of a run that stops by itself, if it is a quick one, and if it has three workloads: their
#: six blocks take 73 s on a slow machine.
QUICK_BUDGET_S, SUITE_BUDGET_S = 35, 120
#: The bar of `--quick` fails below this probability of so many alarms.
_CHANCE = 0.001


@dataclass(frozen=True)
class Bar:
    """Limits as shares of the comparisons. `alarms` is None for too few comparisons. Each run that
    failed counts as a "differs". `failed`: the largest share of the runs that may fail.
    """

    alarms: tuple[float, float] | None
    differs: float
    failed: float = 1.0

    def holds(self, found: Sequence[dict[str, Any]], failed: int = 0) -> bool:
        alarms, differs = count(found)
        differs += failed
        if self.alarms is None:
            chance = stats.binomtest(alarms, len(found), 0.05, alternative="greater").pvalue
            return bool(found and chance >= _CHANCE and differs <= self.differs * len(found))
        least, most = self.alarms
        few_failed = not failed or failed <= self.failed * (len(by_run(found)) + failed)
        return least <= alarms / len(found) <= most and differs / len(found) < self.differs and few_failed


@dataclass(frozen=True)
class RunsBar:
    """Limits with the runs as the sample. `may_be_rarer`: fewer alarms than expected are right too.
    Each run that failed counts as one that differs.
    """

    expected: float = 0.05
    runs_that_differ: float = 0.05
    may_be_rarer: bool = False

    def holds(self, found: Sequence[dict[str, Any]], failed: int = 0) -> bool:
        runs = by_run(found)
        low, high = rate_of_runs(found)
        differ = failed + sum(count(rows)[1] > 0 for rows in runs)
        as_rare = low <= self.expected and (self.may_be_rarer or self.expected <= high)
        return as_rare and differ <= self.runs_that_differ * (len(runs) + failed)


FULL = Bar((0.03, 0.07), 0.01, failed=0.05)
WIDER = Bar(None, 0.10)
BESIDE_LOAD = RunsBar(may_be_rarer=True)


def main() -> int:
    options = _options()
    conditions = json_lines.conditions(options, "quick", "suite", "stopping", "rivals", "rounds")
    runs = campaign(options, conditions, _pairs_of_a_run(options), partial(_measured, options))
    found = comparisons(runs)
    print_table(found)
    if found:
        print_bias(found)
    if options.stopping or options.rivals:
        print_endings(runs)
    if isinstance(bar_of(options), RunsBar):
        print_rate_of_runs(found)
    judged_by_run = isinstance(bar_of(options), RunsBar)
    at_least = CAMPAIGN if judged_by_run or options.rivals else 0
    return judge(options, runs, bar_of(options), at_least)


def bar_of(options: argparse.Namespace) -> Bar | RunsBar:
    if options.quick:
        return WIDER
    if options.rivals:
        return BESIDE_LOAD
    return RunsBar() if options.suite or options.stopping else FULL


def campaign(
    options: argparse.Namespace,
    conditions: Mapping[str, Any],
    pairs: int,
    measured: Callable[[Sequence[json_lines.Unit]], json_lines.Measuring],
) -> list[json_lines.Line]:
    """The runs from the first seed on, from the file or measured, until they have as many comparisons
    as are wanted. It gives up when most were refused or failed. `pairs`: the comparisons of a run.
    """
    runs: list[json_lines.Line] = []
    while (lacking := _wanted(options) - len(comparisons(runs))) > 0 and not _mostly_without(runs):
        first = options.seed + len(runs)
        units = [{**conditions, "seed": first + at} for at in range(math.ceil(lacking / pairs))]
        runs += json_lines.resumed(options.out, units, measured)
    return runs


def judge(
    options: argparse.Namespace, runs: Sequence[json_lines.Line], bar: Bar | RunsBar, at_least: int = 0
) -> int:
    """Print the verdict; the exit code. Fewer comparisons than are wanted are not judged."""
    found, wanted = comparisons(runs), _wanted(options, at_least)
    failed = [run for run in runs if run.get("failed")]
    print("\n".join([f"failed: {len(failed)} of {len(runs)} runs", *map(_why_failed, failed)]))
    print(f"seeds {runs[0]['seed']} to {runs[-1]['seed']}")
    if len(found) < wanted:
        print(f"verdict: not judged: {len(found)} comparisons of a campaign of {wanted}")
        return 1
    passed = bar.holds(found, len(failed))
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def comparisons(runs: Sequence[json_lines.Line]) -> list[dict[str, Any]]:
    return [row for run in runs for row in run["comparisons"]]


def _wanted(options: argparse.Namespace, at_least: int = 0) -> int:
    return 1 if options.quick else max(options.comparisons, at_least)


def _mostly_without(runs: Sequence[json_lines.Line]) -> bool:
    """Were most of them refused, or did they fail?"""
    return 2 * sum(bool(run["refused"] or run.get("failed")) for run in runs) > len(runs)


def _why_failed(run: json_lines.Line) -> str:
    return f"  seed {run['seed']}: {run['failed']}"


def with_duplicates(plan: Plan) -> Plan:
    """The plan with a duplicate of every variant instead of its controls, all in one cohort."""
    variants = [variant for variant in plan.variants if not variant.control]
    duplicates = [replace(variant, control=1) for variant in variants]
    return replace(plan, cohorts=(Cohort((*variants, *duplicates)),))


def count(found: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """The number of alarms and of outcomes "differs"."""
    return sum(map(_is_alarm, found)), sum(row["outcome"] == DIFFERS for row in found)


def by_run(found: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The comparisons of each run."""
    runs: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        runs[row["seed"]].append(row)
    return list(runs.values())


def rate_of_runs(found: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The 95 % interval of the mean rate of alarms, with the runs as its sample; 0 to 1 for a single
    run.
    """
    rates = [count(rows)[0] / len(rows) for rows in by_run(found)]
    return _interval_of_mean(rates) if len(rates) > 1 else (0.0, 1.0)


def bias(found: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """The mean log ratio of duplicates to originals, and its 95 % interval over the runs; NaN for the
    ends of a single run.
    """
    logs = [float(np.mean(np.log([row["ratio"] for row in rows]))) for rows in by_run(found)]
    span = _interval_of_mean(logs) if len(logs) > 1 else (math.nan, math.nan)
    return float(np.mean(logs)), *span


def _interval_of_mean(values: Sequence[float]) -> tuple[float, float]:
    reach = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values) - reach), float(np.mean(values) + reach)


def print_rate_of_runs(found: Sequence[dict[str, Any]]) -> None:
    low, high = rate_of_runs(found)
    runs = by_run(found)
    differ = sum(count(rows)[1] > 0 for rows in runs)
    span = f"{in_percent(low, 1)} to {in_percent(high, 1)}"
    print(f"rate of alarms, clustered by run: {span}; runs with a false differs: {differ} of {len(runs)}")


def print_bias(found: Sequence[dict[str, Any]]) -> None:
    change, *ends = (f"{100 * math.expm1(log):+.2f} %" for log in bias(found))
    print(f"duplicates over originals: {change} ({' to '.join(ends)})")


def print_endings(runs: Sequence[json_lines.Line]) -> None:
    """Why the runs ended, and which were refused."""
    ended = [run for run in runs if run["ended"]]
    if ended:
        counts = ", ".join(f"{why} {many}" for why, many in Counter(run["ended"] for run in ended).items())
        print(f"ended by: {counts}; {median(run['seconds'] for run in ended):.0f} s in the middle")
    refused = [run for run in runs if run["refused"]]
    print(f"refused: {len(refused)} of {len(runs)} runs")
    for run in refused:
        print(f"  seed {run['seed']}: {run['refused']}")


def _is_alarm(row: dict[str, Any]) -> bool:
    """Does it have an interval that excludes 1?"""
    return row["low"] is not None and not row["low"] <= 1 <= row["high"]


def _definition(options: argparse.Namespace, seed: int) -> Definition:
    """The definition of a quick run of `orm-overhead`, with other numbers of blocks and rounds."""
    works: tuple[WorkloadDefinition, ...] = SUITE if options.suite else (SITE_BY_DOMAIN,)
    layers = SUITE_LAYERS if options.suite else LAYERS
    routes: tuple[str, ...] = SUITE_ROUTES if options.suite else ROUTES
    if options.quick and options.stopping:
        routes = routes[: len(routes) // 2]
    return Definition(
        "false-alarms", works, layers, routes, blocks=6, rounds=options.rounds,
        lead_in_ms=limits.QUICK_LEAD_IN_MS, cold_blocks=0, seed=seed, **_ending(options),
    )  # fmt: skip


def _ending(options: argparse.Namespace) -> dict[str, Any]:
    """What lets a run end by itself, as a quick run of a user."""
    if not options.stopping:
        return {}
    whole = SUITE_BUDGET_S if options.suite else limits.BUDGET_S.quick
    return {
        "precision": limits.PRECISION.quick,
        "budget_s": QUICK_BUDGET_S if options.quick else whole,
    }


def _pairs_of_a_run(options: argparse.Namespace) -> int:
    plan = with_duplicates(make_plan(_definition(options, options.seed)))
    return sum(variant.control for variant in plan.variants)


def _measured(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The runs of these seeds on a stack of their own, beside the rivals."""
    with Stack(ROOT / ".stack" / "false_alarms", parts=["postgres", "pgbouncer"], keep=False) as stack:
        routes, machine = stack_routes(stack.env), stack_machine(stack)
        make_fixture(routes["tcp"])
        with spinning(options.rivals, DAY_S):
            for unit in units:
                plan = with_duplicates(make_plan(_definition(options, unit["seed"])))
                yield run_of(plan, routes, machine, lambda each: each.aa)


def run_of(
    plan: Plan,
    routes: dict[str, Route],
    machine: RunSettings,
    is_wanted: Callable[[VariantComparison], bool],
) -> dict[str, Any]:
    """One run: those of its comparisons that are wanted, and how it ended, or why it was refused or
    failed.
    """
    what, collector = plan.definition, BlockCollector()
    try:
        outcome = execute(plan, routes, replace(machine, run_id=str(what.seed)), collector)
    except BudgetTooShort as refusal:
        return _without_comparisons(refused=str(refusal))
    except ClientFailed as failure:
        return _without_comparisons(failed=str(failure))
    check_placement(outcome.plan.variants)
    summary = summarise(what, outcome.plan.variants, collector.blocks, django_driver())
    ending = Ending.from_json(outcome.environment.get(ENDING))
    return {
        "refused": "",
        "failed": "",
        "ended": ending.reason if ending else "",
        "seconds": ending.seconds if ending else None,
        "comparisons": [judged(each, what.seed) for each in summary["comparisons"] if is_wanted(each)],
    }


def _without_comparisons(*, refused: str = "", failed: str = "") -> dict[str, Any]:
    return {"refused": refused, "failed": failed, "ended": "", "seconds": None, "comparisons": []}


def judged(comparison: VariantComparison, seed: int) -> dict[str, Any]:
    """The comparison as JSON, with the labels of its variants."""
    return {
        **asdict(comparison),
        "variant": comparison.variant.label,
        "baseline": comparison.baseline.label,
        "layer": comparison.variant.layer,
        "seed": seed,
    }


def check_placement(variants: Sequence[Variant]) -> None:
    placements = {variant.placement for variant in variants}
    if placements != {"apart"}:
        raise SystemExit(f"verdict: cannot measure: the placement was {', '.join(placements)}, not apart")


def stack_routes(env: dict[str, str]) -> dict[str, Route]:
    login: dict[str, Any] = {
        "dbname": env["PGPERF_DB_NAME"],
        "user": env["PGPERF_DB_USER"],
        "password": env["PGPERF_DB_PASSWORD"],
    }
    port, pooler_port = int(env["PGPERF_DB_PORT"]), int(env["PGPERF_PGBOUNCER_PORT"])
    socket = Route("socket", env["PGPERF_DB_SOCKET"], port, **login)
    return {
        "socket": socket,
        "socket-2": replace(socket, name="socket-2"),
        "tcp": Route("tcp", "127.0.0.1", port, **login),
        "pgbouncer": Route("pgbouncer", "127.0.0.1", pooler_port, pooler="session", **login),
    }


def stack_machine(stack: Stack) -> RunSettings:
    folder = build(stack.place.own / "build", pg_config=stack.env["PGPERF_PG_CONFIG"]).path.parent
    return RunSettings(str(folder), "false-alarms", connection_share=0.9)


def make_fixture(route: Route) -> None:
    with ControlConnection(route, "pgperf-fixture") as monitor:
        for statement in FIXTURES[SITE_BY_DOMAIN.fixture].create:
            monitor.query(statement)


def print_table(found: Sequence[dict[str, Any]]) -> None:
    """Print a row for each layer and one for all.

    Half-widths are those of the ratios' intervals.
    """
    if not found:
        print("no comparisons\n")
        return
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        groups[row["layer"]].append(row)
    heads = (
        "layer",
        "comparisons",
        "alarms",
        "95 % interval of their rate",
        "differs",
        "half-width 10 %",
        "50 %",
        "90 %",
    )
    print("| " + " | ".join((*heads, "widest")) + " |\n" + "|---" * (len(heads) + 1) + "|")
    for name, rows in {**groups, "all": list(found)}.items():
        print(_row(name, rows))
    print()


def _row(name: str, rows: Sequence[dict[str, Any]]) -> str:
    alarms, differs = count(rows)
    rate = stats.binomtest(alarms, len(rows)).proportion_ci(method="exact")  # Clopper-Pearson
    known = [(row["high"] - row["low"]) / 2 for row in rows if row["low"] is not None]
    widths = (
        [in_percent(width, 1) for width in np.quantile(known, (0.1, 0.5, 0.9, 1))] if known else ["–"] * 4
    )
    share = f"{alarms} ({in_percent(alarms / len(rows), 1)})"
    range_ = f"{in_percent(rate.low, 1)} to {in_percent(rate.high, 1)}"
    cells = [name, len(rows), share, range_, differs, *widths]
    return "| " + " | ".join(map(str, cells)) + " |"


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--suite", action="store_true", help="three workloads that take turns")
    parser.add_argument("--stopping", action="store_true", help="runs end by themselves, as users have them")
    parser.add_argument("--comparisons", type=int, default=CAMPAIGN)
    parser.add_argument(
        "--rounds",
        type=int,
        help="rounds in each of the six blocks of a run (3; quick: 1; with --stopping at most 7)",
    )
    parser.add_rivals()
    parser.add_seed()
    parser.add_out()
    options = parser.options()
    if options.rounds is None:
        options.rounds = limits.ROUNDS.quick if options.stopping else 1 if options.quick else 3
    return options


if __name__ == "__main__":
    run_script(main)
