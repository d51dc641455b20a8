"""The states of a server's backends, sampled every few milliseconds while a variant works.

One query takes several samples inside the server, because a round trip per sample would disturb the
variant. Every login may see that a session exists. Its state is visible to its own login, to
members of that role and to pg_read_all_stats.
"""

from collections import Counter
from collections.abc import Sequence

from pgperf.core.answers import TEXT, WHOLE, ControlQuery
from pgperf.runner.server.control_connection import ControlConnection

#: The time between two samples, and the length of one query.
SAMPLE_MS = 5
POLL_MS = 50

#: state, wait_event_type, wait_event; "" if the server has none. The state of a session is "" if it
#: is hidden.
SessionState = tuple[str, str, str]


def poll(
    connection: ControlConnection, applications: Sequence[str], milliseconds: int
) -> Counter[SessionState]:
    """The number of samples in each state, over the backends of these connections; takes
    `milliseconds`.

    Raises ClientFailed if the server cannot be queried.
    """
    names = ", ".join(f"'{name}'" for name in applications)
    sql = _POLL.format(samples=samples(milliseconds), seconds=SAMPLE_MS / 1000, names=names)
    rows = connection.all(ControlQuery("the states of sessions", sql, _COLUMNS))
    return Counter({(state or "", kind or "", event or ""): count for state, kind, event, count in rows})


def samples(milliseconds: int) -> int:
    """The number of samples in a poll of that length."""
    return max(1, milliseconds // SAMPLE_MS)


# A volatile subquery is not pulled up, so each sample sleeps, clears the statistics snapshot and
# only then reads. The argument (always null: all backends) makes the function run once per sample.
# A parallel worker has its application_name before it has a state. The start time of a hidden
# session is null.
_COLUMNS = (TEXT.or_null, TEXT.or_null, TEXT.or_null, WHOLE)
_POLL = """
SELECT /* pgperf diagnosis */ a.state, a.wait_event_type, a.wait_event, count(*)
FROM generate_series(1, {samples}) n
CROSS JOIN LATERAL
    (SELECT pg_sleep({seconds})::text, pg_stat_clear_snapshot()::text, n OFFSET 0) AS tick (slept, fresh, at)
CROSS JOIN LATERAL pg_stat_get_activity(CASE WHEN tick.at < 0 THEN 0 END) a
WHERE a.application_name IN ({names}) AND (a.state IS NOT NULL OR a.backend_start IS NULL)
GROUP BY 1, 2, 3
"""
