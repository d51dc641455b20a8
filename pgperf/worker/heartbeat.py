"""A Celery worker's heartbeat: writes its Worker row with the layers it can run, and reconciles
stale runs.

An agent on a database's host is a worker that performs no runs. It writes its heartbeat only.

A thread of the worker's main process does this, so a slow database cannot delay the site's own
tasks. The thread pauses while the worker measures; the run's own heartbeat shows then that the
worker is alive. pgperf.tasks imports this module, so only workers do.
"""

import atexit
import logging
import platform
import re
import threading
from collections import deque
from collections.abc import Iterable
from functools import partial
from importlib import metadata
from typing import Any

import django
from celery import signals
from celery.exceptions import TimeLimitExceeded, WorkerLostError
from celery.worker import state
from django.db import close_old_connections, connections, router

import pgperf
from pgperf.access import page_sessions
from pgperf.conf import get_settings
from pgperf.core import layers
from pgperf.core.exceptions import RunConflict
from pgperf.core.records import ENVIRONMENTS
from pgperf.db.now import Now
from pgperf.install import launch
from pgperf.load import rows as load_rows
from pgperf.models import Worker
from pgperf.runs import broker
from pgperf.runs import state as run_state
from pgperf.worker import environments
from pgperf.worker.execution import summarise_ended_runs

logger = logging.getLogger(__name__)

BEAT_SECONDS = 10.0

#: Why this process must not perform runs; "" if it may.
pool_refusal = ""


class Heartbeat(threading.Thread):
    """Writes the Worker row at once and then every BEAT_SECONDS, until stopped."""

    def __init__(self, hostname: str, queue: str) -> None:
        super().__init__(name="pgperf-beat", daemon=True)
        self.hostname = hostname
        self.queue = queue
        self._over = False
        self._wake = threading.Event()
        self.losses: deque[tuple[int, str]] = deque()

    def run(self) -> None:
        self.guarded(self.register)
        while not self._over:
            self._wake.wait(BEAT_SECONDS)
            self._wake.clear()
            while self.losses:
                self.guarded(partial(self._mark_lost, *self.losses.popleft()))
            if not (self._over or is_measuring()):
                self.guarded(self.refresh)
        self.guarded(self.unregister)

    def stop(self) -> None:
        """Ask the thread to end; returns at once."""
        self._over = True
        self._wake.set()

    def lose(self, run_id: int, reason: str) -> None:
        """The process that performed this run is gone; returns at once."""
        self.losses.append((run_id, reason))
        self._wake.set()

    def _mark_lost(self, run_id: int, reason: str) -> None:
        try:
            run_state.lose(run_id, self.hostname, reason)
        except RunConflict:  # it had ended before its process did
            return

    def register(self) -> None:
        facts = {
            "queue": self.queue,
            "layers": self._available_layers(),
            "versions": {**versions(), **self._environments()},
            "last_seen": Now(),
        }
        _workers().update_or_create(hostname=self.hostname, defaults=facts)
        self._reconcile(arriving=True)

    def _available_layers(self) -> dict[str, str]:
        return available_layers()

    def _environments(self) -> dict[str, Any]:
        found = environments.described()
        return {ENVIRONMENTS: found} if found else {}

    def refresh(self) -> None:
        if not _workers().filter(hostname=self.hostname).update(last_seen=Now()):
            self.register()
        self._reconcile()

    def _reconcile(self, *, arriving: bool = False) -> None:
        run_state.reconcile(arriving=arriving)
        summarise_ended_runs()
        if arriving:
            page_sessions.remove_left()

    def unregister(self) -> None:
        _workers().filter(hostname=self.hostname).delete()

    def guarded(self, step: Any) -> None:
        """An error must not end the thread. No connection stays open between heartbeats."""
        try:
            close_old_connections()
            step()
        except Exception as error:
            logger.warning("pgperf: the worker could not say that it lives (%s)", type(error).__name__)
        finally:
            connections.close_all()


class AgentHeartbeat(Heartbeat):
    """An agent's heartbeat. It neither performs nor reconciles runs."""

    def _available_layers(self) -> dict[str, str]:
        return {}

    def _environments(self) -> dict[str, Any]:
        return {}

    def _reconcile(self, *, arriving: bool = False) -> None:
        return


class LoadHostHeartbeat(Heartbeat):
    """A load host's heartbeat. It makes load for runs of others, and reconciles none."""

    def _reconcile(self, *, arriving: bool = False) -> None:
        return

    def _mark_lost(self, run_id: int, reason: str) -> None:
        load_rows.ROWS.refuse(run_id, self.hostname, reason)


