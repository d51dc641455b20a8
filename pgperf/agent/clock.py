"""This machine's monotonic clock beside that of the database which both sides write to."""

import time
from datetime import UTC, datetime, timedelta

from django.db import router

from pgperf.db.now import Now
from pgperf.models import Sampling
from pgperf.runner.remote.clock_offset import ClockOffset, Ping

#: It asks so often; and then, for a second, until an answer was this quick: on a busy machine few
#: are.
_QUESTIONS, _LONGEST_S = 12, 1.0
_QUICK_NS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def offset(row_id: int) -> ClockOffset:
    """What to add to our monotonic clock to have the database's.

    Raises Error when it cannot be asked.
    """
    deadline = time.monotonic() + _LONGEST_S
    pings = [_ask(row_id) for _ in range(_QUESTIONS)]
    while min(ping.after_ns - ping.before_ns for ping in pings) > _QUICK_NS and time.monotonic() < deadline:
        pings.append(_ask(row_id))
    return ClockOffset.best_of(pings)


def _ask(row_id: int) -> Ping:
    rows = Sampling.objects.using(router.db_for_write(Sampling)).filter(pk=row_id)
    query = rows.annotate(now=Now()).values_list("now", flat=True)
    before_ns = time.monotonic_ns()
    now = query.first()
    return Ping(before_ns, _since_epoch_ns(now or _EPOCH), time.monotonic_ns())


def _since_epoch_ns(moment: datetime) -> int:
    """In whole microseconds.

    A site without time zones (USE_TZ False) gives the same moment to both sides.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
