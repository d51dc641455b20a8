"""Correctness of verdicts: variants with known, injected bottlenecks, also under disturbances.

    python -m benchmarks.verdict_matrix [--quick] [--seeds 10] [--seed 1] [--cases a,b]
        [--columns quiet,rival-half,rival-full,rival-own-half,rival-own-full,quota,steal-5,steal-12]
        [--blocks 6|1] [--truth] [--out FILE]

The seed determines the size of each bottleneck. The run of a cell has six blocks of one round, so a
verdict whose lead is not sure names two words. Such a cell is right only if the first one is, and the
script prints how many there are. `--blocks 1`: one block of four rounds, as in older campaigns; there
no verdict names two. The script tests every verdict that has a test, with the change and the rules of
`pgperf confirm`, in one block instead of six. Pages are served by gunicorn from a site of their own.

`--columns` (quiet; `all`): a second axis, of disturbances, for the seven bottlenecks that are no
pages: a rival at half and at all of a named CPU, where the bottleneck sits elsewhere and on its own, a
CPU quota of a role's own control group, and replayed readings of a host that steals 5 and 12 %
(benchmarks.verdict_cells says where each sits, and which words are right). A cell whose disturbance
does not show is not right: a quota must bind, be called throttling by the grade, and be run delay and
no steal. `--truth` measures the right words without pgperf, by what shortens the response when it is
removed (benchmarks.verdict_truth). A cell in which both removals save about the same is undecided,
and one that fails is reported; the others go on.

`--out` keeps one JSON object a line for each cell, with its blocks; those that the file has are not
measured again. With `--truth` too, where a cell that failed is.

The bar, in each column: nine of ten verdicts are right, and no wrong one is confirmed. Each cell has
one right word; `disturbed` is wrong beside it. `--quick`: one seed of each case, about two minutes for
a column, and four of five.
"""

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import spinning, verdict_truth
from benchmarks.block_collector import BlockCollector
from benchmarks.options import ScriptParser, run_script
from benchmarks.plain_operation import Operation
from benchmarks.quota_group import NoQuota
from benchmarks.rival import halves, rivals
from benchmarks.served_page import WEB, serving
from benchmarks.verdict_answers import (
    BAR,
    BLOCKS,
    QUICK_BAR,
    Answer,
    Key,
    holds,
    keep,
    kept,
    lines,
)
from benchmarks.verdict_cells import COLUMNS, DESIGNS, QUIET, chosen
from benchmarks.verdict_disturbances import Proof, disturbance, settings
from benchmarks.verdict_truth import CannotMeasure, Load, Removal, Truth
from example.stack.stack import Stack
from pgperf.analysis import verdict_kinds
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Verdict
from pgperf.catalog import FIXTURES
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.records import Cohort, Definition, Page, Plan, Route, WorkloadDefinition
from pgperf.delay.routes import longer
from pgperf.install.c_client import build
from pgperf.install.launch import django_driver
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runs.confirmation_definition import paired, told_apart

ROOT = Path(__file__).resolve().parent.parent
#: Of a run of one block. Those of six blocks have one round each.
_ROUNDS, _WINDOW_MS, _DIAGNOSTIC_MS = 4, 150, 400
_PAGE_WINDOW_MS = 500
_CLIENTS_MOST = 64


@dataclass(frozen=True)
class Served:
    """gunicorn with benchmarks.bottleneck_site: its workers, and the part of the stack that is its
    database.
    """

    workers: int = 3
    database: str = "postgres"


@dataclass(frozen=True)
class Case:
    """A bottleneck: the measured definition, drawn from the seed, and its right word when quiet."""

    name: str
    right: str
    measured: Callable[[random.Random], dict[str, Any]]  # fields of the definition
    spin_us: tuple[int, int] | None = None  # range of the client's additional CPU time before each operation
    rival: bool = False  # another process on the clients' CPUs
    served: Served | None = None  # the web server of a page


_HEAVY = "SELECT count(*) FROM generate_series(1, {}000)"
#: A lock held by one session at a time, for the given seconds; allowed in a read-only session.
_LOCKED = "SELECT pg_advisory_xact_lock(4711), pg_sleep({})"


def _sql(name: str, sql: str) -> WorkloadDefinition:
    return WorkloadDefinition(name, sql)


def _page(path: str, size: int, clients: int = 1) -> dict[str, Any]:
    """A page of benchmarks.bottleneck_site, requested over a new connection each."""
    return {
        "workloads": (WorkloadDefinition("page", "", page=Page(f"/{path}/?size={size}")),), "layers": ("http",),
        "routes": (WEB,), "web_routes": {WEB: ""}, "connection_modes": ("per_operation",), "clients": (clients,),
        "slice_ms": _PAGE_WINDOW_MS,
    }  # fmt: skip


