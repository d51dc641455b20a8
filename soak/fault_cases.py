"""The kinds of faults other than kills: how each is caused and what must hold afterwards."""

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connection, transaction
from redis import Redis

from pgperf.core.records import Definition
from pgperf.models import BlockResult, Database, Run, Target
from pgperf.runs import broker, state
from soak import small_runs
from soak.browser import Answer, Browser
from soak.site import NotReached, Site, await_state, await_true
from soak.small_runs import await_end, blocks_of, fresh, is_over

DELIVERIES = 5
#: Kinds for which a second worker competes for the messages.
WITH_SECOND_WORKER = ("five deliveries", "late deliveries", "two databases")
CLICKS = 20
#: JSON objects that lack parts of a Celery message: the worker takes them for a lost connection.
INCOMPLETE = (b"{}", b'{"properties": {}}')
#: The others end it.
JUNK = (b"no JSON", b"{}", b"\xff", b'{"properties": {}}', b"null", b"[]")
_BLOCKS = BlockResult._meta.db_table
_TOGETHER = 5
#: Limit on the time from a cancel to the end of the run: the worker polls every 5 s; the rest is
#: for killing the clients and storing.
CANCEL_WITHIN_S = 15.0
_END_WITHIN_S = 90.0
#: An unclaimed run is sent again after 20 s; a check every 10 s does so.
_RESENT_WITHIN_S = 45.0
#: Limit on the answer of the page that requests a run while the broker is silent.
PAGE_WITHIN_S = 15.0


@dataclass
class FaultResult:
    """The result of one kind of fault."""

    measured: str  # what `took` is the time of
    wrong: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)  # seconds of each repetition

    def require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)


