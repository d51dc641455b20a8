"""The Run state machine: the only place a Run changes state.

    queued -> running -> done | failed | cancelled | lost
    queued -> failed | cancelled | lost

Every change is one conditional UPDATE, so only one of several processes succeeds. A claim raises
the attempt number, and every later write names it (the fence). Times are the database's. A Run row
is its own outbox: `sent_at` is null until the broker takes its message.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, IntegrityError, router, transaction
from django.db.models import Case, CharField, F, Q, QuerySet, Value, When
from django.db.models.functions import Cast
from django.dispatch import Signal

from pgperf import signals
from pgperf.conf import get_settings
from pgperf.core.exceptions import BrokerUnreachable, FenceLost, InvalidDefinition, RunConflict, RunWaits
from pgperf.core.records import Definition
from pgperf.db import restriction
from pgperf.db.now import Now
from pgperf.models import Benchmark, Database, Pause, Run, Worker
from pgperf.runs import broker, query_access
from pgperf.runs.definitions import AS_SAVED, Overrides, freeze

logger = logging.getLogger(__name__)

Status = Run.Status
ACTIVE = (Status.QUEUED, Status.RUNNING)
#: A message that no live, idle worker takes in this time counts as lost.
RESEND_SECONDS = 20
#: Workers write a heartbeat every `heartbeat.BEAT_SECONDS`; after this time without one they count
#: as gone.
WORKER_SECONDS = 45
#: After this time they missed one.
LATE_SECONDS = 15
_SENDING = "Being sent."
_PAUSED = "pgperf is paused: the run starts when the pause ends."

_FREE: dict[str, Any] = {"busy_key": None, "busy_host": None}


# Asking for a run


def request(
    benchmark: Benchmark,
    database: Database,
    overrides: Overrides = AS_SAVED,
    *,
    quick: bool = False,
    user: AbstractBaseUser | None = None,
    token: str | None = None,
    foreground: bool = False,
    confirmed: str = "",
    note: Callable[[Run], None] | None = None,
) -> Run:
    """Queue a run; the same token asked again gives the first one's row. `foreground`: no message
    is sent.

    `confirmed` is what was typed as the name of the database, which one in production asks for.
    `note` is called with the new row, in its transaction: once, however many ask at the same time.
    Raises InvalidDefinition naming the field that cannot be run as it is.
    """
    if token and (known := _runs().filter(request_token=token).first()):
        return known
    _check_confirmed(database, confirmed)
    definition = freeze(benchmark, database, replace(overrides, quick=overrides.quick or quick))
    query_access.check((work.query for work in definition.workloads), user)
    fields = {
        "benchmark": benchmark,
        "benchmark_name": benchmark.name,
        "quick": overrides.quick or quick,
        "restricted": bool(restriction.marked(benchmark, database)),
        **_request_fields(database, definition, user, confirmed, foreground),
    }
    return _create(token or None, fields, note)


def request_confirmation(
    origin: Run,
    variant: str,
    intervention: str,
    definition: Definition,
    *,
    user: AbstractBaseUser | None = None,
    token: str | None = None,
    foreground: bool = False,
    confirmed: str = "",
    note: Callable[[Run], None] | None = None,
) -> Run:
    """Queue a run of `definition` that puts a verdict of another run to the test; the rest is as
    for `request`.
    """
    if token and (known := _runs().filter(request_token=token).first()):
        return known
    if origin.database is None:
        raise InvalidDefinition(f"database: {origin.database_name} was deleted")
    _check_confirmed(origin.database, confirmed)
    query_access.check((work.query for work in definition.workloads), user)
    fields = {
        "benchmark_id": origin.benchmark_id,
        "benchmark_name": origin.benchmark_name,
        "quick": origin.quick,
        "restricted": bool(restriction.marked(origin)),
        "confirms": origin,
        "confirms_variant": variant,
        "intervention": intervention,
        **_request_fields(origin.database, definition, user, confirmed, foreground),
    }
    return _create(token or None, fields, note)


def _check_confirmed(database: Database, confirmed: str) -> None:
    if database.production and confirmed != database.name:
        raise InvalidDefinition(f"database: {database} is in production: type its name to confirm")


def _request_fields(
    database: Database,
    definition: Definition,
    user: AbstractBaseUser | None,
    confirmed: str,
    foreground: bool,
) -> dict[str, Any]:
    return {
        "database": database,
        "database_name": database.name,
        "confirmed_name": confirmed if database.production else "",
        "definition": definition.to_json(),
        "definition_hash": definition.digest(),
        "requested_by_id": user.pk if user else None,
        "by_user": user is not None,
        "queue": "" if foreground else get_settings().QUEUE,
    }


def _create(token: str | None, fields: dict[str, Any], note: Callable[[Run], None] | None) -> Run:
    """The row, and its message once the row is there for all to see."""
    using = _using()
    try:
        with transaction.atomic(using=using):
            run = Run(request_token=token, requested_at=Now(), heartbeat_at=Now(), **fields)
            run.save(using=using)
            run.refresh_from_db(using=using)
            if note:
                note(run)
            if run.queue:
                transaction.on_commit(partial(_send, run.pk, run.queue), using=using)
    except IntegrityError:
        if token and (first := _runs().filter(request_token=token).first()):
            return first  # a double click: the other one was first
        raise
    return run


def _send(run_id: int, queue: str) -> bool:
    """Hand the message to the broker; the row says when, or why not.

    The row changes only while it says "being sent": a worker may already have found that the run
    has to wait. If this process dies here, the row stays unsent, and the next reconciliation sends
    it.
    """
    queued = _runs().filter(pk=run_id, status=Status.QUEUED)
    if pause():
        queued.update(sent_at=None, message=_PAUSED)
        return False
    queued.update(message=_SENDING)
    try:
        broker.send(run_id, queue)
    except BrokerUnreachable as error:
        why = f"Not sent yet: {error}. It is sent when the broker answers."
        queued.filter(message=_SENDING).update(sent_at=None, message=why)
        return False
    queued.filter(message=_SENDING).update(sent_at=Now(), message="Waiting for a worker.")
    return True


# Running it


def claim(run_id: int, worker: str) -> Run:
    """Take a queued run: exactly one caller gets it, with a new attempt number.

    Raises RunWaits when another run holds the database or this machine (the run stays queued, its
    message says for whom), RunConflict when the run is not there to be taken.
    """
    _wait_while_paused(run_id)
    host = this_machine()
    for _ in range(3):  # the holder may end, or turn out to be dead, while we look
        if _is_held(run_id, host) and (holder := _wait_for_holder(run_id, host)):
            raise RunWaits(_waits(holder, host))
        try:
            return _claim(run_id, worker, host)
        except IntegrityError:
            mark_lost()
            if holder := _wait_for_holder(run_id, host):
                raise RunWaits(_waits(holder, host)) from None
    raise RunWaits("Waiting: another run started first on this database or machine.")


def claimed_here(run_id: int, worker: str) -> Run | None:
    """The run, if this process has just claimed it: the answer to its claim may have been lost."""
    own = _runs().filter(pk=run_id, status=Status.RUNNING, worker=worker, message=_starting())
    return own.first()


def _starting() -> str:
    return f"Starting in process {os.getpid()}."


def pause() -> Pause | None:
    """The row that stops all starts and ends what runs; None where runs may start."""
    return Pause.objects.using(router.db_for_write(Pause)).first()


def _wait_while_paused(run_id: int) -> None:
    """Raises RunWaits while pgperf is paused; the run is sent when the pause ends."""
    if pause():
        _stay(run_id, sent_at=None, message=_PAUSED)
        raise RunWaits(_PAUSED)


def _stay(run_id: int, **fields: Any) -> None:
    """Write these fields of a queued run. Raises RunConflict if it has ended, or was taken."""
    if not _runs().filter(pk=run_id, status=Status.QUEUED).update(**fields):
        raise RunConflict(f"{_status_text(run_id, _runs().filter(pk=run_id).first())}, not queued")


def _claim(run_id: int, worker: str, host: str) -> Run:
    using = _using()
    queued = _runs().filter(pk=run_id, status=Status.QUEUED, cancel_requested=False)
    with transaction.atomic(using=using):
        taken = queued.update(
            status=Status.RUNNING,
            attempt=F("attempt") + 1,
            busy_key=Cast("database_id", CharField(max_length=80)),
            busy_host=host,
            worker=worker,
            started_at=Now(),
            heartbeat_at=Now(),
            message=_starting(),
        )
        run = _runs().filter(pk=run_id).first()
        if run is None or not taken:
            raise RunConflict(f"{_status_text(run_id, run)}, not queued")
        _announce(signals.run_started, run)
    return run


def _is_held(run_id: int, host: str) -> bool:
    same = _live_runs().filter(_same_database(run_id)).exclude(pk=run_id)
    return busy_with(host, run_id) is not None or same.exists()


def _same_database(run_id: int) -> Q:
    """Runs that hold that run's Database, whatever its name was, or a deleted one of its name: the row
    may have been made again.
    """
    own = _runs().filter(pk=run_id)
    deleted = Q(database=None, database_name__in=own.values("database_name"))
    return Q(busy_key__isnull=False) & (Q(database__in=own.values("database")) | deleted)


def _wait_for_holder(run_id: int, host: str) -> Run | None:
    """Mark the run as to be sent again, then look who holds it up; in this order no end slips
    through between.
    """
    _stay(run_id, sent_at=None)
    running = _runs().filter(status=Status.RUNNING).exclude(pk=run_id)
    other = running.filter(_same_database(run_id) | Q(busy_host=host)).first()
    holder = other or busy_with(host, run_id)
    if holder:
        _stay(run_id, message=_waits(holder, host))
    return holder


def _waits(holder: Run, host: str) -> str:
    """Without the holder's name, which not everyone may see who sees the run that waits."""
    if holder.busy_host == host:
        what = "is running on this machine"
    elif _makes_load(host).filter(pk=holder.pk).exists():
        what = "makes load on this machine"
    else:
        what = f"is running on database {holder.database_name}"
    return f"Waits for run {holder.pk}, which {what}."