def word_of_one_worker(server_cpus: int) -> str:
    """One worker uses up a CPU that it shares with its database: then another one saves nothing."""
    return "web_workers" if server_cpus > 1 else "web_cpu"


CASES = (
    Case(
        "client spinning", "client_cpu",
        lambda draw: {"layers": ("psycopg",)}, spin_us=(300, 2000),
    ),
    Case(
        "ORM client", "client_cpu",
        lambda draw: {"layers": ("django_orm",), "routes": (draw.choice(("tcp", "socket")),)},
    ),
    Case(
        "pool of 1", "pool_queue",
        lambda draw: {"routes": ("pgbouncer_one",), "clients": (draw.randint(4, 6),)},
    ),
    Case(
        "heavy query", "server_cpu",
        lambda draw: {"workloads": (_sql("heavy", _HEAVY.format(draw.randint(5, 40))),)},
    ),
    Case(
        "5 ms distance", "latency",
        lambda draw: {"routes": (f"tcp+{draw.choice((4.5, 5, 5.5))}ms",), "clients": (draw.choice((1, 3)),)},
    ),
    # Of the rival and the ORM, the ORM costs more (benchmarks.verdict_cells).
    Case("competing process", "client_cpu", lambda draw: {"layers": ("django_orm",)}, rival=True),
    Case(
        "lock contention", "server_lock",
        lambda draw: {
            "workloads": (_sql("locked", _LOCKED.format(draw.randint(10, 30) / 10_000)),),
            "clients": (draw.randint(3, 6),),
        },
    ),
    Case(
        "slow template", "web_cpu",
        lambda draw: _page("slow-template", draw.randint(1000, 4000)), served=Served(),
    ),
    Case(
        "one web worker", word_of_one_worker(len(halves()[1])),
        lambda draw: _page("many-queries", draw.randint(20, 40), clients=8), served=Served(workers=1),
    ),
    Case(
        "slow query of a page", "server_cpu",
        lambda draw: _page("slow-query", draw.randint(50, 200)), served=Served(),
    ),
    Case(
        "N+1 over 0.5 ms", "latency",
        lambda draw: _page("many-queries", draw.randint(20, 40)), served=Served(database="distance_05ms"),
    ),
)  # fmt: skip


#: A case, a column and a seed.
Cell = tuple[Case, str, int]


@dataclass(frozen=True)
class Site:
    """The routes, settings and temporary directory that all cases share, and the stack."""

    routes: Mapping[str, Route]
    machine: RunSettings
    folder: Path
    stack: Stack


def main() -> int:
    options = _options()
    seeds = range(options.seed, options.seed + (1 if options.quick else options.seeds))
    print(f"seeds {seeds[0]} to {seeds[-1]}", file=sys.stderr, flush=True)
    of_a_seed = planned(options.columns, options.cases)
    cells = [(case, column, seed) for seed in seeds for column, case in of_a_seed]
    if options.truth:
        return _print_truths(cells, options.out)
    answers, impossible = _answered(cells, options.out, options.blocks)
    bar = QUICK_BAR if options.quick else BAR
    print("\n".join(lines(answers, bar, impossible)))
    passed = holds(answers, bar)
    without = f" (not possible here: {', '.join(impossible)})" if impossible else ""
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold") + without)
    return 0 if passed else 1


def cases_of(text: str) -> list[Case]:
    """The cases of the option, names with commas. Raises ArgumentTypeError for others."""
    names = text.split(",")
    known = [case.name for case in CASES]
    if unknown := set(names) - set(known):
        raise argparse.ArgumentTypeError(
            f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(known)}"
        )
    return [case for case in CASES if case.name in names]


def planned(columns: Sequence[str], cases: Sequence[Case]) -> list[tuple[str, Case]]:
    """The cells of one seed. Cases without a design, those of pages, are in the quiet column only."""
    return [(column, case) for column in columns for case in cases if column == QUIET or case.name in DESIGNS]


def _answered(cells: Sequence[Cell], out: Path | None, blocks: int) -> tuple[list[Answer], dict[str, str]]:
    """The answers, and why columns are not possible here. Those that the file has are judged by the
    word that is right now.
    """
    of_file = kept(out, blocks)
    found = {
        key: replace(of_file[key], right=right_word(case, column))
        for case, column, seed in cells
        if (key := (case.name, column, seed)) in of_file
    }
    lacking = [(case, column, seed) for case, column, seed in cells if (case.name, column, seed) not in found]
    impossible = _measured_cells(lacking, found, out, blocks) if lacking else {}
    keys = [(case.name, column, seed) for case, column, seed in cells]
    return [found[key] for key in keys if key in found], impossible


