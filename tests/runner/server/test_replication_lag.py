"""Replication lag of a real standby, as its primary and as the standby itself report it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from example.stack import postgres
from example.stack.stack import Stack
from example.stack.state import State
from pgperf.core.exceptions import LoadLimitPassed
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.load_limits import LoadGuard
from soak.standby import standby
from tests.runner.builders import definition
from tests.runner.server.test_load_limits import LOOSE, Observer

#: Of WAL, in a transaction of its own.
WRITE = "SELECT pg_logical_emit_message(true, 'lag', repeat('x', 3000000))"


@dataclass(frozen=True)
class Replication:
    """Superuser's connections to both servers, and routes of an ordinary login to them."""

    primary: psycopg.Connection[Any]
    second: psycopg.Connection[Any]
    to_primary: Route
    to_standby: Route

    def pause(self) -> None:
        self.second.execute("SELECT pg_wal_replay_pause()")
        self._await(self.second, "SELECT pg_get_wal_replay_pause_state() = 'paused'")

    def resume(self) -> None:
        self.second.execute("SELECT pg_wal_replay_resume()")
        self._await(self.primary, "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication")

    def write(self) -> None:
        """Return when the standby has received the write."""
        self.primary.execute(WRITE)
        self._await(self.primary, "SELECT flush_lsn >= pg_current_wal_lsn() FROM pg_stat_replication")

    def fall_behind(self) -> None:
        self.pause()
        self.write()

    @staticmethod
    def _await(connection: psycopg.Connection[Any], query: str) -> None:
        while connection.execute(query).fetchone() != (True,):
            pass


@pytest.fixture
def replication(
    stack: dict[str, str], routes: dict[str, Route], superuser_login: dict[str, Any]
) -> Iterator[Replication]:
    """A standby of the stack's server."""
    running = Stack(Path(stack["PGPERF_CREDENTIAL_DIR"]).parent)
    running.state = State.load(running.place.servers / "state.json")
    login = {**superuser_login, "dbname": routes["tcp"].dbname}
    with (
        standby(running, postgres.part(running.place, running.state)) as port,
        psycopg.connect(**login) as primary,
        psycopg.connect(**{**login, "port": port}) as second,
    ):
        Replication._await(primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
        # The primary forgets a lag when the standby reports twice that it has caught up.
        second.execute("ALTER SYSTEM SET wal_receiver_status_interval = '10min'")
        second.execute("SELECT pg_reload_conf()")
        yield Replication(primary, second, routes["tcp"], replace(routes["tcp"], port=port))


def load(route: Route, **limits: float) -> dict[str, Any]:
    """The load, and the reason why a number of it is unknown."""
    with ControlConnection(route) as connection:
        guard = LoadGuard(connection.one, {**LOOSE, **limits})
        guard.check()
    return {**guard.facts["at_start"], "unknown": guard.facts.get("unknown", "")}


def test_both_servers_report_the_lag_and_a_run_ends_for_it(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    replication.write()
    replication.resume()
    assert load(replication.to_standby)["lag_s"] == 0, "all that was received is replayed"

    replication.fall_behind()
    for route in (replication.to_primary, replication.to_standby):
        assert 3 <= load(route)["lag_mb"] < 16
        with pytest.raises(
            LoadLimitPassed, match=r"replication lag: [3-9][.0-9]* MB, at most 0.5 MB .*LAG_MB"
        ):
            load(route, PRODUCTION_LAG_MB=0.5)
    with pytest.raises(LoadLimitPassed, match=r"replication lag: [-.e0-9]+ s, at most 1e-06 s .*LAG_SECONDS"):
        load(replication.to_standby, PRODUCTION_LAG_SECONDS=1e-6)
    replication.resume()
    with pytest.raises(LoadLimitPassed, match=r"replication lag: [-.e0-9]+ s, at most 1e-06 s .*LAG_SECONDS"):
        load(replication.to_primary, PRODUCTION_LAG_SECONDS=1e-6)

    monkeypatch.setattr("pgperf.runner.server.load_limits._EVERY_S", 0.0)
    planned = make_plan(
        definition(
            workloads=(WorkloadDefinition("one", "SELECT 1"),), layers=("psycopg",), routes=("tcp",),
            modes=("simple",), blocks=3, rounds=2,
        )
    )  # fmt: skip
    observer = Observer(replication.fall_behind)
    machine = RunSettings("", "load", load_limits={**LOOSE, "PRODUCTION_LAG_MB": 0.5})
    with pytest.raises(LoadLimitPassed, match=r"replication lag: [.0-9]+ MB, at most 0.5 MB"):
        execute(planned, {"tcp": replication.to_primary}, machine, observer)
    assert {block.block for block in observer.blocks} == {0}
