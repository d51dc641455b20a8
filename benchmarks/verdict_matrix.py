"""Correctness of verdicts: variants with known, injected bottlenecks.

    python -m benchmarks.verdict_matrix [--quick] [--seeds 10] [--seed 1] [--cases a,b] [--out FILE]

The seed determines the size of each bottleneck. The script tests every verdict that has a test,
with the change and the rules of `pgperf confirm`, in one block instead of six. Pages are served by
gunicorn from a site of their own. The bar: nine of ten verdicts are right (some cases accept other
words, named in the table), and no wrong one is confirmed. `--quick`: one seed of each case, about a
minute.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import spinning
from benchmarks.block_collector import BlockCollector
from benchmarks.options import ScriptParser
from benchmarks.served_page import WEB, serving
from example.stack.stack import Stack
from pgperf.analysis import verdict_kinds
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.catalog import FIXTURES
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.exceptions import PgperfError
from pgperf.core.records import Cohort, Definition, Page, Plan, Route, WorkloadDefinition
from pgperf.delay.routes import longer
from pgperf.install.c_client import build
from pgperf.install.launch import django_driver
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runs.confirmation_definition import paired, told_apart

ROOT = Path(__file__).resolve().parent.parent
#: Least percentage of right or accepted verdicts. With one seed, two of the eleven may be wrong.
BAR, QUICK_BAR = 90, 80
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
    """A bottleneck: the measured definition, drawn from the seed, and the verdicts that are right."""

    name: str
    right: str
    measured: Callable[[random.Random], dict[str, Any]]  # fields of the definition
    accepted: tuple[str, ...] = ()
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


CASES = (
    Case(
        "client spinning", "client_cpu",
        lambda draw: {"layers": ("psycopg",)}, ("disturbed",), spin_us=(300, 2000),
    ),
    Case(
        "ORM client", "client_cpu",
        lambda draw: {"layers": ("django_orm",), "routes": (draw.choice(("tcp", "socket")),)}, ("disturbed",),
    ),
    Case(
        "pool of 1", "pool_queue",
        lambda draw: {"routes": ("pgbouncer_one",), "clients": (draw.randint(4, 6),)},
    ),
    Case(
        "heavy query", "server_cpu",
        lambda draw: {"workloads": (_sql("heavy", _HEAVY.format(draw.randint(5, 40))),)},
        ("disturbed",),
    ),
    Case(
        "5 ms distance", "latency",
        lambda draw: {"routes": (f"tcp+{draw.choice((4.5, 5, 5.5))}ms",), "clients": (draw.choice((1, 3)),)},
    ),
    Case("competing process", "disturbed", lambda draw: {"layers": ("django_orm",)}, ("client_cpu",), rival=True),
    Case(
        "lock contention", "server_lock",
        lambda draw: {
            "workloads": (_sql("locked", _LOCKED.format(draw.randint(10, 30) / 10_000)),),
            "clients": (draw.randint(3, 6),),
        },
    ),
    Case(
        "slow template", "web_cpu",
        lambda draw: _page("slow-template", draw.randint(1000, 4000)), ("disturbed",), served=Served(),
    ),
    Case(
        "one web worker", "web_workers",
        # It uses up the CPU of the servers where they have one only.
        lambda draw: _page("many-queries", draw.randint(20, 40), clients=8), ("web_cpu", "disturbed"),
        served=Served(workers=1),
    ),
    Case(
        "slow query of a page", "server_cpu",
        lambda draw: _page("slow-query", draw.randint(50, 200)), ("disturbed",), served=Served(),
    ),
    Case(
        "N+1 over 0.5 ms", "latency",
        lambda draw: _page("many-queries", draw.randint(20, 40)), served=Served(database="distance_05ms"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One verdict and the result of its test ("" if there is no test)."""

    case: str
    seed: int
    word: str
    evidence: str
    tested: str = ""
    test: str = ""

    @property
    def is_right(self) -> bool:
        return self.word == _case(self.case).right

    @property
    def is_accepted(self) -> bool:
        return self.is_right or self.word in _case(self.case).accepted


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
    cases = [case for case in CASES if case.name in options.cases] if options.cases else CASES
    with _site() as site:
        answers = [_logged(answer(case, seed, site)) for seed in seeds for case in cases]
    if options.out:
        Path(options.out).write_text(json.dumps([asdict(each) for each in answers], indent=1))
    _print(cases, answers)
    passed = holds(answers, QUICK_BAR if options.quick else BAR)
    print("verdict: " + ("the bar holds" if passed else "the bar does NOT hold"))
    return 0 if passed else 1


