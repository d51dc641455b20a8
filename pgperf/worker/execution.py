"""Executes one run from claim to end, for the Celery task and the foreground command.

Every exit sets a final state with a reason that holds no secret. When the process is killed,
`runs.state.reconcile` ends the run. A process whose heartbeat cannot be stored, because it hangs in
a query, kills itself.
"""

import logging
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import Error, connections, router, transaction
from django.db.models import Q

from pgperf.access import credentials, fixtures, guardrails, page_sessions, permissions, production_pages
from pgperf.agent.controller import AgentController
from pgperf.analysis.summary import summarise
from pgperf.conf import get_settings
from pgperf.core import layers, printable, system_limits
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import CredentialError, FenceLost, PgperfError, RunCancelled, RunConflict
from pgperf.core.protocol import scrub
from pgperf.core.records import CAPTURES, Definition, LeftOut, Plan, Route, VariantBlock, most_direct
from pgperf.db import vanished_host
from pgperf.db.now import Now
from pgperf.delay.routes import longer
from pgperf.install import launch
from pgperf.load.controller import LoadHostController
from pgperf.models import Database, Run
from pgperf.runner import environment_support, tls_support
from pgperf.runner.capture import statements
from pgperf.runner.client_process import while_waiting
from pgperf.runner.memory import RunMemory
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunResult, RunSettings, execute
from pgperf.runner.server import load_limits
from pgperf.runs import changes, confirmation, query_access, state, store
from pgperf.runs.db_retry import is_outage, retry_while_down
from pgperf.runs.definitions import starting_here
from pgperf.worker import block_hooks, change_mail, environments, machine_look, web_origin
from pgperf.worker.environments import Usable
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.recorder import ProgressListener, Recorder
from pgperf.workloads import discovery, forms

logger = logging.getLogger(__name__)

_REASON_CHARACTERS = 500
#: Share of STALE_SECONDS for which a run retries while the site's database is down; then it stops.
_RETRY_SHARE = 2 / 3
#: Share of STALE_SECONDS after which TCP gives up a database whose host has vanished: soon enough to
#: reach one that has taken over its name.
_VANISHED_SHARE = 1 / 3
#: For how long a run that has failed waits for space to store that, where the disk is full.
_DISK_FULL_S = 600.0
#: Ended runs that this process cannot summarise.
_not_summarisable: set[int] = set()


def perform(run_id: int, worker: str, listener: ProgressListener | None = None) -> Run:
    """Claim the run, measure, store; the run in its final state.

    Raises RunWaits or RunConflict when it cannot be claimed, FenceLost when it was taken away on
    the way. What stops the process itself (KeyboardInterrupt, SystemExit) is passed on after the
    run has ended.
    """
    vanished_s = get_settings().STALE_SECONDS * _VANISHED_SHARE
    with vanished_host.noticed_within(vanished_s, router.db_for_write(Run)):
        return _perform(run_id, worker, listener)


def _perform(run_id: int, worker: str, listener: ProgressListener | None) -> Run:
    run = _claim(run_id, worker)
    settings = get_settings()
    lifeline = Lifeline(settings.STALE_SECONDS)
    observer = Recorder(run, listener, settings.HEARTBEAT_SECONDS, _retry_s(), lifeline.alive)
    job = _ClaimedRun(run, observer)
    with ExitStack() as stack:
        try:
            stack.enter_context(observer.background_heartbeat(settings.STALE_SECONDS / 3))
        except RuntimeError as error:  # the system lets the worker start no thread
            job.end(error)
        else:
            _measure(job, lifeline)
    if run.status == Run.Status.DONE:
        change_mail.send(run, changes.record(run, _retry_s()))
    return run


