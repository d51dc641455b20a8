"""Sends messages to Celery's broker: each `send` raises BrokerUnreachable within seconds where the
broker does not take the message.

The row that a message names holds the state.
"""

import logging
from collections.abc import Mapping, Sequence
from reprlib import repr as short_repr
from typing import Any

from celery import Celery, current_app
from kombu.exceptions import KombuError

from pgperf.conf import get_settings
from pgperf.core.exceptions import BrokerUnreachable

logger = logging.getLogger(__name__)

TASK = "pgperf.tasks.run_benchmark"
#: For the agent on a database's host: watch it for the run that this row of Sampling belongs to.
WATCH = "pgperf.tasks.watch_host"
#: For a load host: take the part in a run that this row of LoadShare gives it.
LOAD = "pgperf.tasks.make_load"
#: For a worker: read the statements of the database that this row of StatementList belongs to.
STATEMENTS = "pgperf.tasks.read_statements"
#: Look at the machine, as this row of MachineLook asks.
LOOK = "pgperf.tasks.look_at_machine"
#: Version of the messages' arguments: (id of a row, version).
SCHEMA = 1
_MAX_ID = 2**63 - 1

#: Celery's pools of green threads, which stop while a driver waits, all at once.
UNFIT_POOLS = ("gevent", "eventlet")

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 4.0
#: Beyond the run's own limit, so that the run can still say what was too long.
_SOFT_GRACE_S = 60
_HARD_GRACE_S = 90


def agent_queue(name: str) -> str:
    """The queue of the agent of that name; with "" what the queues of all agents begin with."""
    return f"{get_settings().QUEUE}-agent-{name}"


def load_queue(name: str) -> str:
    """The queue of the load host of that name; with "" what the queues of all of them begin with."""
    return f"{get_settings().QUEUE}-load-{name}"


def send(run_id: int, queue: str) -> None:
    """Put the run's message on a queue."""
    _put(TASK, run_id, queue)


def send_watch(row_id: int, queue: str) -> None:
    """Ask an agent to watch."""
    _put(WATCH, row_id, queue)


def send_load(row_id: int, queue: str) -> None:
    """Ask a load host to take part in a run."""
    _put(LOAD, row_id, queue)


def send_statements(row_id: int, queue: str) -> None:
    """Ask a worker for the statements of a server."""
    _put(STATEMENTS, row_id, queue)


def send_look(row_id: int, queue: str) -> None:
    """Ask a worker to look at its machine."""
    _put(LOOK, row_id, queue)


def row_of(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The id of the row that a message names; None for a message of another version or shape.

    Such a message is only logged: it may be anyone's, and the row's own message is sent again.
    """
    match list(args):
        case [int(row_id), int(version)] if (
            not kwargs and type(row_id) is int and version == SCHEMA and 0 < row_id <= _MAX_ID
        ):
            return row_id
    logger.warning(
        "ignored a message for %s, which is not of version %s: %s", task, SCHEMA, short_repr((args, kwargs))
    )
    return None


def _put(task: str, row_id: int, queue: str) -> None:
    app = current_app._get_current_object()
    limit = get_settings().MAX_RUN_SECONDS
    try:
        with _connection(app) as connection:
            app.send_task(
                task,
                args=(row_id, SCHEMA),
                queue=queue,
                connection=connection,
                ignore_result=True,
                retry=False,
                soft_time_limit=limit + _SOFT_GRACE_S,
                time_limit=limit + _HARD_GRACE_S,
            )
    except _errors(app) as error:
        logger.warning("the broker did not take %s (%s): %s", task, row_id, type(error).__name__)
        raise BrokerUnreachable(f"Celery's broker does not answer ({type(error).__name__})") from None


def ping() -> None:
    """Raises BrokerUnreachable within seconds when the broker does not answer."""
    app = current_app._get_current_object()
    try:
        with _connection(app) as connection:
            connection.default_channel  # noqa: B018 (opens it)
    except _errors(app) as error:
        raise BrokerUnreachable(f"Celery's broker does not answer ({type(error).__name__})") from None


def _connection(app: Celery) -> Any:
    """A connection with deadlines: without a socket timeout a silent broker would hold a page for
    ever.
    """
    options: dict[str, Any] = {"max_retries": 0}
    if str(app.conf.broker_url or "").startswith(("redis", "rediss", "sentinel", "valkey")):
        options |= {"socket_timeout": ANSWER_TIMEOUT_S, "socket_connect_timeout": CONNECT_TIMEOUT_S}
    return app.connection_for_write(connect_timeout=CONNECT_TIMEOUT_S, transport_options=options)


def _errors(app: Celery) -> tuple[type[BaseException], ...]:
    with app.connection_for_write() as connection:  # lazy: nothing is opened
        return (OSError, KombuError, *connection.connection_errors, *connection.channel_errors)