def _measured_cells(
    cells: Sequence[Cell], found: dict[Key, Answer], out: Path | None, blocks: int
) -> dict[str, str]:
    """Measure these cells, and add their answers; why columns are not possible here."""
    impossible: dict[str, str] = {}
    with _site() as site:
        for case, column, seed in cells:
            if column in impossible:
                continue
            try:
                one = answer(case, column, seed, site, blocks)
            except NoQuota as error:
                impossible[column] = str(error)
                continue
            found[case.name, column, seed] = one
            keep(one, out)
            print(one, file=sys.stderr, flush=True)
    return impossible


def answer(case: Case, column: str, seed: int, site: Site, blocks: int) -> Answer:
    """Measure the variant with its bottleneck and its disturbance, and test the verdict."""
    design = DESIGNS.get(case.name)
    definition, spin_us = drawn(case, seed)
    definition = replace(in_blocks(definition, blocks), **settings(column, design))
    machine = _spinning(site, spin_us)
    with disturbance(column, design) as running, _competitors(case), _serving(case.served, site) as site:
        rows = _measured(definition, site, machine)
        verdict = rows[0].verdict
        assert verdict  # every summary has one
        found = replace(_answer(case, column, seed, verdict, running.proof(verdict)), blocks=blocks)
        if not verdict.intervention:
            return found
        test = paired(definition, rows[0], verdict.intervention, lambda: "tcp", _CLIENTS_MOST)
        quick = replace(test, blocks=1, rounds=_ROUNDS)
        own, changed = told_apart(_measured(quick, site, machine), rows[0])
        confirmation = verdict_kinds.confirm(verdict, verdict.intervention, own, changed)
        said = verdict_kinds.confirmation_evidence(replace(verdict, confirmation=confirmation))
        return replace(found, tested=confirmation.outcome, test=said)


def _answer(case: Case, column: str, seed: int, verdict: Verdict, proof: Proof) -> Answer:
    grade = f"grade {verdict.grade.word}" if column != QUIET else ""
    word, *others = verdict_kinds.named(verdict)
    return Answer(
        case.name, seed, word, verdict_kinds.evidence(verdict), right=right_word(case, column),
        column=column, grade=grade, shown=proof.shown, lacking=proof.lacking, second=" or ".join(others),
    )  # fmt: skip


def right_word(case: Case, column: str) -> str:
    """The right word of a cell."""
    return case.right if column == QUIET else DESIGNS[case.name].words[column]


def drawn(case: Case, seed: int) -> tuple[Definition, int]:
    """The definition and the client's additional CPU time (0 for none) that a seed determines."""
    draw = random.Random(f"{case.name}/{seed}")
    definition = replace(_definition(seed), **case.measured(draw))
    return definition, draw.randint(*case.spin_us) if case.spin_us else 0


def in_blocks(definition: Definition, blocks: int) -> Definition:
    """The definition with the rounds of one block shared by so many, at least one in each."""
    return replace(definition, blocks=blocks, rounds=math.ceil(_ROUNDS / blocks))


def _spinning(site: Site, spin_us: int) -> RunSettings:
    """The settings of a run whose psycopg clients spin."""
    if not spin_us:
        return site.machine
    return replace(site.machine, interpreters={"psycopg": spinning.write(site.folder, spin_us)})


def _print_truths(cells: Sequence[Cell], out: Path | None) -> int:
    """The right words by plain timing, beside those that are fixed."""
    cells = [cell for cell in cells if not cell[0].served]
    removals = verdict_truth.kept(out)
    lacking = [cell for cell in cells if key_of(cell) not in removals]
    impossible, failed = _measured_removals(lacking, removals, out) if lacking else ({}, [])
    found = [_truth(cell, removals[key_of(cell)]) for cell in cells if key_of(cell) in removals]
    without = (f"{column}: {why}" for column, why in impossible.items())
    print("\n".join([*verdict_truth.lines(found), *without, *failed]))
    return 0 if not failed and all(each.agrees for each in found) else 1


def key_of(cell: Cell) -> Key:
    case, column, seed = cell
    return case.name, column, seed


def _measured_removals(
    cells: Sequence[Cell], removals: dict[Key, Removal], out: Path | None
) -> tuple[dict[str, str], list[str]]:
    """Measure these cells, and add their removals; why columns are not possible here, and which cells
    failed.
    """
    impossible, failed = dict[str, str](), list[str]()
    with _site() as site:
        for cell in cells:
            key = key_of(cell)
            if key[1] in impossible:
                continue
            try:
                removals[key] = _removal(*cell, site)
            except NoQuota as error:
                impossible[key[1]] = str(error)
            except (CannotMeasure, OSError) as error:
                failed.append(f"failed: {', '.join(map(str, key))}: {error}")
                print(failed[-1], file=sys.stderr, flush=True)
            else:
                verdict_truth.keep(key, removals[key], out)
                print(_truth(cell, removals[key]), file=sys.stderr, flush=True)
    return impossible, failed


