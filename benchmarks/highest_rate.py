"""Searches for the highest rate, ten on a quiet server and one beside load.

    python -m benchmarks.highest_rate [--quick] [--searches 10] [--limit-ms 10] [--clients 4]
        [--out FILE]

Each search is a run of its own: libpq in C over the local socket, clients and server on CPUs of their
own, six blocks of eight rounds. Then one more runs beside processes that keep all CPUs busy. The
bars: each of the ten finds a rate; the intervals of every two contain a common rate; the highest rate
is at most 1.02 times what the closed loop reaches; the one beside load says that it was disturbed.
Rates in operations/s drift with the machine, so the shares of the closed loop are printed too.
`--quick`: two searches of three blocks of two rounds, under a minute, of which the pair may miss.
`--out` keeps each search under its conditions, and those that the file has are not repeated.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

from benchmarks import json_lines
from benchmarks.block_collector import BlockCollector
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import routes_of
from benchmarks.spinners import spinning
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.rate_search import Outcome, RateSearch
from pgperf.analysis.summary import summarise
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.install import launch
from pgperf.install.c_client import build
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute

ROOT = Path(__file__).resolve().parent.parent
WORK = WorkloadDefinition("pg_class", "select relname, relkind from pg_class where oid = 1259")
#: A search may exceed what the closed loop reached by its own error.
_AT_MOST = 1.02


def main() -> int:
    options = _options()
    lines = json_lines.resumed(options.out, _units(options), partial(_all, options))
    *searches, beside_load = [RateSearch.from_json(line["found"]) for line in lines]
    for number, each in enumerate(searches, 1):
        _print(f"search {number}", each)
    _print("beside load", beside_load)
    holds = _holds(searches, beside_load, misses=1 if options.quick else 0)
    print(f"\nverdict: the bar {'holds' if holds else 'does NOT hold'}")
    return 0 if holds else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--searches", "searches on a quiet server", full=10, quick=2)
    parser.add_size("--blocks", "blocks of each search", full=6, quick=3)
    parser.add_size("--rounds", "rounds of each block", full=8, quick=2)
    parser.add_argument("--limit-ms", type=float, default=10.0, help="of the 99th percentile (10)")
    parser.add_argument("--clients", type=int, default=4, help="connections of each search (4)")
    parser.add_out()
    return parser.options()


def _units(options: argparse.Namespace) -> list[json_lines.Unit]:
    """The searches on the quiet server, and the one beside load."""
    conditions = json_lines.conditions(options, "blocks", "rounds", "limit_ms", "clients")
    numbers = range(options.searches + 1)
    return [{"search": at, "beside_load": at == options.searches, **conditions} for at in numbers]


def _all(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    what = _definition(options)
    with Stack(ROOT / ".stack" / "highest_rate", parts=["postgres"], keep=False) as stack:
        build_dir = _built(stack)
        for unit in units:
            is_loaded = unit["beside_load"]
            with spinning(2 * len(os.sched_getaffinity(0)) if is_loaded else 0):
                asked = replace(what, rounds=2) if is_loaded else what
                found = _search(stack, build_dir, asked, unit["search"])
            yield {"found": found.to_json()}


def _definition(options: argparse.Namespace) -> Definition:
    return Definition(
        benchmark="highest-rate",
        workloads=(WORK,),
        layers=("libpq",),
        routes=("socket",),
        clients=(options.clients,),
        rate_search_ms=options.limit_ms,
        blocks=options.blocks,
        rounds=options.rounds,
    )


def _built(stack: Stack) -> Path:
    """The directory with the C client."""
    return build(stack.place.own / "build", pg_config=stack.env["PGPERF_PG_CONFIG"]).path.parent


def _search(stack: Stack, build_dir: Path, what: Definition, number: int) -> RateSearch:
    """One run, and what its search found."""
    machine = RunSettings(build_dir=str(build_dir), run_id=f"search-{number}")
    collector, plan = BlockCollector(), make_plan(replace(what, seed=number))
    outcome = execute(plan, routes_of(stack), machine, collector)
    summary = summarise(what, outcome.plan.variants, collector.blocks, launch.django_driver())
    (found,) = (RateSearch.from_json(each) for each in summary["rate_searches"])
    return found


def _print(name: str, found: RateSearch) -> None:
    if found.rate is None or found.low is None or found.high is None or found.share is None:
        print(f"{name:<12} no number: {found.outcome} (grade {found.grade}, {len(found.steps)} slices)")
        return
    interval = f"[{found.low:,.0f}, {found.high:,.0f}]"
    print(
        f"{name:<12} {found.rate:>9,.0f}/s {interval:>20}  {in_percent(found.share):>6} of"
        f" {found.capacity or 0.0:,.0f}/s (grade {found.grade}, {len(found.steps)} slices)"
    )


def _holds(searches: Sequence[RateSearch], beside_load: RateSearch, misses: int) -> bool:
    all_found = all(each.outcome == Outcome.FOUND for each in searches)
    apart = [pair for pair in combinations(searches, 2) if not _agree(*pair)]
    possible = all((each.share or 0.0) <= _AT_MOST for each in searches)
    print(
        f"\nfound: {sum(each.outcome == Outcome.FOUND for each in searches)} of {len(searches)};"
        f" pairs without a common rate: {len(apart)}; beside load: {beside_load.outcome}"
    )
    told = beside_load.outcome == Outcome.DISTURBED  # any other reason would be a wrong one
    return all_found and possible and len(apart) <= misses and told


def _agree(one: RateSearch, other: RateSearch) -> bool:
    """Do both intervals contain a common rate?"""
    ends = (one.low, one.high, other.low, other.high)
    return None not in ends and max(one.low or 0.0, other.low or 0.0) <= min(
        one.high or 0.0, other.high or 0.0
    )


if __name__ == "__main__":
    run_script(main)