def heartbeat(run: Run, progress: float, message: str) -> None:
    """Write the heartbeat. Raises FenceLost when the run is no longer this attempt's."""
    _fenced(run, heartbeat_at=Now(), progress=min(max(progress, 0.0), 1.0), message=message[:300])


def lock_attempt(run: Run) -> None:
    """Lock the run's row for this attempt until the transaction ends.

    Raises FenceLost when another has it.
    """
    _fenced(run, heartbeat_at=Now())


def is_cancelling(run: Run) -> bool:
    """Was a cancel requested, of this run or of all by a pause?"""
    return _runs().filter(pk=run.pk, cancel_requested=True).exists() or pause() is not None


def stay_queued(run: Run) -> None:
    """The heartbeat of a foreground command whose run still waits."""
    _runs().filter(pk=run.pk, status=Status.QUEUED, queue="").update(heartbeat_at=Now())


# Ending it


def finish(run: Run) -> None:
    """running -> done. Raises FenceLost when the run is no longer this attempt's."""
    _end(run, Status.DONE, progress=1.0)


def fail(run: Run, reason: str) -> None:
    """running -> failed, with a reason that is safe to show."""
    _end(run, Status.FAILED, error=reason)


def cancelled(run: Run, reason: str = "Cancelled.") -> None:
    """running -> cancelled: the flag was honoured."""
    _end(run, Status.CANCELLED, error=reason)


