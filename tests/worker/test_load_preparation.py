"""What a load host prepares for a run."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from pgperf.core.exceptions import PageRefused, PreflightRefused
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, Page, Route, WorkloadDefinition
from pgperf.models import Database, Run
from pgperf.runner import authentication
from pgperf.runner.capture.statements import Capture, OperationWork
from pgperf.runner.load_hosts import part_of
from pgperf.runner.memory import MIB, RunMemory
from pgperf.runner.plan import make_plan
from pgperf.worker import load_preparation
from tests.runner.builders import definition

WORK = WorkloadDefinition("page", "", page=Page("/"))


def requested(**changes: Any) -> Definition:
    return definition(workloads=(WORK,), layers=("http",), routes=("web",), web_routes={"web": ""}, **changes)


@pytest.mark.django_db
@pytest.mark.parametrize(("production", "names"), [(True, ["web", "tcp"]), (False, ["web"])])
def test_only_for_pages_of_production_a_load_host_needs_a_way_to_the_database(
    settings: Any, production: bool, names: list[str]
) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["http://127.0.0.1:8000"]}
    database = Database.objects.create(
        name="live", dbname="live", credential="alias:default", production=production
    )
    address = connection.settings_dict
    database.targets.create(route="tcp", host=address["HOST"], port=int(address["PORT"]))
    database.targets.create(route="web", url="http://127.0.0.1:8000")
    run = Run(database=database, definition=requested().to_json())
    assert list(load_preparation.near_routes(run)) == names


def test_a_load_host_refuses_a_page_that_was_stopped_there(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Capture(WORK, OperationWork((), ()), stopped="page: it sends mail")
    monkeypatch.setattr(load_preparation, "captures_of", lambda *_: [stopped])
    with pytest.raises(PageRefused, match="it sends mail"):
        load_preparation._captured(make_plan(requested()), {}, RunMemory.now(None), production=True)


def test_nothing_is_captured_of_a_page_that_is_only_requested() -> None:
    """There is no route to a database either."""
    web = Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000")
    plan = make_plan(requested())
    assert WORK.is_site
    assert load_preparation._captured(plan, {"web": web}, RunMemory.now(None), production=False) == plan


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


def test_clients_of_all_numbers_of_load_hosts_share_the_memory() -> None:
    """1, 2 and 4 hosts have processes of their own on the first host, and all of them stand by."""
    plan = make_plan(definition(layers=("libpq",), routes=("tcp",), clients=(8,), load_hosts=(1, 2, 4)))
    parts = {variant: part for variant in plan.variants if (part := part_of(variant, 0, 4))}
    processes = sum(len(part.indices(variant.clients)) for variant, part in parts.items())
    assert processes >= 8 + 4 + 2
    start, allowed = LAYERS["libpq"].megabytes * MIB, 4000 * MIB
    share = load_preparation.Prepared(Run(), plan, {}, RunMemory(2 * allowed, allowed)).client_bytes(parts)
    assert 0.9 * allowed < processes * (start + share) <= allowed
    few = RunMemory(allowed, processes * start - 1)
    with pytest.raises(PreflightRefused, match="choose fewer clients or more load hosts"):
        load_preparation.Prepared(Run(), plan, {}, few).client_bytes(parts)
