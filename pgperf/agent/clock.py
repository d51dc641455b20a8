"""This machine's monotonic clock beside that of the database which both sides write to."""

from pgperf.agent.rows import ROWS
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runs import database_clock


def offset(row_id: int) -> ClockOffset:
    """What to add to our monotonic clock to have the database's.

    Raises Error when it cannot be asked.
    """
    return database_clock.offset(ROWS.all().filter(pk=row_id))
