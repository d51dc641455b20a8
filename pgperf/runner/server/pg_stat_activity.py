"""What a server's backends are doing, looked at every few milliseconds while a variant works.

The looking happens inside the server, some ticks to a query: a round trip for each would disturb more than it sees.
Everybody sees that a session is there; what it does, its own login, that one's members and pg_read_all_stats.
"""

from collections import Counter
from collections.abc import Sequence

from pgperf.runner.server.control_connection import ControlConnection

#: Between two looks, and how long a query looks before it answers.
SAMPLE_MS = 5
POLL_MS = 50

#: state, wait_event_type, wait_event; "" where the server has none. A session without a state may not be seen.
SessionState = tuple[str, str, str]


def poll(
    connection: ControlConnection, applications: Sequence[str], milliseconds: int
) -> Counter[SessionState]:
    """So often each backend of these connections was seen like that; takes `milliseconds`.

    Raises ClientFailed when the server cannot be asked.
    """
    names = ", ".join(f"'{name}'" for name in applications)
    rows = connection.query(
        _POLL.format(samples=samples(milliseconds), seconds=SAMPLE_MS / 1000, names=names)
    )
    return Counter(
        {(state or "", kind or "", event or ""): int(count or 0) for state, kind, event, count in rows}
    )


def samples(milliseconds: int) -> int:
    """How often a look of that length looks."""
    return max(1, milliseconds // SAMPLE_MS)


# A volatile subquery is not pulled up, so each tick sleeps, forgets what it saw, and only then looks again; the
# argument (always null: everybody) is what makes the function run for each tick. A parallel worker has a name before it
# has a state; of who may not be seen even the start is hidden.
_POLL = """
SELECT /* pgperf diagnosis */ a.state, a.wait_event_type, a.wait_event, count(*)
FROM generate_series(1, {samples}) n
CROSS JOIN LATERAL
    (SELECT pg_sleep({seconds})::text, pg_stat_clear_snapshot()::text, n OFFSET 0) AS tick (slept, fresh, at)
CROSS JOIN LATERAL pg_stat_get_activity(CASE WHEN tick.at < 0 THEN 0 END) a
WHERE a.application_name IN ({names}) AND (a.state IS NOT NULL OR a.backend_start IS NULL)
GROUP BY 1, 2, 3
"""