def available_layers() -> dict[str, str]:
    """Layer -> why this machine cannot run it; "" if it can. Connection modes that a layer lacks here,
    such as a pool without its package, are beside their layer.
    """
    settings = get_settings()
    known = settings.BUILD_DIR, settings.programs
    found = {name: pool_refusal or launch.unavailable_in_all(name, *known) for name in layers.LAYERS}
    able = [layer for name, layer in layers.LAYERS.items() if not found[name]]
    lacking = {
        layers.connecting(layer.name, mode): reason
        for layer in able
        for mode in layer.connection_modes
        if (reason := launch.connection_unavailable(layer.name, mode, *known))
    }
    return {**found, **lacking}


def versions() -> dict[str, str]:
    """What runs here: pgperf, Python, Django, and the drivers and Celery that are installed."""
    found = {
        "pgperf": pgperf.__version__,
        "python": platform.python_version(),
        "django": django.get_version(),
    }
    for name in ("celery", *layers.distributions()):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def is_measuring() -> bool:
    """Is a run of ours under way in this worker, or watched by it, or a look at the machine?"""
    ours = (broker.TASK, broker.WATCH, broker.LOOK, broker.LOAD)
    try:
        return any(request.name in ours for request in list(state.active_requests))
    except RuntimeError:  # the main thread took or ended a task just now
        return True


#: The beat of this worker; None in a process that is not a pgperf worker.
current: Heartbeat | None = None


@signals.worker_ready.connect(dispatch_uid="pgperf.arrive")
def on_worker_ready(sender: Any, **_: Any) -> None:
    """Start the beat of a worker that takes pgperf's queue, or an agent's; `sender` is its
    consumer.
    """
    global current, pool_refusal
    pool_refusal = refusal_of(type(sender.pool).__module__)
    beat = _heartbeat_of(str(sender.hostname), sender.app.amqp.queues.consume_from)
    if beat:
        current = beat
        current.start()
        atexit.register(at_exit)


def _heartbeat_of(hostname: str, queues: Iterable[str]) -> Heartbeat | None:
    """None for a worker that has nothing to do with pgperf. One that performs runs is not an agent."""
    known = list(queues)
    if get_settings().QUEUE in known:
        return Heartbeat(hostname, get_settings().QUEUE)
    load = next((name for name in known if name.startswith(broker.load_queue(""))), "")
    if load:
        return LoadHostHeartbeat(hostname, load)
    own = next((name for name in known if name.startswith(broker.agent_queue(""))), "")
    return AgentHeartbeat(hostname, own) if own else None


@signals.task_failure.connect(dispatch_uid="pgperf.lose")
def on_task_failure(sender: Any, exception: BaseException, args: Any, **_: Any) -> None:
    """Mark a run lost at once when its pool process was killed, for example out of memory."""
    killed = isinstance(exception, WorkerLostError | TimeLimitExceeded)
    if current and killed and sender.name in (broker.TASK, broker.LOAD):
        run_id = broker.row_of(sender.name, args or (), {})
        if run_id is not None:
            current.lose(run_id, reason_of(exception))


def reason_of(exception: BaseException) -> str:
    """Why a process of the pool is gone, in words for the run's page."""
    if isinstance(exception, TimeLimitExceeded):
        return "The run did not stop at its time limit, and its process was killed."
    found = re.search(r"signal \d+ \(\w+\)|exitcode \d+", str(exception))
    how = found[0] if found else "it ended"
    who = "killed by hand, for want of memory, or by itself because this database did not answer"
    return f"The worker's process that measured is gone ({how}): {who}."


@signals.worker_shutting_down.connect(dispatch_uid="pgperf.leave")
def on_shutdown(**_: Any) -> None:
    """A worker that shuts down is no longer listed as live."""
    if current:
        current.stop()


def at_exit() -> None:
    """A cold shutdown sends no signal: at exit, wait until the thread has removed the row."""
    if current:
        current.stop()
        current.join(BEAT_SECONDS)


def refusal_of(pool: str) -> str:
    """Why a pool may not measure, by the name of its module: green threads stop while a driver
    waits, all at once.
    """
    unfit = next((name for name in broker.UNFIT_POOLS if name in pool), "")
    remedy = "start one for pgperf with --pool prefork"
    return f"The worker uses Celery's {unfit} pool, which cannot measure: {remedy}." if unfit else ""


def _workers() -> Any:
    return Worker.objects.using(router.db_for_write(Worker))