def _claim(run_id: int, worker: str) -> Run:
    """Claim the run, and retry while the database restarts. An earlier try whose COMMIT got no
    answer may already have claimed it.
    """
    tries = count()

    def step() -> Run:
        again = next(tries) > 0
        try:
            return state.claim(run_id, worker)
        except RunConflict:
            if again and (own := state.claimed_here(run_id, worker)):
                return own
            raise

    return retry_while_down(step, _retry_s(), f"claiming run {run_id}")


def _measure(job: "_ClaimedRun", lifeline: Lifeline) -> None:
    """Only while there may be clients, a hanging process kills itself: to end a run may take long."""
    try:
        with lifeline:
            outcome = job.measure()
        job.done(outcome)
    except FenceLost:
        logger.warning("run %s was taken away from attempt %s", job.run.pk, job.run.attempt)
        raise
    except BaseException as error:
        job.end(error)
        if not isinstance(error, Exception):
            raise


def skipped_layers(
    definition: Definition,
    build_dir: str,
    interpreters: Mapping[str, str] = launch.NO_INTERPRETERS,
    usable: Mapping[str, Usable] | None = None,
) -> list[LeftOut]:
    """The layers of the definition, or modes of them, that this machine cannot run, or that a
    workload has no function for. `usable`: its environments, if they were examined.
    """
    discovery.discover()
    here = environments.Abilities.here(build_dir, interpreters)
    found = environments.examined(definition) if usable is None else usable
    return [*forms.lacking(definition), *environments.left_out(definition, here, found)]


def summarise_ended_runs() -> list[int]:
    """Summarise the finished blocks of runs whose own process died before it did so; ids of them."""
    own_s = timedelta(seconds=_DISK_FULL_S + _retry_s())  # for so long a process may still do it itself
    left = Q(status=Run.Status.LOST) | Q(
        status__in=(Run.Status.FAILED, Run.Status.CANCELLED), finished_at__lt=Now() - own_s
    )
    runs = Run.objects.using(router.db_for_write(Run)).filter(left, analysis_version=0)
    return [run.pk for run in runs.filter(blocks__isnull=False).distinct() if _summarise_ended(run)]


def _summarise_ended(run: Run) -> bool:
    """Whether there is a summary now. A run that cannot have one is tried once in this process."""
    if run.pk in _not_summarisable:
        return False
    try:
        definition = Definition.from_json(run.definition)
        skipped = [LeftOut(**each) for each in run.summary.get("skipped", [])]  # where it was measured
        if _summarise_part(run, definition, skipped):
            return True
    except PgperfError as error:
        logger.warning("run %s: its completed blocks cannot be summarised here: %s", run.pk, error)
    _not_summarisable.add(run.pk)
    return False


