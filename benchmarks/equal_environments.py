"""Rate of false alarms between environments: one and its twin, which has equal packages.

    python -m benchmarks.equal_environments [--quick] [--comparisons 200] [--seed 1] [--out FILE]

Each run measures psycopg, Django's cursor and the ORM over two routes in the default environment
and in a second Python that lends its packages: 6 pairs, planned, measured and judged like those of
every run. The sides swap their paths from block to block. An alarm is a 95 % interval that excludes
1. The bar: the 95 % interval of the rate of alarms, with the runs as its sample, contains 5 %, and at
most 5 % of the runs have a "differs". `--quick`: one short run; the bar is that chance alone explains
the number of alarms.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.block_collector import BlockCollector
from benchmarks.false_alarms import (
    ROOT,
    WIDER,
    RunsBar,
    check_placement,
    count,
    judged,
    make_fixture,
    print_rate_of_runs,
    print_table,
    stack_machine,
    stack_routes,
)
from benchmarks.options import ScriptParser
from benchmarks.twin import twin
from example.stack.stack import Stack
from pgperf.analysis.summary import summarise
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import Definition, Route
from pgperf.install import environments
from pgperf.install.environments import UsableEnvironment
from pgperf.install.launch import django_driver
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute

LAYERS = ("psycopg", "django_cursor", "django_orm")
ROUTES = ("socket", "tcp")
_TWIN = "twin"


def main() -> int:
    options = _options()
    wanted = 1 if options.quick else options.comparisons
    found: list[dict[str, Any]] = []
    with (
        Stack(ROOT / ".stack" / "equal_environments", parts=["postgres"], keep=False) as stack,
        TemporaryDirectory() as directory,
    ):
        both = environments.default(), twin(Path(directory), _TWIN)
        usable = {each.name: UsableEnvironment(each, environments.examine(each)) for each in both}
        routes = stack_routes(stack.env)
        machine = replace(stack_machine(stack), environments=usable)
        make_fixture(routes["tcp"])
        seed = options.seed
        while len(found) < wanted:
            found += compared(definition(options, seed), routes, machine)
            alarms = count(found)[0]
            print(f"seed {seed}: {len(found)} comparisons, {alarms} alarms", file=sys.stderr, flush=True)
            seed += 1
    if options.out:
        Path(options.out).write_text(json.dumps(found))
    print_table(found)
    print_rate_of_runs(found)
    passed = (WIDER if options.quick else RunsBar()).holds(found)
    print(f"seeds {options.seed} to {seed - 1}")
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def definition(options: argparse.Namespace, seed: int) -> Definition:
    return Definition(
        "equal-environments", (SITE_BY_DOMAIN,), LAYERS, ROUTES, environments=(DEFAULT, _TWIN),
        blocks=options.blocks, rounds=options.rounds, lead_in_ms=20, cold_blocks=0, seed=seed,
    )  # fmt: skip


def compared(what: Definition, routes: dict[str, Route], machine: RunSettings) -> list[dict[str, Any]]:
    """The comparisons of each variant with the same in the other environment."""
    collector = BlockCollector()
    outcome = execute(make_plan(what), routes, replace(machine, run_id=str(what.seed)), collector)
    check_placement(outcome.plan.variants)
    summary = summarise(what, outcome.plan.variants, collector.blocks, django_driver())
    pairs = [
        each for each in summary["comparisons"] if each.variant.differs_in(each.baseline) == {"environment"}
    ]
    return [judged(each, what.seed) for each in pairs]


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_size("--blocks", "blocks of a run", full=10, quick=6)
    parser.add_size("--rounds", "rounds of a block", full=3, quick=1)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run; each further run adds 1")
    parser.add_argument("--out", help="write all comparisons to this file, as JSON")
    return parser.options()


if __name__ == "__main__":
    sys.exit(main())