def holds(answers: Sequence[Answer], bar: int = BAR) -> bool:
    """True if at least `bar` percent are right or accepted, and no wrong one is confirmed."""
    wrong = [each for each in answers if not each.is_accepted]
    enough = 100 * (len(answers) - len(wrong)) >= bar * len(answers)
    return enough and not any(each.tested == "confirmed" for each in wrong)


def answer(case: Case, seed: int, site: Site) -> Answer:
    """Measure the variant with its bottleneck, and test the verdict."""
    draw = random.Random(f"{case.name}/{seed}")
    definition = replace(_definition(seed), **case.measured(draw))
    machine = site.machine
    if case.spin_us:
        machine = replace(
            machine, interpreters={"psycopg": spinning.write(site.folder, draw.randint(*case.spin_us))}
        )
    with _rival(case), _serving(case.served, site) as site:
        rows = _measured(definition, site, machine)
        verdict = rows[0].verdict
        assert verdict  # every summary has one
        found = Answer(case.name, seed, verdict.word, verdict_kinds.evidence(verdict))
        if not verdict.intervention:
            return found
        test = paired(definition, rows[0], verdict.intervention, lambda: "tcp", _CLIENTS_MOST)
        quick = replace(test, blocks=1, rounds=_ROUNDS)
        own, changed = told_apart(_measured(quick, site, machine), rows[0])
        confirmation = verdict_kinds.confirm(verdict, verdict.intervention, own, changed)
        said = verdict_kinds.confirmation_evidence(replace(verdict, confirmation=confirmation))
        return replace(found, tested=confirmation.outcome, test=said)


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


@contextmanager
def _rival(case: Case) -> Iterator[None]:
    """Run a process that spins on each CPU of the clients."""
    cpus = sorted(os.sched_getaffinity(0))
    rival_cpus = cpus[: max(1, len(cpus) // 2)] if case.rival else []
    rivals = [subprocess.Popen([sys.executable, "-c", _SPIN_ON_CPU.format(cpu)]) for cpu in rival_cpus]
    try:
        yield
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()


_SPIN_ON_CPU = "import os\nos.sched_setaffinity(0, {{{}}})\nwhile True: pass"


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


def _logged(found: Answer) -> Answer:
    sign = "" if found.is_right else " (accepted)" if found.is_accepted else " (WRONG)"
    tested = f"; {found.tested}: {found.test}" if found.tested else ""
    print(
        f"{found.case} {found.seed}: {found.word}{sign}: {found.evidence}{tested}",
        file=sys.stderr,
        flush=True,
    )
    return found


def _print(cases: Sequence[Case], answers: Sequence[Answer]) -> None:
    """Print verdicts by bottleneck, then the results of the tests."""
    words = [word for word in verdict_kinds.words() if any(each.word == word for each in answers)]
    print(
        "| bottleneck | right | accepted too | "
        + " | ".join(words)
        + " |\n"
        + "|---" * (3 + len(words))
        + "|"
    )
    for case in cases:
        said = Counter(each.word for each in answers if each.case == case.name)
        cells = [case.name, case.right, ", ".join(case.accepted), *(str(said[word] or "") for word in words)]
        print("| " + " | ".join(cells) + " |")
    print("\n| verdicts | number | confirmed | withdrawn | undecided | no test |\n" + "|---" * 6 + "|")
    groups = {
        "right": [each for each in answers if each.is_right],
        "accepted": [each for each in answers if each.is_accepted and not each.is_right],
        "wrong": [each for each in answers if not each.is_accepted],
    }
    for name, found in groups.items():
        tested = Counter(each.tested for each in found)
        numbers = (len(found), tested["confirmed"], tested["withdrawn"], tested["undecided"], tested[""])
        print(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    good = sum(each.is_accepted for each in answers)
    print(f"\n{good} of {len(answers)} right or accepted ({in_percent(good / max(1, len(answers)))})")


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--cases", type=lambda text: text.split(","), help="run only these cases, by name")
    parser.add_argument("--out", help="write all answers to this file, as JSON")
    return parser.options()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PgperfError as error:
        sys.exit(f"verdict: cannot measure: {error}")