def refuse(run_id: int, reason: str) -> None:
    """queued -> failed: no worker can run it. Raises RunConflict when it is not queued."""
    _move(_runs().filter(pk=run_id, status=Status.QUEUED), run_id, Status.FAILED, error=reason)


def lose(run_id: int, worker: str, reason: str) -> None:
    """running -> lost, when its worker reports that the process died.

    Raises RunConflict otherwise.
    """
    own = _runs().filter(pk=run_id, status=Status.RUNNING, worker=worker)
    _move(own, run_id, Status.LOST, error=f"{reason} The blocks that it finished are kept.")


def has_ended_as(run: Run, status: str) -> bool:
    """Did this attempt end that way?"""
    return _runs().filter(pk=run.pk, attempt=run.attempt, status=status).exists()


def request_cancel(run: Run) -> None:
    """Cancel a queued run at once; ask a running one to stop.

    Raises RunConflict when it has ended.
    """
    queued = _runs().filter(pk=run.pk, status=Status.QUEUED)
    try:
        _move(queued, run.pk, Status.CANCELLED, cancel_requested=True, error="Cancelled before it started.")
    except RunConflict:
        mark_lost()
        asked = _runs().filter(pk=run.pk, status=Status.RUNNING).update(cancel_requested=True)
        if not asked:  # report its status now, not the earlier one
            raise RunConflict(_status_text(run.pk, _runs().filter(pk=run.pk).first())) from None
    run.refresh_from_db(using=_using())


def cancel_all() -> None:
    """Ask all that runs to stop, however soon the pause that asks so ends."""
    _runs().filter(status=Status.RUNNING).update(cancel_requested=True)


