"""Limits of a production server's load: a run that finds one of them passed ends itself.

A control query between rounds reads the load, never one inside a timed slice. What the login may
not see is unknown, and the run's environment says so.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pgperf.core.answers import NUMBER, TRUTH, ControlQuery
from pgperf.core.exceptions import LoadLimitPassed

#: The least time between two queries.
_EVERY_S = 2.0


@dataclass(frozen=True)
class Limit:
    """A limit from the settings; 0: none."""

    setting: str
    what: str  # the sentence "{what}: {number}, allowed {limit}"
    unit: str = ""

    def problem(self, number: float | None, limit: float) -> str:
        """The sentence about a number that passes the limit; "" for one that does not."""
        if not limit or number is None or number <= limit:
            return ""
        return (
            f"{self.what}: {number:g}{self.unit}, at most {limit:g}{self.unit} are allowed "
            f"while a run measures a production database (PGPERF['{self.setting}'])"
        )


#: In the order of the query's columns.
LIMITS = {
    "lag_s": Limit("PRODUCTION_LAG_SECONDS", "replication lag", " s"),
    "lag_mb": Limit("PRODUCTION_LAG_MB", "replication lag", " MB"),
    "lock_waits": Limit("PRODUCTION_LOCK_WAITS", "sessions that wait for locks"),
    "connections": Limit("PRODUCTION_CONNECTIONS", "used connections", " %"),
}

# pg_stat_replication shows a walsender's figures to pg_read_all_stats only. A standby that is told to
# pause reports no newer times, so its distance in bytes counts too. A standby's own lag is the age of
# what it replayed last, unless it replayed all that it received.
LOAD = ControlQuery(
    "its load",
    """
SELECT CASE WHEN pg_is_in_recovery() THEN
           CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
                ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END
       ELSE (SELECT coalesce(max(extract(epoch FROM replay_lag)), 0) FROM pg_stat_replication) END,
       CASE WHEN pg_is_in_recovery() THEN
           pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
       ELSE (SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 0)
             FROM pg_stat_replication) END / 1e6,
       (SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted),
       round(100.0 * (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL)
             / current_setting('max_connections')::int, 1),
       pg_is_in_recovery() OR pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
""",
    (NUMBER.or_null, NUMBER.or_null, NUMBER, NUMBER, TRUTH),
)

_NOT_SEEN = "replication lag: the login may not see it, GRANT pg_monitor to it"
_NOTHING_REPLAYED = "replication lag in seconds: the standby has replayed no transaction since its start"


class LoadGuard:
    """Reads the load when called, at most every two seconds; `limits`: the settings by name.

    Raises LoadLimitPassed with the number, the limit and the setting.
    """

    def __init__(self, one: Callable[[ControlQuery], tuple[Any, ...]], limits: Mapping[str, float]) -> None:
        self._one, self._limits = one, limits
        self._asked_at = 0.0
        self.facts: dict[str, Any] = {}

    def __call__(self) -> None:
        if self._limits and time.monotonic() - self._asked_at >= _EVERY_S:
            self.check()

    def check(self) -> None:
        """Read the load now."""
        *numbers, lag_is_seen = self._one(LOAD)
        load = dict(zip(LIMITS, numbers, strict=True))
        if not lag_is_seen:
            load |= {"lag_s": None, "lag_mb": None}
        self._asked_at = time.monotonic()
        self.facts = self.facts or self._describe(load, lag_is_seen)
        for name, number in load.items():
            if problem := LIMITS[name].problem(number, self._limits[LIMITS[name].setting]):
                raise LoadLimitPassed(problem)

    def _describe(self, load: Mapping[str, float | None], lag_is_seen: bool) -> dict[str, Any]:
        """For the run's environment: the limits, the load at the start, and what is not seen."""
        facts: dict[str, Any] = {"limits": dict(self._limits), "at_start": dict(load)}
        unknown = _NOTHING_REPLAYED if lag_is_seen else _NOT_SEEN
        return {**facts, "unknown": unknown} if load["lag_s"] is None else facts
