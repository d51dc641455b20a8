"""`pgperf doctor`: checks the installation, the machine, the broker, the workers, the load hosts and
each database, with hints.
"""

import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from django.core import checks
from django.core.management.base import CommandError, OutputWrapper
from django.db import DatabaseError, connections, router
from django.db.migrations.executor import MigrationExecutor

from pgperf.access import credentials, fixtures, guardrails, readonly_role
from pgperf.cli import web_answer
from pgperf.conf import get_settings
from pgperf.core import layers, printable
from pgperf.core.answers import LINE, ControlQuery
from pgperf.core.documents import document
from pgperf.core.exceptions import LayerUnavailable, PgperfError, PreflightRefused, UnusableOptions
from pgperf.core.parent_death import die_with_parent
from pgperf.core.records import Plan, Route, most_direct
from pgperf.db import client_environments, usable_options
from pgperf.install import launch
from pgperf.models import Benchmark, BenchmarkWorkload, Database, Run
from pgperf.reports import outlook as reports_outlook
from pgperf.reports.dashboard.workers import other_versions
from pgperf.reports.preview import version_line
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runner import site_connection
from pgperf.runner.cpu import idle
from pgperf.runner.plan import make_plan
from pgperf.runner.server import version
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.probe import free_slots
from pgperf.runs import broker, definitions, state
from pgperf.worker import environments, machine_look
from pgperf.worker.execution import skipped_layers
from pgperf.workloads import discovery

_NOW = "this machine now"
_LOOK_THERE_HINT = (
    "run pgperf doctor on the worker's machine, or choose Check the machine on the page that starts a run"
)
_AWAKE_HINT = (
    f'let the worker\'s user write to {idle.DEVICE} (udev: GROUP, MODE="0660"); without it, results vary more'
)


@dataclass(frozen=True)
class CheckResult:
    """One line of the report.

    `mark`: "ok", "note" (missing, but runs work without it) or "problem".
    """

    mark: str
    subject: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        line = f"{self.mark:<8} {self.subject}: {printable.one_line(self.text)}"
        hint = printable.lines(self.hint).replace("\n", "\n         ")
        return f"{line}\n         {hint}" if hint else line


def run(out: OutputWrapper) -> None:
    """Print every finding. Raises CommandError if there are problems."""
    problems = 0
    for check in _checks():
        for finding in check():
            out.write(str(finding))
            problems += finding.mark == "problem"
    if problems:
        raise CommandError(
            f"{problems} {'problem' if problems == 1 else 'problems'} found. Follow the hints above."
        )


def installation() -> Iterator[CheckResult]:
    """pgperf's own system checks. Any of the site's may fail."""
    try:
        found = [message for message in checks.run_checks() if (message.id or "").startswith("pgperf.")]
    except Exception as error:
        text = f"cannot be made: {type(error).__name__}: {printable.first_line(error)}"
        yield CheckResult("problem", "system checks", text, "manage.py check shows where it comes from")
        return
    for message in found:
        mark = "problem" if message.is_serious() else "note"
        yield CheckResult(mark, str(message.id), str(message.msg), str(message.hint or ""))
    if not found:
        yield CheckResult("ok", "system checks", "no messages")


def tables() -> Iterator[CheckResult]:
    """The site's own database, which stores the runs."""
    alias = router.db_for_write(Run)
    try:
        executor = MigrationExecutor(connections[alias])
        missing = executor.migration_plan(
            [key for key in executor.loader.graph.leaf_nodes() if key[0] == "pgperf"]
        )
    except DatabaseError as error:
        yield CheckResult(
            "problem", "tables", f"alias {alias!r} is not reachable: {printable.first_line(error)}"
        )
        return
    if missing:
        count = len(missing)
        text = "1 migration is not applied" if count == 1 else f"{count} migrations are not applied"
        yield CheckResult("problem", "tables", text, "run manage.py migrate")
    else:
        yield CheckResult("ok", "tables", f"up to date in alias {alias!r}")


def machine() -> Iterator[CheckResult]:
    """The machine: idle CPUs, setpriv, and each layer."""
    yield _idle_cpus()
    yield _setpriv()
    for layer in layers.LAYERS.values():
        yield _layer(layer)
    if find_spec("psycopg") and not any(map(find_spec, _IN_C)):
        yield CheckResult(
            "note", "psycopg", "runs in pure Python here, which is slower than in C", _IN_C_HINT
        )