class Performer:
    """Performs cases on one site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.database = Database.objects.get(name="demo")
        self.other = _second_database()
        self.benchmark = small_runs.saved_benchmark(
            "soak-fake", layers=["fake"], routes=["tcp"], blocks=1, rounds=1
        )
        env = site.env
        self.browser = Browser.logged_in(
            env["PGPERF_URL"], env["PGPERF_ADMIN_USER"], env["PGPERF_ADMIN_PASSWORD"]
        )

    def perform(self, case: dict[str, Any]) -> dict[str, Any]:
        with self._second_worker() if case["kind"] in WITH_SECOND_WORKER else nullcontext():
            return self.perform_kind(case, KINDS[case["kind"]])

    def perform_kind(self, case: dict[str, Any], kind: "Kind") -> dict[str, Any]:
        """Repeat one kind of fault, then require that nothing is left and the next run is done."""
        try:
            result = kind(self, case["count"], random.Random(f"{case['seed']}/{case['kind']}"))
        except NotReached as error:
            result = FaultResult("nothing", [str(error)])
        orphans, backends = small_runs.leftovers(self.site)
        result.require(not orphans and not backends, f"left over: {orphans} clients, {backends} backends")
        following = self.ask()
        await_end(following, _END_WITHIN_S)
        result.require(fresh(following).status == Run.Status.DONE, "the next run is not done")
        return {**case, "wrong": result.wrong, "took": result.took, "measured": result.measured}

    def ask(self, database: Database | None = None, **changed: Any) -> Run:
        """Request a short run of the fake layer; `changed` replaces fields of its definition."""
        with transaction.atomic():
            run = small_runs.ask(
                self.benchmark, database or self.database, blocks=changed.pop("blocks", 1), rounds=1
            )
            definition = Definition.from_json(run.definition)
            values = {"warm_up_ms": 50, "warm_up_ops": 10, "lead_in_ms": 10, **changed}
            if sql := values.pop("sql", ""):
                values["workloads"] = (replace(definition.workloads[0], sql=sql, args=()),)
            Run.objects.filter(pk=run.pk).update(definition=replace(definition, **values).to_json())
        return fresh(run)

    @contextmanager
    def _second_worker(self) -> Iterator[None]:
        """A second worker with four processes, so that copies of a message are handled
        concurrently.
        """
        one = self.site.part("worker")
        argv = [*one.argv, "-n", "second@%h"]
        argv[argv.index("-c") + 1] = "4"
        second = replace(
            one, name="second worker", argv=argv, log=one.log.with_name("second-worker.log"), process=None
        )
        second.start()
        try:
            yield
        finally:
            second.stop()


# Messages: repeated, late or lost


def five_deliveries(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """Each message arrives five times at once, and two workers compete for it."""
    result = FaultResult("from request to end")
    for begin in range(0, count, _TOGETHER):
        batch = [on.ask() for _ in range(min(_TOGETHER, count - begin))]
        copies = [run.pk for run in batch] * (DELIVERIES - 1)
        draw.shuffle(copies)
        for run_id in copies:
            broker.send(run_id, "pgperf")
        for run in batch:
            await_end(run, _END_WITHIN_S)
            require_done_once(result, run)
    return result


def late_deliveries(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """Copies arrive after the run's end, of this and of an older message schema: nothing may
    change.
    """
    result = FaultResult("from request to end")
    ended = [on.ask() for _ in range(count)]
    for run in ended:
        await_end(run, _END_WITHIN_S)
    before = {run.pk: whole(run) for run in ended}
    for run in ended:
        for _ in range(DELIVERIES):
            broker.send(run.pk, "pgperf")
        _send_old(run.pk)
    _await_empty_queue(on)
    for run in ended:
        result.require(whole(run) == before[run.pk], f"run {run.pk} changed after its end")
        require_done_once(result, run)
    return result


def broker_flushed(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """The broker loses the message of a queued run: pgperf sends it again by itself."""
    result = FaultResult("from the flush to the end")
    for _ in range(count):
        with on.site.frozen("worker"):
            first = on.ask()  # delivered at once to a worker that waits in a read of the queue
            run = on.ask()
            result.require(_redis(on).llen("pgperf") >= 1, "there was no message to lose")
            _redis(on).flushall()
        begin = time.monotonic()
        await_end(run, _RESENT_WITHIN_S)
        await_end(first, _RESENT_WITHIN_S)
        require_done_once(result, run, begin)
        require_done_once(result, first, timed=False)
    return result


def junk_on_the_queue(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """An item that is no message of Celery's: the worker finishes its run. Most items then end it,
    and the queued run is done when it is started again.
    """
    result = FaultResult("from the end of one run to the end of the next")
    for number in range(count):
        item, running = JUNK[number % len(JUNK)], on.ask(blocks=3, slice_ms=500)
        await_state("the first run is running", lambda: _is_running(running), 20.0)  # noqa: B023
        _redis(on).rpush("pgperf", item)  # the next item to be read
        queued = on.ask()
        await_end(running, _END_WITHIN_S)
        begin = time.monotonic()
        require_done_once(result, running, timed=False)
        if item not in INCOMPLETE:
            _require_exit_and_restart(on, result, queued)
        await_end(queued, _END_WITHIN_S)
        require_done_once(result, queued, begin)
    return result


def _require_exit_and_restart(on: Performer, result: FaultResult, queued: Run) -> None:
    worker = on.site.part("worker")
    ended = await_true(worker.has_ended, 30.0) >= 0
    code = worker.process.wait() if ended and worker.process else None
    result.require(code == 1, f"the worker's exit code is {code}, not 1")
    result.require(fresh(queued).status == Run.Status.QUEUED, "the queued run did not wait")
    on.site.restart("worker")


def web_dies_before_it_sends(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """The web process is killed between commit and send: the run's row serves as the outbox."""
    result = FaultResult("from the kill to the run's end")
    for _ in range(count):
        token = uuid.uuid4().hex
        with on.site.frozen("Redis"):
            click = threading.Thread(target=_click_without_answer, args=(on, token))
            click.start()
            await_true(lambda: Run.objects.filter(request_token=token).exists(), 10.0, 0.01)  # noqa: B023
            on.site.kill("web")
            begin = time.monotonic()
            click.join()
        run = Run.objects.get(request_token=token)
        result.require(run.attempt == 0, "the message was out before the kill")
        on.site.restart("web")
        await_end(run, _RESENT_WITHIN_S)
        require_done_once(result, run, begin)
    return result