def _end(run: Run, status: str, **fields: Any) -> None:
    try:
        _move(_of_attempt(run), run.pk, status, heartbeat_at=Now(), **fields)
    except RunConflict as error:
        raise FenceLost(f"{error}: attempt {run.attempt} must stop writing") from None
    run.refresh_from_db(using=_using())


def _move(candidates: QuerySet[Run], run_id: int, status: str, **fields: Any) -> None:
    """One conditional UPDATE into a final state, then the signals, then the messages of waiting
    runs.
    """
    using = _using()
    with transaction.atomic(using=using):
        moved = candidates.update(status=status, finished_at=Now(), message="", **_FREE, **fields)
        run = _runs().filter(pk=run_id).first()
        if run is None or not moved:
            raise RunConflict(_status_text(run_id, run))
        _announce(signals.run_finished, run)
        if status in (Status.FAILED, Status.LOST):
            _announce(signals.run_failed, run)
        transaction.on_commit(send_waiting, using=using, robust=True)


def _status_text(run_id: int, run: Run | None) -> str:
    return f"run {run_id} is {run.get_status_display() if run else 'gone'}"


def _fenced(run: Run, **fields: Any) -> None:
    if not _of_attempt(run).update(**fields):
        raise FenceLost(f"run {run.pk} is no longer attempt {run.attempt}'s: it must stop writing")


def _of_attempt(run: Run) -> QuerySet[Run]:
    return _runs().filter(pk=run.pk, attempt=run.attempt, status=Status.RUNNING)


def _announce(signal: Signal, run: Run) -> None:
    transaction.on_commit(partial(signal.send_robust, sender=Run, run=run), using=_using(), robust=True)


# Reconciling runs whose process died


@dataclass
class Reconciled:
    """Ids of the runs that were marked lost, and of those whose message was sent (again)."""

    lost: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)


def reconcile(*, arriving: bool = False) -> Reconciled:
    """Mark runs lost whose heartbeat stopped, and send queued runs that no worker took.

    Safe to call at any time.

    `arriving`: a worker starts, maybe after one that was killed with messages in its hands; all are
    sent again.
    """
    if arriving:
        _forget_messages()
    return Reconciled(mark_lost(), send_waiting() + _send_untaken())


def mark_lost() -> list[int]:
    """running (or waiting in a command that is gone) -> lost.

    Touches the database only; ids of the runs.
    """
    lost = []
    for run_id, worker in _runs().filter(_stale()).values_list("pk", "worker"):
        who = worker or "the command that asked for it"
        try:
            with transaction.atomic(using=_using()):
                _move(_runs().filter(_stale(), pk=run_id), run_id, Status.LOST, error=_lost_reason(who))
                _forget_messages()
        except RunConflict:  # another process was faster, or the heartbeat came back
            continue
        lost.append(run_id)
    return lost


def settle_lost() -> None:
    """`mark_lost` for a page, which is shown even if the site's database accepts no writes."""
    try:
        mark_lost()
    except DatabaseError as error:
        logger.warning("lost runs could not be stored (%s)", type(error).__name__)


def _forget_messages() -> None:
    """Messages that a killed worker had fetched come back only after the broker's visibility
    timeout, an hour.
    """
    _runs().filter(status=Status.QUEUED).exclude(queue="").update(sent_at=None)


def send_waiting() -> list[int]:
    """Send the unsent queued runs, oldest first; stops when the broker does not answer."""
    return _send_all(_runs().filter(status=Status.QUEUED, sent_at=None))


def _send_untaken() -> list[int]:
    """Resend runs that an idle, live worker should have taken by now."""
    if _runs().filter(status=Status.RUNNING).exists() or not live_workers().exists():
        return []
    before = Now() - timedelta(seconds=RESEND_SECONDS)
    taken = live_workers().values_list("queue", flat=True)
    return _send_all(_runs().filter(status=Status.QUEUED, sent_at__lt=before, queue__in=list(taken)))


def _send_all(due: QuerySet[Run]) -> list[int]:
    sent = []
    for run_id, queue in due.exclude(queue="").order_by("pk").values_list("pk", "queue"):
        if not _send(run_id, queue):
            break
        sent.append(run_id)
    return sent


def _lost_reason(who: str) -> str:
    return (
        f"No sign of life from {who} for {get_settings().STALE_SECONDS:g} s: it was killed, or could not write "
        "to this database. The blocks that it finished are kept."
    )


# Reading


def effective_status(run: Run) -> str:
    """The run's state as of now: lost when its heartbeat is stale by the database's clock,
    reconciled or not.
    """
    if run.status not in ACTIVE:
        return run.status
    now = with_effective_status(_runs().filter(pk=run.pk)).first()
    return str(now.effective) if now else run.status  # type: ignore[attr-defined]