def _idle_cpus() -> CheckResult:
    if asleep := idle.refusal():
        return CheckResult("note", "idle CPUs", f"cannot be kept awake: {asleep}", _AWAKE_HINT)
    return CheckResult("ok", "idle CPUs", "can be kept awake during a run")


def _setpriv() -> CheckResult:
    if die_with_parent():
        return CheckResult("ok", "setpriv", "clients end when their runner ends")
    text = "not found, or without --pdeathsig: clients detect a killed runner only by their closed stdin"
    return CheckResult("note", "setpriv", text, "run apt install util-linux")


def _layer(layer: layers.Layer) -> CheckResult:
    settings = get_settings()
    known = settings.BUILD_DIR, settings.programs
    if reason := launch.unavailable_in_all(layer.name, *known):
        return CheckResult("note", layer.name, "cannot run here", reason)
    python = launch.interpreter(layer.name, *known) if layer.program else sys.executable
    there = "" if python == sys.executable else f", in {python}"
    return CheckResult("ok", layer.name, f"can run here{there}")


#: The packages with psycopg's implementation in C.
_IN_C = ("psycopg_c", "psycopg_binary")
_IN_C_HINT = (
    'run pip install "psycopg[binary]"; after pgperf build --drivers, psycopg_binary shows what that saves'
)


def outlook() -> Iterator[CheckResult]:
    """The machine now, and the precision that each benchmark will reach in its time."""
    try:
        found = machine_look.look_and_keep()
    except PgperfError as error:
        yield CheckResult("note", _NOW, str(error))
        return
    except DatabaseError:
        return
    hint = reports_outlook.advice(found)
    yield CheckResult("note" if hint else "ok", _NOW, reports_outlook.situation(found), hint)
    yield from _elsewhere()
    for benchmark in Benchmark.objects.select_related("database"):
        lines = reports_outlook.expectations(_plans(benchmark), found)
        if lines:
            text = "; ".join(f"{title} {sentence}" for title, sentence in lines)
            yield CheckResult("ok", f"precision of {benchmark}", text)


def _elsewhere() -> Iterator[CheckResult]:
    """The workers whose names are those of other machines: runs measure there, and nobody looked."""
    here = socket.gethostname()
    others = [name for each in live_workers() if (name := each.hostname).rpartition("@")[2] != here]
    if others:
        text = f"the check is of {here}; by their names, these workers measure elsewhere: {', '.join(others)}"
        yield CheckResult("note", _NOW, text, _LOOK_THERE_HINT)


def _plans(benchmark: Benchmark) -> dict[str, Plan]:
    """Of its quick and its full run on its database, or on the first; none where it cannot run."""
    if (database := benchmark.database or Database.objects.first()) is None:
        return {}
    try:
        return {length: _plan(benchmark, database, length) for length in ("quick", "full")}
    except PgperfError:
        return {}


def _plan(benchmark: Benchmark, database: Database, length: str) -> Plan:
    """Raises a PgperfError where it cannot run here."""
    settings = get_settings()
    quick = definitions.Overrides(quick=length == "quick")
    definition = definitions.freeze(benchmark, database, quick)
    return make_plan(definition, skipped_layers(definition, settings.BUILD_DIR, settings.programs))


def client_pythons() -> Iterator[CheckResult]:
    """The environments of the settings: each Python is started once."""
    for name in client_environments.configured():
        found = environments.examine(name)
        subject = f"environment {name}"
        if isinstance(found, str):
            yield CheckResult(
                "problem", subject, found, f"{document('environments.md')} says how to make one"
            )
        else:
            path = found.environment.python
            yield CheckResult("ok", subject, f"{version_line(found.installed.to_json())}, in {path}")


def celery() -> Iterator[CheckResult]:
    """Celery's broker."""
    try:
        broker.ping()
    except PgperfError as error:
        hint = "check CELERY_BROKER_URL in the settings, and that the broker is running"
        yield CheckResult("problem", "broker", str(error), hint)
    else:
        yield CheckResult("ok", "broker", "answers")


def workers() -> Iterator[CheckResult]:
    """The workers of pgperf's queue."""
    try:
        online = live_workers()
    except DatabaseError:
        return
    for worker in online:
        named, differ = f"{worker.hostname}, queue {worker.queue}", other_versions(worker)
        if differ:
            hint = "install the same versions there, and restart it"
            yield CheckResult("problem", "worker", f"{named}: {differ}", hint)
        else:
            yield CheckResult("ok", "worker", f"{named}, with the versions of this site")
    if not online:
        text = "none is online: runs requested in the admin wait for one"
        yield CheckResult("note", "worker", text, f"start one: {worker_command()}")


