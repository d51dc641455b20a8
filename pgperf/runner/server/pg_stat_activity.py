"""The states of a server's backends, sampled every few milliseconds while a variant works.

One query takes several samples inside the server, because a round trip per sample would disturb the
variant. Every login may see that a session exists. Its state is visible to its own login, to
members of that role and to pg_read_all_stats.
"""

from collections import Counter
from collections.abc import Iterable

from pgperf.core.answers import NUMBER, TEXT, WHOLE, ControlQuery
from pgperf.runner.server.control_connection import ControlConnection

#: The time between two samples, and the length of one query.
SAMPLE_MS = 5
POLL_MS = 50

#: state, wait_event_type, wait_event; "" if the server has none. The state of a session is "" if it
#: is hidden.
SessionState = tuple[str, str, str]


def poll(connection: ControlConnection, backends: str, milliseconds: int) -> Counter[SessionState]:
    """The number of samples in each state, over these backends; takes `milliseconds`.

    `backends`: a condition of this module. Raises ClientFailed if the server cannot be queried.
    """
    sql = _POLL.format(samples=samples(milliseconds), seconds=SAMPLE_MS / 1000, backends=backends)
    rows = connection.all(ControlQuery("the states of sessions", sql, _COLUMNS))
    return Counter({(state or "", kind or "", event or ""): count for state, kind, event, count in rows})


def named(applications: Iterable[str]) -> str:
    """The backends of connections with these names."""
    names = ", ".join(f"'{name}'" for name in applications)
    return f"a.application_name IN ({names})"


def numbered(pids: Iterable[int]) -> str:
    """These backends, and their parallel workers."""
    numbers = ", ".join(map(str, pids))
    return f"(a.pid IN ({numbers}) OR a.leader_pid IN ({numbers}))"


def begun_after(connection: ControlConnection) -> str:
    """The backends that begin from now on, with their parallel workers, without those of a run.

    Raises ClientFailed if the server cannot be queried.
    """
    (now_s,) = connection.one(_NOW)
    return f"a.backend_start >= to_timestamp({now_s!r}) AND {_OF_OTHERS}"


def samples(milliseconds: int) -> int:
    """The number of samples in a poll of that length."""
    return max(1, milliseconds // SAMPLE_MS)


_NOW = ControlQuery("the time", "SELECT extract(epoch FROM clock_timestamp())", (NUMBER,))
_OF_OTHERS = (
    "a.backend_type IN ('client backend', 'parallel worker') AND a.application_name NOT LIKE 'pgperf-%'"
)
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
WHERE {backends} AND (a.state IS NOT NULL OR a.backend_start IS NULL)
GROUP BY 1, 2, 3
"""