def with_effective_status(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotates `effective` as `effective_status` gives it, for lists."""
    lost = When(_stale(), then=Value(Status.LOST.value))
    return runs.annotate(effective=Case(lost, default=F("status"), output_field=CharField()))


def live_workers() -> QuerySet[Worker]:
    """Workers with a recent heartbeat, of their own or of their run; without agents and load hosts."""
    busy = _heard_runs().values_list("worker", flat=True)
    elsewhere = Q(queue__startswith=broker.agent_queue("")) | Q(queue__startswith=broker.load_queue(""))
    return _heard_of(busy).exclude(elsewhere)


def live_agents(name: str = "") -> QuerySet[Worker]:
    """Agents of that name, or all, with a recent heartbeat, of their own or of the run that they
    serve.
    """
    alive = _heard_of(_heard_runs().values_list("samplings__agent", flat=True))
    queue = broker.agent_queue(name)
    return alive.filter(queue=queue) if name else alive.filter(queue__startswith=queue)


def live_load_workers() -> QuerySet[Worker]:
    """Load hosts with a recent heartbeat. They give one in the runs of others, too."""
    return _heard_of(()).filter(queue__startswith=broker.load_queue(""))


def live_load_hosts() -> list[str]:
    """The names of those hosts."""
    return _names_of(live_load_workers())


def load_hosts_to_ask() -> list[str]:
    """Those names; last the hosts that missed a heartbeat, which may be dead.

    The order of all others does not depend on the moment, so that the next run has the same hosts.
    """
    punctual = _names_of(live_load_workers().filter(last_seen__gte=Now() - timedelta(seconds=LATE_SECONDS)))
    return punctual + [name for name in live_load_hosts() if name not in punctual]


def _names_of(load_workers: QuerySet[Worker]) -> list[str]:
    queues = load_workers.values_list("queue", flat=True)
    return sorted({queue.removeprefix(broker.load_queue("")) for queue in queues})


def heard_since() -> Any:
    """Runs whose heartbeat is older than this are taken for dead; for queries."""
    return Now() - timedelta(seconds=get_settings().STALE_SECONDS)


def running_count() -> int:
    return _live_runs().count()


def busy_with(machine: str, besides: int | None = None) -> Run | None:
    """A run, other than `besides`, that measures or makes load on that machine now."""
    found = _live_runs().filter(Q(busy_host=machine) | Q(pk__in=_makes_load(machine)))
    return (found if besides is None else found.exclude(pk=besides)).first()


def holders(database: Database) -> list[Run]:
    """The runs one of which a new run on the database waits for; none if a worker can start it."""
    return list(_live_runs().filter(busy_key=str(database.pk))) or runs_of_all_workers()


def runs_of_all_workers() -> list[Run]:
    """The runs under way, if each worker that is online executes one; else none."""
    workers = {*live_workers().values_list("hostname", flat=True)}
    runs = list(_live_runs().filter(worker__in=workers).order_by("pk"))
    return runs if workers == {run.worker for run in runs} else []


def this_machine() -> str:
    """Which machine this is, the same in all its containers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()[:80]


def _stale() -> Q:
    running = Q(status=Status.RUNNING) | Q(status=Status.QUEUED, queue="")
    return running & Q(heartbeat_at__lt=heard_since())


def _makes_load(machine: str) -> QuerySet[Run]:
    """Runs with a load host on that machine."""
    return _live_runs().filter(load_shares__machine=machine, load_shares__attempt=F("attempt"))


def _live_runs() -> QuerySet[Run]:
    return _runs().filter(status=Status.RUNNING).exclude(_stale())


def _heard_runs() -> QuerySet[Run]:
    """Runs with a recent heartbeat, in any state: a worker pauses its own heartbeat during a run,
    and resumes it some seconds after the end.
    """
    return _runs().filter(heartbeat_at__gte=heard_since())


def _heard_of(busy: Iterable[str | None]) -> QuerySet[Worker]:
    since = Now() - timedelta(seconds=WORKER_SECONDS)
    silent = [hostname for hostname in busy if hostname]
    workers = Worker.objects.using(router.db_for_write(Worker))
    return workers.filter(Q(last_seen__gte=since) | Q(hostname__in=silent))


def _using() -> str:
    return router.db_for_write(Run)


def _runs() -> QuerySet[Run]:
    return Run.objects.using(_using())
