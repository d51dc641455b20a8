"""The Celery tasks. A message names a row that holds the rest. Celery beat may schedule `prune`."""

import logging
from typing import Any

from celery import shared_task

from pgperf.agent.service import serve
from pgperf.core.exceptions import RunConflict
from pgperf.runs import broker, retention, state
from pgperf.worker import heartbeat
from pgperf.worker.execution import perform

logger = logging.getLogger(__name__)


# Queue and time limits come with each message (pgperf.runs.broker): they are settings, read when a
# run is asked for.
@shared_task(name=broker.TASK, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def run_benchmark(self: Any, run_id: int, schema: int) -> None:
    """Perform the run.

    A message that comes twice, late or for a run that waits its turn does nothing.
    """
    try:
        if reason := _refusal(schema):
            state.refuse(run_id, reason)
        else:
            perform(run_id, str(self.request.hostname or ""))
    except RunConflict as error:
        logger.info("run %s: %s", run_id, error)


@shared_task(name=broker.WATCH, bind=True, acks_late=False, ignore_result=True, max_retries=0)
def watch_host(self: Any, row_id: int, schema: int) -> None:
    """Serve a run as the agent on its database's host, until the run is over."""
    serve(row_id, str(self.request.hostname or ""), _refusal(schema))


@shared_task(name="pgperf.prune", acks_late=False, ignore_result=True)
def prune() -> None:
    """Apply retention; while a run is measuring, the next message will."""
    try:
        retention.prune()
    except RunConflict as error:
        logger.info("not pruned: %s", error)


def _refusal(schema: int) -> str:
    if schema != broker.SCHEMA:
        return (
            f"The worker runs another version of pgperf than the site (message {schema}, it knows {broker.SCHEMA}): "
            "restart the workers after an upgrade."
        )
    return heartbeat.pool_refusal