def load_hosts() -> Iterator[CheckResult]:
    """The load hosts that are online, and those that a benchmark names and that are not."""
    try:
        named = {name: row for row in Benchmark.objects.order_by("-name") for name in row.load_host_names}
        online = {worker.queue: worker.hostname for worker in state.live_load_workers()}
    except DatabaseError:
        return
    for queue, hostname in sorted(online.items()):
        yield CheckResult(
            "ok", f"load host {queue.removeprefix(broker.load_queue(''))}", f"{hostname}, queue {queue}"
        )
    for name, benchmark in sorted(named.items()):
        if (queue := broker.load_queue(name)) not in online:
            text = f"is not online, and the benchmark {benchmark} names it"
            yield CheckResult(
                "note", f"load host {name}", text, f"start it on that host: {worker_command(queue)}"
            )


def targets() -> Iterator[CheckResult]:
    """Every database over every enabled route, from this machine."""
    try:
        databases = list(Database.objects.prefetch_related("targets"))
    except DatabaseError:
        return
    if not databases:
        yield CheckResult("note", "databases", "none", "add one and its targets in the admin")
    for database in databases:
        yield from _database(database)


CHECKS: tuple[Callable[[], Iterator[CheckResult]], ...] = (
    installation,
    tables,
    machine,
    client_pythons,
    outlook,
    celery,
    workers,
    load_hosts,
    targets,
)


def _checks() -> Sequence[Callable[[], Iterable[CheckResult]]]:
    """All; without those of the site's database where its OPTIONS let no query reach it."""
    connection = connections[router.db_for_write(Run)]
    try:
        usable_options.check(connection, connection.settings_dict["OPTIONS"])
    except UnusableOptions as error:
        problem = CheckResult("problem", "tables", str(error))
        return installation, lambda: [problem], machine, client_pythons, celery
    return CHECKS


def _database(database: Database) -> Iterator[CheckResult]:
    names = [target.route for target in database.targets.all() if target.enabled]
    if not names:
        yield CheckResult("problem", str(database), "has no enabled target", "add one in the admin")
    reachable: list[Route] = []
    for name in names:
        try:
            route = credentials.resolve(database, [name])[name]
            if route.url:
                yield _web_server(f"{database} · {name}", route)
                continue
            yield CheckResult("ok", f"{database} · {name}", _server(route))
            reachable.append(route)
        except PgperfError as error:
            yield CheckResult("problem", f"{database} · {name}", str(error))
    if database.agent:
        yield _agent(database)
    if reachable:
        yield from _inside(database, most_direct(reachable), reachable)


def _inside(database: Database, best: Route, reachable: list[Route]) -> Iterator[CheckResult]:
    """What only the server can tell, asked over the most direct route, as a run asks it."""
    if best.pooler:
        text = f"no direct one answers, so the lines below are checked over {best.name}, a pooler"
        yield CheckResult("note", f"{database} · routes", text, _DIRECT_HINT)
    yield from _fixtures(database, best)
    yield from _login(database, best, reachable)
    yield from _own_workloads(database, best)
    for pooled in reachable:
        if pooled.pooler and pooled is not best:
            yield from _pooled_sessions(database, best, pooled)


def _agent(database: Database) -> CheckResult:
    """Whether the agent on the database's host is online."""
    subject = f"{database} · agent {database.agent}"
    found = state.live_agents(database.agent).first()
    queue = broker.agent_queue(database.agent)
    if found:
        return CheckResult("ok", subject, f"{found.hostname}, queue {queue}")
    command = f"start it on the database's host: {worker_command(queue)}"
    return CheckResult("note", subject, "is not online: the server's CPU time is unknown", command)


def _web_server(subject: str, route: Route) -> CheckResult:
    """What it says to one request. Raises ClientFailed if that failed."""
    where = f"{route.url} is at {route.host}"
    try:
        return CheckResult("ok", subject, f"{where} and {web_answer.answer(route)}")
    except LayerUnavailable as error:
        return CheckResult("note", subject, f"{where}; no request was sent: {error}")


def _server(route: Route) -> str:
    """The server's version, the role, and the number of free connections, as a run counts them.

    Raises PreflightRefused for a server that is too old, ClientFailed when it cannot be asked.
    """
    with ControlConnection(route, "pgperf-doctor") as monitor:
        version.check(*monitor.one(version.NUMBER))
        found, user = monitor.one(_SERVER)
        free = free_slots(monitor)
    connections_left = "1 free connection" if free == 1 else f"{free} free connections"
    return f"PostgreSQL {found}, as {user}, {connections_left}"


