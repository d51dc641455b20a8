"""What a run notes of the server before its first block."""

from typing import Any

import psycopg
import pytest

from pgperf.core.answers import ControlQuery
from pgperf.core.exceptions import UnexpectedAnswer
from pgperf.core.records import REPLICATES, SETTING_SOURCES, Route, VariantBlock
from pgperf.runner import environment
from pgperf.runner.cpu import stolen_time
from pgperf.runner.cpu.idle import IdleState
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.server.control_connection import ControlConnection
from tests.core.builders import variant


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


def test_a_replication_slot_is_noted(routes: dict[str, Route], superuser_login: dict[str, Any]) -> None:
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        admin.execute("SELECT pg_create_physical_replication_slot('pgperf_noted')")
        try:
            assert noted(routes["tcp"])[REPLICATES] is True
        finally:
            admin.execute("SELECT pg_drop_replication_slot('pgperf_noted')")


@pytest.mark.parametrize(
    ("sees", "row", "replicates"),
    [("t", "t", True), ("t", "f", False), ("f", "t", None), ("odd", "t", None), ("t", "odd", None)],
)
def test_a_server_says_whether_it_replicates(sees: str, row: str, replicates: bool | None) -> None:
    """A login may be kept from it. The answer of an odd server is none."""
    asked = []

    def query(asks: ControlQuery) -> list[tuple[Any, ...]]:
        asked.append(asks)
        try:
            return asks.read([[sees if asks == environment._SEES_REPLICATION else row]])
        except ValueError as problem:
            raise UnexpectedAnswer(str(problem)) from None

    assert environment.replicates(query) is replicates
    assert (environment._REPLICATES in asked) is (sees == "t"), "the connection would not survive it"


def test_a_run_goes_on_where_a_login_may_not_see_replication(
    routes: dict[str, Route], superuser_login: dict[str, Any]
) -> None:
    """The connection is usable afterwards."""
    with psycopg.connect(**superuser_login, dbname=routes["tcp"].dbname) as admin:
        admin.execute("REVOKE SELECT ON pg_replication_slots FROM public")
        admin.commit()
        try:
            with ControlConnection(routes["tcp"]) as server:
                assert environment.replicates(server.all) is None
                assert environment.settings(server.all)
        finally:
            admin.execute("GRANT SELECT ON pg_replication_slots TO public")


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


@pytest.mark.parametrize(
    ("named", "answers"),
    [
        (False, {"answer": "200, 40 bytes"}),
        (True, {"answer of list": "200, 20 bytes", "answer of show": "200, 40 bytes"}),
    ],
)
def test_each_of_several_pages_has_an_answer(named: bool, answers: dict[str, str]) -> None:
    versions: environment.Versions = {}
    for workload, answer in (("list", "200, 20 bytes"), ("show", "200, 40 bytes")):
        page = variant(layer="django_view", workload=workload, named=named)
        found = {"django": "6.0", "answer": answer}
        environment.note(versions, VariantBlock(variant=page, cohort=0, block=0, slices=(), versions=found))
    assert environment.after(versions, {})["layers"]["django_view"] == {"django": "6.0", **answers}