def _truth(cell: Cell, removal: Removal) -> Truth:
    case, column, seed = cell
    word = verdict_truth.word_of(removal, case.right, verdict_truth.word_of_disturbance(case.name, column))
    return Truth(case.name, column, seed, removal, word, right_word(case, column))


def _removal(case: Case, column: str, seed: int, site: Site) -> Removal:
    definition, spin_us = drawn(case, seed)
    work, route, layer = definition.workloads[0], definition.routes[0], definition.layers[0]
    operation = Operation(work.sql, tuple(map(str, work.args)), layer, spin_us)
    with longer(site.routes, (route, "tcp")) as routes:
        load = Load(operation, routes[route], definition.clients[0])
        return verdict_truth.measured(case.name, column, load, routes, lambda: _competitors(case))


def _definition(seed: int) -> Definition:
    return Definition(
        "verdict-matrix", (SITE_BY_DOMAIN,), ("libpq",), ("tcp",), blocks=1, rounds=_ROUNDS, slice_ms=_WINDOW_MS,
        lead_in_ms=20, warm_up_ms=100, warm_up_ops=50, cold_blocks=0, diagnostic_ms=_DIAGNOSTIC_MS, seed=seed,
    )  # fmt: skip


def _measured(definition: Definition, site: Site, machine: RunSettings) -> list[VariantSummary]:
    """The summaries of a run's variants, without controls."""
    collector = BlockCollector()
    behind = ("tcp",) if WEB in definition.routes else ()  # to the database, whose backends it shows
    with longer(site.routes, (*definition.routes, *behind)) as routes:
        outcome = execute(_without_controls(make_plan(definition)), routes, machine, collector)
    rows = summarise(definition, outcome.plan.variants, collector.blocks, django_driver())["variants"]
    return [VariantSummary.from_json(row) for row in rows]


def _without_controls(plan: Plan) -> Plan:
    variants = tuple(variant for variant in plan.variants if not variant.control)
    return replace(plan, cohorts=(Cohort(variants),))


def _competitors(case: Case) -> AbstractContextManager[object]:
    """A process that spins on each CPU of the clients, in a case with a rival."""
    return rivals(halves()[0] if case.rival else ())


@contextmanager
def _site() -> Iterator[Site]:
    parts = ["postgres", "pgbouncer", "pgbouncer_one", "distance_05ms"]
    with (
        Stack(ROOT / ".stack" / "verdict_matrix", parts=parts, keep=False) as stack,
        tempfile.TemporaryDirectory() as folder,
    ):
        built = build(stack.place.own / "build", pg_config=stack.env["PGPERF_PG_CONFIG"]).path.parent
        routes = _routes(stack.env)
        with ControlConnection(routes["tcp"], "pgperf-fixture") as control:
            for statement in FIXTURES[SITE_BY_DOMAIN.fixture].create:
                control.query(statement)
        machine = RunSettings(str(built), "verdict-matrix", connection_share=0.9)
        yield Site(routes, machine, Path(folder), stack)


@contextmanager
def _serving(served: Served | None, site: Site) -> Iterator[Site]:
    """The site with a route to the web server of a page, which runs meanwhile."""
    if served is None:
        yield site
        return
    with serving(site.stack, workers=served.workers, database=served.database) as route:
        yield replace(site, routes={**site.routes, WEB: route})


def _routes(env: Mapping[str, str]) -> dict[str, Route]:
    login: dict[str, Any] = {
        "dbname": env["PGPERF_DB_NAME"],
        "user": env["PGPERF_DB_USER"],
        "password": env["PGPERF_DB_PASSWORD"],
    }
    port, one = int(env["PGPERF_DB_PORT"]), int(env["PGPERF_PGBOUNCER_ONE_PORT"])
    return {
        "socket": Route("socket", env["PGPERF_DB_SOCKET"], port, **login),
        "tcp": Route("tcp", "127.0.0.1", port, **login),
        "pgbouncer_one": Route("pgbouncer_one", "127.0.0.1", one, pooler="transaction", **login),
    }


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--cases", type=cases_of, default=CASES, help="run only these cases, by name")
    parser.add_argument(
        "--columns", type=chosen, default=(QUIET,), help=f"{','.join(COLUMNS)}, or all (quiet)"
    )
    parser.add_argument("--blocks", type=int, choices=(BLOCKS, 1), default=BLOCKS, help="of a run (6)")
    parser.add_argument(
        "--truth", action="store_true", help="measure the right words without pgperf, and no verdicts"
    )
    parser.add_out()
    return parser.options()


if __name__ == "__main__":
    run_script(main)