_SERVER_SQL = "SELECT current_setting('server_version'), current_user"
_SERVER = ControlQuery("its version", _SERVER_SQL, (LINE, LINE))


def _fixtures(database: Database, route: Route) -> Iterator[CheckResult]:
    used = {
        row.workload.fixture
        for row in BenchmarkWorkload.objects.select_related("workload")
        if row.workload.fixture
    }
    for name in sorted(used):
        yield _fixture(name, database, route)


def _fixture(name: str, database: Database, route: Route) -> CheckResult:
    subject = f"{database} · fixture {name}"
    try:
        if fixtures.exists(name, route):
            return CheckResult("ok", subject, "exists")
    except PgperfError as error:
        return CheckResult("problem", subject, str(error))
    if database.allow_fixtures:
        return CheckResult("ok", subject, "will be created by the first run")
    text = "does not exist, and pgperf may not create it"
    return CheckResult("note", subject, text, "tick 'allow fixtures' on the database")


def _login(database: Database, best: Route, reachable: list[Route]) -> Iterator[CheckResult]:
    """Whether there is a login that cannot write; if not, the SQL that makes one."""
    subject = f"{database} · login"
    try:
        access = guardrails.examine(best)
        if access.can_write:
            yield _reader(subject, access, best, reachable)
        else:
            yield CheckResult("ok", subject, f"{access.role} cannot write")
    except PgperfError as error:
        yield CheckResult("problem", subject, str(error))


def _reader(subject: str, access: guardrails.Access, best: Route, reachable: list[Route]) -> CheckResult:
    """The login that reads beside one that can write. The SQL is of what is missing only."""
    script = readonly_role.create_script(best)
    complete = (
        "" if script else f"{readonly_role.ROLE}_{best.dbname} lacks nothing: name it as a target's user"
    )
    if found := _other_login(best, reachable) or complete:
        return CheckResult("ok", subject, f"{access.role} can write; for your own SQL and poolers, {found}")
    text = f"{access.role} can write ({'; '.join(access.powers)})"
    return CheckResult("note", subject, f"{text}; {_READER_WANTED}", f"{_SCRIPT_HINT}\n{script}")


def _other_login(best: Route, reachable: list[Route]) -> str:
    """That of another target which, as a run would find, cannot write; "" if there is none."""
    others = {route.user: route for route in reversed(reachable) if route.user != best.user}
    for route in others.values():
        with suppress(PgperfError):
            _guarded, access = guardrails.guard(route, guardrails.Demand.PROOF)
            if readonly_role.reads_all(route):
                return f"{access.role}, the login of {route.name}, cannot"
    return ""


def _pooled_sessions(database: Database, direct: Route, pooled: Route) -> Iterator[CheckResult]:
    """Whether the login of the direct route sees the sessions behind a pooler."""
    subject = f"{database} · {pooled.name}"
    try:
        if grant := readonly_role.session_grant(direct, pooled):
            text = f"{direct.user} may not see the pooler's sessions, so the server's CPU time is unknown"
            yield CheckResult("note", subject, text, grant)
    except PgperfError as error:
        yield CheckResult("problem", subject, str(error))


def _own_workloads(database: Database, route: Route) -> Iterator[CheckResult]:
    """Whether a client of an own workload connects: the site's Django, read-only, on each of its
    aliases.
    """
    wanted = guardrails.Demand.PROOF if route.pooler else guardrails.Demand.SESSION
    for alias, workload in sorted(discovery.aliases().items()):
        if connections[alias].vendor != "postgresql":
            continue
        subject = f"{database} · own workloads of alias {alias!r}"
        try:
            guarded, _access = guardrails.guard(route, wanted)
            site_connection.check(guarded, workload, "pgperf-doctor")
            yield CheckResult("ok", subject, f"connect over {route.name} with the alias's OPTIONS")
        except PreflightRefused as error:  # other benchmarks run over a pooler
            yield CheckResult("note" if route.pooler else "problem", subject, str(error))
        except PgperfError as error:
            yield CheckResult("problem", subject, str(error), _OPTIONS_HINT)


_READER_WANTED = "your own SQL and poolers need a read-only role"
_SCRIPT_HINT = "this SQL creates it, or adds what it lacks:"
_DIRECT_HINT = "if there is one, add it as a target: own queries run over it with any login"
_OPTIONS_HINT = f"{document('your-queries.md')} lists what pgperf does with each key of OPTIONS"