def broker_silent(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """The broker accepts connections and never answers: pages still answer; the run is sent later."""
    result = FaultResult("until the page answered")
    for _ in range(count):
        with on.site.frozen("Redis"):
            begin = time.monotonic()
            answer = on.browser.start(on.benchmark.pk, on.database.pk, uuid.uuid4().hex)
            result.took.append(round(time.monotonic() - begin, 2))
            result.require(
                answer.status == 302 and result.took[-1] <= PAGE_WITHIN_S, f"the page: {answer.status}"
            )
            page = on.browser.get(answer.location)
            result.require(
                page.status == 200 and "Not sent yet" in page.body, "the run's page does not say so"
            )
        run = Run.objects.get(pk=answer.run_id)
        await_end(run, _RESENT_WITHIN_S)
        require_done_once(result, run, timed=False)
    return result


# Clicks


def double_clicks(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """Twenty POSTs of one form at once: one run, and every answer leads to it."""
    result = FaultResult("twenty answers")
    for _ in range(count):
        token = uuid.uuid4().hex
        begin = time.monotonic()
        answers = _at_once(CLICKS, lambda _: on.browser.start(on.benchmark.pk, on.database.pk, token))  # noqa: B023
        result.took.append(round(time.monotonic() - begin, 2))
        mine = list(Run.objects.filter(request_token=token))
        result.require(len(mine) == 1, f"{len(mine)} runs of one form")
        same = {answer.run_id for answer in answers} == {run.pk for run in mine}
        result.require(same and len(answers) == CLICKS, f"answers {sorted({a.status for a in answers})}")
        for run in mine:
            await_end(run, _END_WITHIN_S)
            require_done_once(result, run, timed=False)
    return result


def two_databases(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """Two forms for two databases, ten clicks each at once: two runs, in sequence on one machine."""
    result = FaultResult("from the clicks to the second end")
    for _ in range(count):
        forms = [(on.database, uuid.uuid4().hex), (on.other, uuid.uuid4().hex)]
        begin = time.monotonic()
        _at_once(CLICKS, lambda n: on.browser.start(on.benchmark.pk, forms[n % 2][0].pk, forms[n % 2][1]))  # noqa: B023
        pair = [run for _, token in forms for run in Run.objects.filter(request_token=token)]
        result.require(len(pair) == 2, f"{len(pair)} runs of two forms")
        for run in pair:
            await_end(run, _END_WITHIN_S)
            require_done_once(result, run, timed=False)
        result.took.append(round(time.monotonic() - begin, 2))
        ended = [(now.started_at, now.finished_at) for now in map(fresh, pair)]
        spans = sorted((begun, over) for begun, over in ended if begun and over)
        apart = len(spans) == 2 and spans[0][1] <= spans[1][0]
        result.require(apart, "both ran at once on one machine")
    return result


# Cancel in every state


def cancel_unsent(on: Performer, count: int, draw: random.Random) -> FaultResult:
    def prepare() -> Iterator[Run]:
        with on.site.frozen("Redis"):
            run = on.ask()
            assert run.sent_at is None
            yield run

    return _cancel_each(on, count, prepare, attempts=0)


def cancel_sent(on: Performer, count: int, draw: random.Random) -> FaultResult:
    def prepare() -> Iterator[Run]:
        with on.site.frozen("worker"):
            run = on.ask()
            assert run.sent_at is not None
            yield run

    return _cancel_each(on, count, prepare, attempts=0)


def cancel_claimed(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """The worker has claimed the run; a lock keeps it from reading the database's row."""

    def prepare() -> Iterator[Run]:
        run = on.ask(blocks=20)
        with _locked(Database._meta.db_table, Target._meta.db_table):
            await_state("a worker has claimed the run", lambda: _is_running(run), 20.0, 0.01)
            time.sleep(draw.uniform(0, 0.2))
        yield run

    return _cancel_each(on, count, prepare)


def cancel_starting(on: Performer, count: int, draw: random.Random) -> FaultResult:
    return _cancel_each(on, count, _hanging(on, draw, sql="hang at connect"))


def cancel_warming_up(on: Performer, count: int, draw: random.Random) -> FaultResult:
    return _cancel_each(on, count, _hanging(on, draw, sql="hang", warm_up_ops=300))


def cancel_in_a_slice(on: Performer, count: int, draw: random.Random) -> FaultResult:
    return _cancel_each(on, count, _hanging(on, draw, slice_ms=5000, blocks=20))


def cancel_storing(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """A lock delays the storing of a block, and the storing transaction locks the run's row."""

    def prepare() -> Iterator[Run]:
        # Not within the lock's transaction, which would send it at its end; longer than a poll takes.
        run = on.ask(blocks=20, slice_ms=1000, nominal_us={"fake": 1000.0})
        with _locked(_BLOCKS):
            await_state("a worker stores a block", lambda: _is_stored(run), 30.0, 0.01)
            cancel = threading.Thread(target=on.browser.cancel, args=(run.pk,))
            cancel.start()
            time.sleep(draw.uniform(0.1, 0.5))
        cancel.join()
        yield run

    return _cancel_each(on, count, prepare)


def cancel_in_a_diagnostic_slice(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """Cancel during a diagnostic slice of a real client: the blocks timed before are kept."""
    asked: list[Run] = []

    def prepare() -> Iterator[Run]:
        run = on.ask(layers=("libpq",), diagnostic_ms=10_000)
        asked.append(run)
        await_state("a diagnostic slice", lambda: _is_diagnosing(run), 30.0, 0.01)
        time.sleep(draw.uniform(0, 2))
        yield run

    result = _cancel_each(on, count, prepare)
    for run in asked:
        result.require(
            len(blocks_of(run)) == 2, f"of run {run.pk} {len(blocks_of(run))} blocks are kept, not 2"
        )
    return result


def cancel_done(on: Performer, count: int, draw: random.Random) -> FaultResult:
    return _cancel_ended(on, count, Run.Status.DONE)


def cancel_failed(on: Performer, count: int, draw: random.Random) -> FaultResult:
    return _cancel_ended(on, count, Run.Status.FAILED, sql="die at ready")


def cancel_lost(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """A run without a worker: claimed by this process, with an expired heartbeat."""
    result = FaultResult("until the page answered")
    for _ in range(count):
        with on.site.frozen("worker"):
            run = state.claim(on.ask().pk, "no-worker")
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE pgperf_run SET heartbeat_at = now() - interval '31 s' WHERE id = %s", [run.pk]
                )
            _require_refusal(on, result, run, Run.Status.LOST)
    return result


def cancel_cancelled(on: Performer, count: int, draw: random.Random) -> FaultResult:
    """A second cancel of a run that is already cancelled."""
    result = FaultResult("until the page answered")
    for _ in range(count):
        with on.site.frozen("worker"):
            run = on.ask()
            on.browser.cancel(run.pk)
            await_end(run, _END_WITHIN_S)
            _require_refusal(on, result, run, Run.Status.CANCELLED)
        _await_empty_queue(on)
        result.require(fresh(run).attempt == 0, f"run {run.pk} was performed after its end")
    return result


def _hanging(on: Performer, draw: random.Random, **changed: Any) -> Callable[[], Iterator[Run]]:
    def prepare() -> Iterator[Run]:
        run = on.ask(**changed)
        await_state("the run has clients", lambda: bool(on.site.clients()), 20.0)
        time.sleep(1.0 + draw.uniform(0, 2))
        yield run

    return prepare


def _cancel_each(
    on: Performer, count: int, prepare: Callable[[], Iterator[Run]], attempts: int = 1
) -> FaultResult:
    """Bring a run into the state, cancel it on its page, and time until it ends."""
    result = FaultResult("from the cancel to the end")
    for _ in range(count):
        for run in prepare():
            if is_over(run) and fresh(run).status != Run.Status.CANCELLED:
                result.wrong.append(
                    f"it was {fresh(run).status} before it could be cancelled: {fresh(run).error}"
                )
                continue
            begin = time.monotonic()
            answer = on.browser.cancel(run.pk)
            result.require(answer.status == 302, f"the page answered {answer.status}")
            await_end(run, _END_WITHIN_S)
            result.took.append(round(time.monotonic() - begin, 2))
        ended = fresh(run)
        result.require(ended.status == Run.Status.CANCELLED, f"it ended as {ended.status}: {ended.error}")
        result.require(result.took[-1:] <= [CANCEL_WITHIN_S], f"it took {result.took[-1:]} s")
        _await_empty_queue(on)
        result.require(fresh(run).attempt == attempts, f"attempt {fresh(run).attempt}, not {attempts}")
    return result


def _cancel_ended(on: Performer, count: int, status: str, **changed: Any) -> FaultResult:
    result = FaultResult("until the page answered")
    for _ in range(count):
        run = on.ask(**changed)
        await_end(run, _END_WITHIN_S)
        _require_refusal(on, result, run, status)
    return result


def _require_refusal(on: Performer, result: FaultResult, run: Run, status: str) -> None:
    begin = time.monotonic()
    answer = on.browser.cancel(run.pk)
    result.took.append(round(time.monotonic() - begin, 2))
    page = on.browser.get(answer.location)
    words = f"run {run.pk} is {Run.Status(status).label}"
    said = words in page.body.partition("messagelist")[2].lower()
    result.require(answer.status == 302 and said, f"the page does not say why ({answer.status})")
    result.require(fresh(run).status == status, f"it is {fresh(run).status}, not {status}")


# Shared helpers


def require_done_once(result: FaultResult, run: Run, begin: float = 0.0, *, timed: bool = True) -> None:
    """Require a run to be done and performed once; record the seconds since `begin` or the request."""
    now = fresh(run)
    result.require(now.status == Run.Status.DONE, f"run {run.pk} is {now.status}: {now.error or now.message}")
    result.require(now.attempt == 1, f"run {run.pk} was performed {now.attempt} times")
    if timed and now.finished_at:
        since = time.monotonic() - begin if begin else (now.finished_at - now.requested_at).total_seconds()
        result.took.append(round(since, 2))


def whole(run: Run) -> dict[str, Any]:
    return dict(Run.objects.filter(pk=run.pk).values().get())


def _at_once(count: int, act: Callable[[int], Answer]) -> list[Answer]:
    barrier, answers = threading.Barrier(count), []

    def one(number: int) -> None:
        barrier.wait()
        answers.append(act(number))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _click_without_answer(on: Performer, token: str) -> None:
    """Submit the form; the web process is killed before it answers."""
    try:
        on.browser.start(on.benchmark.pk, on.database.pk, token)
    except Exception:
        return


@contextmanager
def _locked(*tables: str) -> Iterator[None]:
    """Lock the tables against reads and writes of other sessions."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
        yield


def _is_running(run: Run) -> bool:
    return bool(fresh(run).status == Run.Status.RUNNING)


def _is_stored(run: Run) -> bool:
    """Does a block of the run wait for the lock? A page waits too, before the run is claimed."""
    return _is_running(run) and _has_waiters(_BLOCKS)


def _has_waiters(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [table])
        return bool(cursor.fetchone()[0])


def _is_diagnosing(run: Run) -> bool:
    """True while the run's sampler of pg_stat_activity is connected."""
    with connection.cursor() as cursor:
        name = f"pgperf-{run.session_key}-activity"
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name])
        return bool(cursor.fetchone()[0])


def _send_old(run_id: int) -> None:
    """Send a message with the schema number of another version."""
    schema, broker.SCHEMA = broker.SCHEMA, 0
    try:
        broker.send(run_id, "pgperf")
    finally:
        broker.SCHEMA = schema


def _await_empty_queue(on: Performer) -> None:
    """Wait until every message is handled: none is queued in the broker, none unacknowledged."""
    redis = _redis(on)
    await_true(lambda: not redis.llen("pgperf") and not redis.hlen("unacked"), 30.0)
    time.sleep(0.2)


def _redis(on: Performer) -> Any:
    return Redis.from_url(on.site.env["PGPERF_REDIS_URL"])


def _second_database() -> Database:
    """Another Database on the same server; only this machine is shared with the first."""
    like = Database.objects.get(name="demo")
    values = {"dbname": like.dbname, "credential": like.credential, "allow_fixtures": True}
    other = Database.objects.update_or_create(name="other", defaults=values)[0]
    for target in like.targets.all():
        fields = {name: getattr(target, name) for name in ("host", "port", "sslmode", "pooler")}
        Target.objects.update_or_create(database=other, route=target.route, defaults=fields)
    return other


#: Repeats a fault `count` times on a site; `draw` draws its random values.
Kind = Callable[[Performer, int, random.Random], FaultResult]

KINDS: dict[str, Kind] = {
    "five deliveries": five_deliveries,
    "late deliveries": late_deliveries,
    "double clicks": double_clicks,
    "two databases": two_databases,
    "cancel: queued, not sent": cancel_unsent,
    "cancel: queued, sent": cancel_sent,
    "cancel: claimed": cancel_claimed,
    "cancel: starting clients": cancel_starting,
    "cancel: warm-up": cancel_warming_up,
    "cancel: in a slice": cancel_in_a_slice,
    "cancel: storing a block": cancel_storing,
    "cancel: in a diagnostic slice": cancel_in_a_diagnostic_slice,
    "cancel: done": cancel_done,
    "cancel: failed": cancel_failed,
    "cancel: lost": cancel_lost,
    "cancel: cancelled": cancel_cancelled,
    "broker flushed": broker_flushed,
    "junk on the queue": junk_on_the_queue,
    "web dies before it sends": web_dies_before_it_sends,
    "broker silent": broker_silent,
}  # fmt: skip