@dataclass
class _ClaimedRun:
    """A run that this worker has claimed and not yet ended."""

    run: Run
    observer: Recorder
    skipped: list[LeftOut] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # the environment before the first block
    control: str = ""  # the route to the database if all routes of the run are URLs; "": one of the run's
    access: dict[str, Any] = field(
        default_factory=dict
    )  # stored in the run's environment: privileges of logins, captures

    def measure(self) -> RunResult:
        begin, settings, run = time.monotonic(), get_settings(), self.run
        check_permission(run)
        definition = starting_here(Definition.from_json(run.definition))
        query_access.check((work.query for work in definition.workloads), permissions.requester(run))
        usable = environments.examined(definition)
        self.skipped = skipped_layers(definition, settings.BUILD_DIR, settings.programs, usable)
        plan = make_plan(definition, self.skipped)
        near = self._routes(plan)
        machine = _machine(run, usable, begin)
        with (
            while_waiting(self.observer.poll_cancel),
            longer(near, [*definition.routes, *filter(None, [self.control])]) as routes,
            page_sessions.opened(run, definition) as with_cookies,
        ):
            machine = replace(machine, before_block=partial(block_hooks.begin_block, routes))
            asked = web_origin.asked_there(with_cookies, near.values())
            plan = self._encrypted(replace(plan, definition=asked), routes)
            self._prepare(plan, routes)
            guarded = self._guarded_routes(plan, routes)
            with closing(AgentController(run)) as agent, _load_hosts(run, plan) as load_hosts:
                captured = self._captured(plan, guarded, machine.memory.client_bytes(plan))
                proved = self._proved(captured, guarded, machine)
                self.access |= machine_look.predicted(proved)
                self._keep_skipped(proved)
                return execute(proved, guarded, machine, self.observer, agent, self.facts.update, load_hosts)

    def done(self, outcome: RunResult) -> None:
        """Store the summary and the final state in one transaction, unless the run was taken away."""
        run, plan = self.run, outcome.plan
        blocks = retry_while_down(lambda: store.load_blocks(run), _retry_s(), f"reading the blocks of {run}")
        summary = summarise(plan.definition, plan.variants, blocks, launch.django_driver())

        def store_all() -> None:
            with transaction.atomic(using=router.db_for_write(Run)):
                state.lock_attempt(run)
                store.save_facts(run, {**outcome.environment, **self.access}, outcome.timings)
                store.save_summary(run, summary, skipped=_json(plan.skipped), partial=False)
                state.finish(run)  # last: its signals carry the run as it is now
                if found := confirmation.tested(run):
                    store.save_verdict(*found)

        _end_once(run, Run.Status.DONE, store_all)

    def end(self, error: BaseException) -> None:
        """End the run with the error as its reason, and keep its environment and finished blocks."""
        reason = _reason(error, self.secrets)
        if not isinstance(error, Exception):
            _drop_connection()
        if not isinstance(error, PgperfError | KeyboardInterrupt | SystemExit):
            logger.error("run %s: %s", self.run.pk, scrub(_trace(error), self.secrets))
        try:
            if isinstance(error, RunCancelled | KeyboardInterrupt):
                _end_once(self.run, Run.Status.CANCELLED, lambda: self._cancelled(error, reason))
            else:
                _end_once(self.run, Run.Status.FAILED, lambda: state.fail(self.run, reason))
            retry_while_down(self._keep_part, _retry_s(), f"summarising {self.run}", _DISK_FULL_S)
        except (FenceLost, Error) as trouble:
            logger.error("run %s could not be ended: %s", self.run.pk, type(trouble).__name__)

    def _cancelled(self, error: BaseException, reason: str) -> None:
        if isinstance(error, RunCancelled) and (pause := state.pause()):
            reason = f"Ended because {pause.by} paused pgperf."
        state.cancelled(self.run, reason)

    def _keep_part(self) -> None:
        if environment := {**self.facts, **self.access}:
            store.save_environment(self.run, environment)
        _summarise_part(self.run, Definition.from_json(self.run.definition), self.skipped)

    def _routes(self, plan: Plan) -> dict[str, Route]:
        if self.run.database is None:
            raise CredentialError(f"database: {self.run.database_name} was deleted")
        names = dict.fromkeys(apart(name)[0] for name in plan.definition.routes)
        routes = credentials.resolve(self.run.database, names)
        if all(route.url for route in routes.values()):
            control = control_route(self.run.database)
            self.control = next(iter(control), "")
            routes |= control
        self.secrets = {
            "password" if number == 0 else f"password {number + 1}": secret
            for number, secret in enumerate(dict.fromkeys(route.password for route in routes.values()))
        }
        return routes

    def _encrypted(self, plan: Plan, routes: Mapping[str, Route]) -> Plan:
        """The plan without the layers that cannot speak TLS, on the routes that demand it."""
        settings, definition = get_settings(), plan.definition
        if all(route.url for route in routes.values()):
            return plan
        site = statements.CaptureSettings(most_direct(routes.values()), settings.BUILD_DIR, settings.programs)
        lacking = tls_support.refusals(definition, routes, site, self.skipped)
        self.skipped += lacking
        return make_plan(definition, self.skipped) if lacking else plan

    def _guarded_routes(self, plan: Plan, routes: dict[str, Route]) -> dict[str, Route]:
        """The routes with read-only sessions, after the proof of each login that must not write."""
        assert self.run.database
        database = self.run.database
        guarded = guardrails.apply(plan, routes, database.production, database.allow_fixtures)
        self.access = guarded.facts()
        return guarded.routes

    def _captured(self, plan: Plan, routes: Mapping[str, Route], client_bytes: int) -> Plan:
        """The plan with the captured statements of the site's workloads, in memory only.

        Layers that cannot run these statements are left out. `client_bytes`: the memory limit of
        each client's operations. Raises PageRefused for a page that production may not be asked for.
        """
        assert self.run.database
        pages = production_pages.requested(plan, self.run.database.production)
        replayed = statements.are_captured(plan)
        if not (replayed or pages):
            return plan
        captures = captures_of(plan, routes, client_bytes, self.skipped)
        self.access |= {CAPTURES: {each.workload.name: each.to_json() for each in captures}}
        production_pages.check(pages, captures)
        if not replayed:
            return plan
        for each in captures:
            self.skipped += each.skipped()
        return make_plan(statements.filled(plan.definition, captures), self.skipped)

    def _proved(self, plan: Plan, routes: Mapping[str, Route], machine: RunSettings) -> Plan:
        """The plan without what does not answer in its environment with this version of pgperf."""
        lacking = environment_support.refusals(plan, routes, machine.environments)
        self.skipped += lacking
        return make_plan(plan.definition, self.skipped) if lacking else plan

    def _keep_skipped(self, plan: Plan) -> None:
        """For another machine that summarises the blocks if this process dies."""
        step = partial(store.save_skipped, self.run, _json(plan.skipped))
        retry_while_down(step, _retry_s(), f"storing what {self.run} leaves out")

    def _prepare(self, plan: Plan, routes: Mapping[str, Route]) -> None:
        if not any(layers.connects(variant.layer) for variant in plan.variants):
            return
        database = self.run.database
        assert database
        guardrails.check_writing(plan.definition, database.production, database.allow_fixtures)
        for work in plan.definition.workloads:
            fixtures.ensure(work.fixture, database, most_direct(routes.values()))


