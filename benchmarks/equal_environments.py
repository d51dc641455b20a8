"""Rate of false alarms between environments: one and its twin, which has equal packages.

    python -m benchmarks.equal_environments [--quick] [--comparisons 200] [--seed 1] [--out FILE]

Each run measures psycopg, Django's cursor and the ORM over two routes in the default environment
and in a second Python that lends its packages: 6 pairs, planned, measured and judged like those of
every run. The sides swap their paths from block to block. An alarm is a 95 % interval that excludes
1. The bar: the 95 % interval of the rate of alarms, with the runs as its sample, contains 5 %, and at
most 5 % of the runs have a "differs". `--quick`: one short run; the bar is that chance alone explains
the number of alarms.

`--out` keeps each run by its seed, and seeds that the file has are not run again.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import json_lines
from benchmarks.false_alarms import (
    ROOT,
    WIDER,
    RunsBar,
    campaign,
    comparisons,
    judge,
    make_fixture,
    print_bias,
    print_rate_of_runs,
    print_table,
    run_of,
    stack_machine,
    stack_routes,
)
from benchmarks.options import ScriptParser, run_script
from benchmarks.twin import twin
from example.stack.stack import Stack
from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import Definition
from pgperf.install import environments
from pgperf.install.environments import UsableEnvironment
from pgperf.runner.plan import make_plan

LAYERS = ("psycopg", "django_cursor", "django_orm")
ROUTES = ("socket", "tcp")
_TWIN = "twin"
#: The fewest comparisons that are judged.
CAMPAIGN = 200


def main() -> int:
    options = _options()
    conditions = json_lines.conditions(options, "quick", "blocks", "rounds")
    runs = campaign(options, conditions, len(LAYERS) * len(ROUTES), partial(_measured, options))
    found = comparisons(runs)
    print_table(found)
    print_bias(found)
    print_rate_of_runs(found)
    return judge(options, runs, WIDER if options.quick else RunsBar(), CAMPAIGN)


def _measured(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The runs of these seeds on a stack of their own."""
    with (
        Stack(ROOT / ".stack" / "equal_environments", parts=["postgres", "pgbouncer"], keep=False) as stack,
        TemporaryDirectory() as directory,
    ):
        both = environments.default(), twin(Path(directory), _TWIN)
        usable = {each.name: UsableEnvironment(each, environments.examine(each)) for each in both}
        routes = stack_routes(stack.env)
        machine = replace(stack_machine(stack), environments=usable)
        make_fixture(routes["tcp"])
        for unit in units:
            yield run_of(make_plan(definition(options, unit["seed"])), routes, machine, is_of_environments)


def definition(options: argparse.Namespace, seed: int) -> Definition:
    return Definition(
        "equal-environments", (SITE_BY_DOMAIN,), LAYERS, ROUTES, environments=(DEFAULT, _TWIN),
        blocks=options.blocks, rounds=options.rounds, lead_in_ms=20, cold_blocks=0, seed=seed,
    )  # fmt: skip


def is_of_environments(comparison: VariantComparison) -> bool:
    """Does it compare a variant with the same in the other environment?"""
    return comparison.variant.differs_in(comparison.baseline) == {"environment"}


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--comparisons", type=int, default=CAMPAIGN)
    parser.add_size("--blocks", "blocks of a run", full=10, quick=6)
    parser.add_size("--rounds", "rounds of a block", full=3, quick=1)
    parser.add_seed()
    parser.add_out()
    return parser.options()


if __name__ == "__main__":
    run_script(main)
