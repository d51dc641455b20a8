"""What a load host prepares for a run, without a database."""

from dataclasses import replace

import pytest

from pgperf.core.records import Page, Route, WorkloadDefinition
from pgperf.runner import authentication
from pgperf.runner.memory import RunMemory
from pgperf.runner.plan import make_plan
from pgperf.worker import load_preparation
from tests.runner.builders import definition


def test_nothing_is_captured_of_a_page_that_is_only_requested() -> None:
    """There is no route to a database either."""
    web = Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000")
    work = WorkloadDefinition("page", "", page=Page("/"))
    plan = make_plan(definition(workloads=(work,), layers=("http",), routes=("web",), web_routes={"web": ""}))
    assert work.is_site
    assert load_preparation._captured(plan, {"web": web}, RunMemory.now(None)) == plan


def test_logins_are_read_where_clients_reconnect_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick logins need more ports. A Unix socket needs none, nor do clients of the owner here."""
    asked: list[str] = []
    monkeypatch.setattr(authentication, "conditions", lambda route: asked.append(route.name))
    tcp = Route("tcp", "db.example", 5432, "app", "app", "secret")
    routes = {"tcp": tcp, "socket": replace(tcp, name="socket", host="/run/postgresql")}
    for modes, hosts in ((("persistent",), 2), (("per_operation",), 0), (("per_operation",), 2)):
        fields = {"layers": ("libpq",), "routes": tuple(routes), "connection_modes": modes}
        plan = make_plan(definition(**fields, load_hosts=(hosts,)))
        load_preparation._logins(plan, routes)
    assert asked == ["tcp"]