def control_route(database: Database) -> dict[str, Route]:
    """A route to the database behind the web servers, if it has one: it shows their backends, and in
    production their pages run over it first.
    """
    if not database.targets.filter(enabled=True, url="").exists():
        return {}
    route = credentials.direct_route(database)
    return {route.name: route}


def captures_of(
    plan: Plan, routes: Mapping[str, Route], client_bytes: int, skipped: Sequence[LeftOut]
) -> list[statements.Capture]:
    """A capture of each of the site's workloads, over the most direct route."""
    settings = get_settings()
    site = statements.CaptureSettings(
        most_direct(routes.values()), settings.BUILD_DIR, settings.programs, client_bytes
    )
    return statements.of_definition(plan.definition, site, skipped)


def _end_once(run: Run, status: str, end: Callable[[], None]) -> None:
    """End the run, and retry while its database restarts.

    An earlier try whose COMMIT got no answer may already have ended it.
    """
    tries = count()

    def step() -> None:
        again = next(tries) > 0
        try:
            end()
        except FenceLost:
            if not (again and state.has_ended_as(run, status)):
                raise

    retry_while_down(step, _retry_s(), f"ending {run}", _DISK_FULL_S)


@contextmanager
def _load_hosts(run: Run, plan: Plan) -> Iterator[LoadHostController | None]:
    """The load hosts of the plan, if a variant has some."""
    if not any(variant.hosts for variant in plan.variants):
        yield None
        return
    with closing(LoadHostController(run, plan.definition)) as found:
        yield found


