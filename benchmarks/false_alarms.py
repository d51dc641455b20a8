"""Rate of false alarms: whole runs that compare every variant with a duplicate of itself.

    python -m benchmarks.false_alarms [--quick] [--suite] [--comparisons 400] [--seed 1] [--out FILE]

Each run measures libpq, psycopg and the Django ORM over four routes (local socket, twice; TCP;
PgBouncer), and a duplicate of each. These are 12 disjoint pairs, planned, measured and judged like
the controls of every run. An alarm is a 95 % interval that excludes 1; the expected rate is 5 % of
the comparisons. The bar: 3 to 7 % alarms, and under 1 % "differs". `--quick`: one short run, under
a minute; the bar is that chance alone explains the number of alarms.

`--suite`: three workloads that take turns, of 20 µs to 2 ms, through libpq, psycopg and Django's
cursor over two routes: 18 pairs in each run. The bar: the 95 % interval of the rate of alarms, with
the runs as its sample, contains 5 %, and at most 5 % of the runs have a "differs".
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.block_collector import BlockCollector
from benchmarks.options import ScriptParser
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.catalog import FIXTURES
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.records import Cohort, Definition, Plan, Route, Variant, WorkloadDefinition
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
#: The bar of `--quick` fails below this probability of so many alarms.
_CHANCE = 0.001


@dataclass(frozen=True)
class Bar:
    """Limits as shares of the comparisons. `alarms` is None for too few comparisons."""

    alarms: tuple[float, float] | None
    differs: float

    def holds(self, found: Sequence[dict[str, Any]]) -> bool:
        alarms, differs = count(found)
        if self.alarms is None:
            chance = stats.binomtest(alarms, len(found), 0.05, alternative="greater").pvalue
            return bool(found and chance >= _CHANCE and differs <= self.differs * len(found))
        least, most = self.alarms
        return least <= alarms / len(found) <= most and differs / len(found) < self.differs


@dataclass(frozen=True)
class RunsBar:
    """Limits with the runs as the sample."""

    expected: float = 0.05
    runs_that_differ: float = 0.05

    def holds(self, found: Sequence[dict[str, Any]]) -> bool:
        runs = by_run(found)
        low, high = rate_of_runs(found)
        differ = sum(count(rows)[1] > 0 for rows in runs)
        return low <= self.expected <= high and differ <= self.runs_that_differ * len(runs)


FULL = Bar((0.03, 0.07), 0.01)
WIDER = Bar(None, 0.10)


def main() -> int:
    options = _options()
    wanted = 1 if options.quick else options.comparisons
    found: list[dict[str, Any]] = []
    with Stack(ROOT / ".stack" / "false_alarms", parts=["postgres", "pgbouncer"], keep=False) as stack:
        routes = stack_routes(stack.env)
        machine = stack_machine(stack)
        make_fixture(routes["tcp"])
        seed = options.seed
        while len(found) < wanted:
            found += _compared(_definition(options, seed), routes, machine)
            print(
                f"seed {seed}: {len(found)} comparisons, {count(found)[0]} alarms",
                file=sys.stderr,
                flush=True,
            )
            seed += 1
    if options.out:
        Path(options.out).write_text(json.dumps(found))
    print_table(found)
    if options.suite:
        print_rate_of_runs(found)
    passed = (WIDER if options.quick else RunsBar() if options.suite else FULL).holds(found)
    print(f"seeds {options.seed} to {seed - 1}")
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


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
    if len(rates) < 2:
        return 0.0, 1.0
    reach = stats.t.ppf(0.975, len(rates) - 1) * np.std(rates, ddof=1) / np.sqrt(len(rates))
    return float(np.mean(rates) - reach), float(np.mean(rates) + reach)


def print_rate_of_runs(found: Sequence[dict[str, Any]]) -> None:
    low, high = rate_of_runs(found)
    runs = by_run(found)
    differ = sum(count(rows)[1] > 0 for rows in runs)
    span = f"{in_percent(low, 1)} to {in_percent(high, 1)}"
    print(f"rate of alarms, clustered by run: {span}; runs with a false differs: {differ} of {len(runs)}")


def _is_alarm(row: dict[str, Any]) -> bool:
    return not row["low"] <= 1 <= row["high"]


def _definition(options: argparse.Namespace, seed: int) -> Definition:
    """The definition of a quick run of `orm-overhead`, with other numbers of blocks and rounds."""
    works: tuple[WorkloadDefinition, ...] = SUITE if options.suite else (SITE_BY_DOMAIN,)
    layers = SUITE_LAYERS if options.suite else LAYERS
    routes: tuple[str, ...] = SUITE_ROUTES if options.suite else ROUTES
    return Definition(
        "false-alarms", works, layers, routes, blocks=6, rounds=1 if options.quick else options.rounds,
        lead_in_ms=20, cold_blocks=0, seed=seed,
    )  # fmt: skip


def _compared(definition: Definition, routes: dict[str, Route], machine: RunSettings) -> list[dict[str, Any]]:
    """The comparisons of each variant with its duplicate, from the run's summary."""
    collector = BlockCollector()
    outcome = execute(
        with_duplicates(make_plan(definition)),
        routes,
        replace(machine, run_id=str(definition.seed)),
        collector,
    )
    check_placement(outcome.plan.variants)
    summary = summarise(definition, outcome.plan.variants, collector.blocks, django_driver())
    return [judged(each, definition.seed) for each in summary["comparisons"] if each.aa]


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
    widths = np.quantile([(row["high"] - row["low"]) / 2 for row in rows], (0.1, 0.5, 0.9, 1))
    share = f"{alarms} ({in_percent(alarms / len(rows), 1)})"
    range_ = f"{in_percent(rate.low, 1)} to {in_percent(rate.high, 1)}"
    cells = [name, len(rows), share, range_, differs, *(in_percent(width, 1) for width in widths)]
    return "| " + " | ".join(map(str, cells)) + " |"


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--suite", action="store_true", help="three workloads that take turns")
    parser.add_argument("--comparisons", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3, help="rounds in each of the six blocks of a run (3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run; each further run adds 1")
    parser.add_argument("--out", help="write all comparisons to this file, as JSON")
    return parser.options()


if __name__ == "__main__":
    sys.exit(main())
