"""Limits of a production server's load."""

import threading
from typing import Any

import psycopg
import pytest

from pgperf.core.answers import ControlQuery
from pgperf.core.exceptions import LoadLimitPassed
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.load_limits import LIMITS, LOAD, LoadGuard
from tests.runner.builders import definition

LOOSE = {
    "PRODUCTION_LAG_SECONDS": 10.0,
    "PRODUCTION_LAG_MB": 256.0,
    "PRODUCTION_LOCK_WAITS": 5,
    "PRODUCTION_CONNECTIONS": 90.0,
}


def answering(*numbers: float | None, seen: bool = True) -> Any:
    def one(query: ControlQuery) -> tuple[Any, ...]:
        assert query is LOAD
        return (*numbers, seen)

    return one


@pytest.mark.parametrize("place", range(len(LIMITS)))
def test_each_number_ends_the_run_above_its_limit_only(place: int) -> None:
    setting = list(LIMITS.values())[place].setting
    numbers: list[float | None] = [0.0] * len(LIMITS)
    numbers[place] = LOOSE[setting]
    LoadGuard(answering(*numbers), LOOSE).check()
    numbers[place] = LOOSE[setting] + 1
    with pytest.raises(LoadLimitPassed) as caught:
        LoadGuard(answering(*numbers), LOOSE).check()
    for said in (f"{LOOSE[setting] + 1:g}", f"{LOOSE[setting]:g}", f"PGPERF['{setting}']"):
        assert said in str(caught.value)
    LoadGuard(answering(*numbers), {**LOOSE, setting: 0}).check()
    numbers[place] = None
    LoadGuard(answering(*numbers), LOOSE).check()


def test_lag_that_the_login_may_not_see_is_unknown() -> None:
    guard = LoadGuard(answering(0.0, 0.0, 0.0, 3.5, seen=False), LOOSE)
    guard()
    assert guard.facts["at_start"] == {"lag_s": None, "lag_mb": None, "lock_waits": 0.0, "connections": 3.5}
    assert "GRANT pg_monitor" in guard.facts["unknown"]


def test_the_lag_in_seconds_of_a_standby_that_has_replayed_nothing_is_unknown() -> None:
    guard = LoadGuard(answering(None, 3.0, 0.0, 3.5), LOOSE)
    guard()
    assert guard.facts["at_start"] == {"lag_s": None, "lag_mb": 3.0, "lock_waits": 0.0, "connections": 3.5}
    assert "has replayed no transaction" in guard.facts["unknown"]


def test_without_limits_nothing_is_asked() -> None:
    guard = LoadGuard(answering(), {})
    guard()
    assert guard.facts == {}


def test_it_is_asked_every_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ControlQuery] = []

    def one(query: ControlQuery) -> tuple[Any, ...]:
        asked.append(query)
        return (0.0, 0.0, 0.0, 0.0, True)

    guard, counts = LoadGuard(one, LOOSE), []
    for now in (100.0, 101.9, 102.0, 103.0, 104.1):
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        guard()
        counts.append(len(asked))
    assert counts == [1, 1, 2, 2, 3]


def test_a_real_server_answers(routes: dict[str, Route]) -> None:
    with ControlConnection(routes["tcp"]) as connection:
        lag_s, lag_mb, waits, connections, seen = connection.one(LOAD)
    assert (lag_s, lag_mb, waits, seen) == (0, 0, 0, True)
    assert 0 < connections < 90


class Observer:
    """Keeps the blocks, and acts after the first."""

    def __init__(self, act: Any) -> None:
        self.blocks: list[Any] = []
        self._act = act

    def block_done(self, blocks: list[Any]) -> None:
        if not self.blocks:
            self._act()
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None: ...

    def cancelled(self) -> bool:
        return False


def test_a_run_ends_when_sessions_wait_for_a_lock(
    routes: dict[str, Route], superuser_login: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgperf.runner.server.load_limits._EVERY_S", 0.0)
    login = {**superuser_login, "dbname": routes["tcp"].dbname}
    planned = make_plan(
        definition(
            workloads=(WorkloadDefinition("one", "SELECT 1"),), layers=("psycopg",), routes=("tcp",),
            modes=("simple",), blocks=3, rounds=2,
        )
    )  # fmt: skip
    with psycopg.connect(**login) as holder, psycopg.connect(**login) as waiter:
        thread = threading.Thread(target=waiter.execute, args=["SELECT pg_advisory_lock(11016)"])

        def wait_for_a_lock() -> None:
            holder.execute("SELECT pg_advisory_lock(11016)")
            thread.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while holder.execute(waiting).fetchone() == (0,):
                pass

        observer = Observer(wait_for_a_lock)
        machine = RunSettings("", "load", load_limits={**LOOSE, "PRODUCTION_LOCK_WAITS": 0.5})
        try:
            with pytest.raises(
                LoadLimitPassed, match=r"wait for locks: 1, at most 0.5 .*PRODUCTION_LOCK_WAITS"
            ):
                execute(planned, routes, machine, observer)
        finally:
            holder.execute("SELECT pg_advisory_unlock_all()")
            thread.join()
    assert {block.block for block in observer.blocks} == {0}
