"""What a run notes of the server before its first block."""

from typing import Any

import psycopg
import pytest

from pgperf.core.records import SETTING_SOURCES, Route
from pgperf.runner import environment
from pgperf.runner.cpu import stolen_time
from pgperf.runner.cpu.idle import IdleState
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.server.control_connection import ControlConnection


def noted(route: Route) -> dict[str, Any]:
    with ControlConnection(route) as server:
        return environment.before(
            server.all, None, CpuPlacement("scheduler"), IdleState("asis"), {}, server_here=True
        )


def test_a_setting_of_the_role_is_noted_with_its_source(
    routes: dict[str, Route], superuser_login: dict[str, Any]
) -> None:
    route = routes["tcp"]
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        before = noted(route)
        admin.execute(f"ALTER ROLE {route.user} SET random_page_cost = 1.75")
        try:
            after = noted(route)
        finally:
            admin.execute(f"ALTER ROLE {route.user} RESET random_page_cost")
    assert after["server"]["random_page_cost"] == "1.75"
    assert after[SETTING_SOURCES] == before[SETTING_SOURCES] | {"random_page_cost": "user"}
    assert "random_page_cost" not in before[SETTING_SOURCES]


@pytest.mark.parametrize(
    ("flags", "known"),
    [("fpu sse2 hypervisor", True), ("fpu sse2", False), ("fpu hypervisor_x", False), (None, None)],
)
def test_a_processor_without_flags_does_not_tell_whether_it_is_virtual(
    flags: str | None, known: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_cpuinfo", lambda key: flags if key == "flags" else "Neoverse-N1")
    assert environment._machine()["hypervisor"] is known


def test_a_run_notes_what_stolen_time_is(routes: dict[str, Route]) -> None:
    assert noted(routes["tcp"])["machine"]["steal_in_cpu_times"] is stolen_time.in_cpu_times()