def _machine(run: Run, usable: Mapping[str, Usable], begin: float) -> RunSettings:
    """What this machine and the site's settings say of the run, which began then."""
    settings = get_settings()
    return RunSettings(
        build_dir=settings.BUILD_DIR,
        run_id=run.session_key,
        pin_server=settings.PIN_SERVER,
        connection_share=settings.CONNECTION_SHARE,
        max_run_seconds=settings.MAX_RUN_SECONDS,
        interpreters=settings.programs,
        environments=environments.usable(usable),
        memory=RunMemory.now(settings.RUN_MEMORY_MB),
        load_limits=_load_limits(run),
        begin=begin,
    )


def _load_limits(run: Run) -> dict[str, float]:
    """The limits of the server's load by setting; none for a database that is not in production."""
    if not (run.database and run.database.production):
        return {}
    settings = get_settings()
    return {limit.setting: getattr(settings, limit.setting) for limit in load_limits.LIMITS.values()}


def _retry_s() -> float:
    return get_settings().STALE_SECONDS * _RETRY_SHARE


def _drop_connection() -> None:
    """Close the connection: a signal during a query may have left it unusable."""
    connection = connections[router.db_for_write(Run)]
    if not connection.in_atomic_block:
        connection.close()


def check_permission(run: Run) -> None:
    """The user must still have the permission, and must have confirmed a production database by its
    name.
    """
    if reason := permissions.refusal(run):
        raise PermissionGone(f"permission: {reason}")
    if run.database and run.database.production and run.confirmed_name != run.database.name:
        raise PermissionGone(
            f"database: {run.database} is a production database, and its name was not confirmed; start the run again"
        )


class PermissionGone(PgperfError):
    """The user lost a permission, or the Database became a production one, after the request."""


def _summarise_part(run: Run, definition: Definition, skipped: Sequence[LeftOut]) -> bool:
    """Store a summary of an unfinished run's blocks. Returns whether there was one to store."""
    blocks = store.load_blocks(run)
    if not blocks:
        return False
    variants = _in_table_order(definition, skipped, blocks)
    try:
        summary = summarise(definition, variants, blocks, launch.django_driver())
        store.save_summary(run, summary, skipped=_json(skipped), partial=True)
    except Error:
        raise
    except Exception as error:
        logger.error("run %s: its completed blocks could not be summarised: %s", run.pk, _trace(error))
        return False
    return True


def _json(skipped: Iterable[LeftOut]) -> list[dict[str, str]]:
    return [each.to_json() for each in skipped]


def _in_table_order(
    definition: Definition, skipped: Sequence[LeftOut], blocks: Iterable[VariantBlock]
) -> list[Any]:
    """The measured variants in the plan's order.

    Their placement may differ from the planned one.
    """
    measured = {block.variant.label: block.variant for block in blocks}
    planned = [variant.label for variant in make_plan(definition, skipped).variants]
    order = [label for label in planned if label in measured]
    return [measured[label] for label in dict.fromkeys([*order, *measured])]


def _reason(error: BaseException, secrets: Mapping[str, str]) -> str:
    """The reason that the page shows: short, and without secrets."""
    if isinstance(error, KeyboardInterrupt):
        return "Cancelled: interrupted."
    if isinstance(error, SoftTimeLimitExceeded):
        return f"The run took longer than PGPERF['MAX_RUN_SECONDS'] ({get_settings().MAX_RUN_SECONDS} s)."
    text = scrub(str(error), secrets)
    if isinstance(error, SystemExit):
        text = "The worker was shut down."
    elif is_outage(error):
        text = f"The site's own database, which holds the runs, failed or did not answer: {text}"
    elif refused := system_limits.explanation(error):
        text = refused
    elif not isinstance(error, PgperfError):
        text = f"Unexpected {type(error).__name__}: {text} (the worker's log has more)"
    text = printable.lines(text)  # a database stores neither NUL nor half a character
    return text if len(text) <= _REASON_CHARACTERS else text[: _REASON_CHARACTERS - 1] + "…"


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
