"""The Celery tasks. A message names a row that holds the rest.

Celery beat may send `prune` and `due`.
"""

import logging
from typing import Any

from celery import shared_task

from pgperf import schedules
from pgperf.agent.service import serve
from pgperf.core.exceptions import RunConflict
from pgperf.runs import broker, retention, state
from pgperf.worker import heartbeat, load_share, machine_look, statement_list
from pgperf.worker.execution import perform

logger = logging.getLogger(__name__)


# Queue and time limits come with each message (pgperf.runs.broker): they are settings, read when a
# run is asked for.
@shared_task(name=broker.TASK, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def run_benchmark(self: Any, *args: Any, **kwargs: Any) -> None:
    """Perform the run.

    A message that comes twice, late, for a run that waits its turn, or from another version does
    nothing.
    """
    run_id = broker.row_of(broker.TASK, args, kwargs)
    if run_id is None:
        return
    try:
        if heartbeat.pool_refusal:
            state.refuse(run_id, heartbeat.pool_refusal)
        else:
            perform(run_id, str(self.request.hostname or ""))
    except RunConflict as error:
        logger.info("run %s: %s", run_id, error)


@shared_task(name=broker.WATCH, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def watch_host(self: Any, *args: Any, **kwargs: Any) -> None:
    """Serve a run as the agent on its database's host, until the run is over."""
    row_id = broker.row_of(broker.WATCH, args, kwargs)
    if row_id is not None:
        serve(row_id, str(self.request.hostname or ""), heartbeat.pool_refusal)


@shared_task(name=broker.LOAD, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def make_load(self: Any, *args: Any, **kwargs: Any) -> None:
    """Take part in a run as one of its load hosts, until the run is over."""
    row_id = broker.row_of(broker.LOAD, args, kwargs)
    if row_id is not None:
        load_share.serve(row_id, str(self.request.hostname or ""), heartbeat.pool_refusal)


@shared_task(name=broker.STATEMENTS, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def read_statements(self: Any, *args: Any, **kwargs: Any) -> None:
    """Read the statements of a server for a page; a message that comes twice does nothing."""
    row_id = broker.row_of(broker.STATEMENTS, args, kwargs)
    if row_id is not None:
        statement_list.read(row_id, heartbeat.pool_refusal)


@shared_task(name=broker.LOOK, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def look_at_machine(self: Any, *args: Any, **kwargs: Any) -> None:
    """Look at this worker's machine, and store what it shows."""
    row_id = broker.row_of(broker.LOOK, args, kwargs)
    if row_id is not None:
        machine_look.serve(row_id, str(self.request.hostname or ""), heartbeat.pool_refusal)


@shared_task(name="pgperf.prune", acks_late=False, ignore_result=True)
def prune() -> None:
    """Apply retention; while a run is measuring, the next message will."""
    try:
        retention.prune()
    except RunConflict as error:
        logger.info("not pruned: %s", error)


@shared_task(name="pgperf.due", acks_late=False, ignore_result=True)
def due() -> None:
    """Start what is due by its schedule. Two messages at once start nothing twice."""
    schedules.start_due()
