"""This machine's monotonic clock beside that of the database which all sides of a run write to."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections
from django.db.models import QuerySet

from pgperf.db.now import Now
from pgperf.runner.remote.clock_offset import ClockOffset, Ping

#: It asks so often; and then, for a second, until an answer was this quick: on a busy machine few
#: are.
_QUESTIONS, _LONGEST_S = 12, 1.0
_QUICK_NS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The steps of a database's clock: SQLite tells milliseconds, all others microseconds.
_STEP_NS = {"sqlite": 1_000_000}
_MICROSECOND_NS = 1_000


def offset(rows: QuerySet[Any]) -> ClockOffset:
    """What to add to our monotonic clock to have the database's; `rows` is one row in it.

    Raises Error when it cannot be asked.
    """
    deadline = time.monotonic() + _LONGEST_S
    step_ns = _STEP_NS.get(connections[rows.db].vendor, _MICROSECOND_NS)
    pings = [_ask(rows, step_ns) for _ in range(_QUESTIONS)]
    while min(ping.width_ns for ping in pings) > _QUICK_NS and time.monotonic() < deadline:
        pings.append(_ask(rows, step_ns))
    return ClockOffset.best_of(pings)


def _ask(rows: QuerySet[Any], step_ns: int) -> Ping:
    query = rows.annotate(now=Now()).values_list("now", flat=True)
    before_ns = time.monotonic_ns()
    now = query.first()
    return Ping(before_ns, _since_epoch_ns(now or _EPOCH), time.monotonic_ns(), step_ns)


def _since_epoch_ns(moment: datetime) -> int:
    """In whole microseconds.

    A site without time zones (USE_TZ False) gives the same moment to both sides.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
