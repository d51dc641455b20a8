"""Which pages production is asked for, by what their captures found."""

from dataclasses import replace

import pytest

from pgperf.access import production_pages
from pgperf.access.guardrails import apply
from pgperf.core.exceptions import PageRefused
from pgperf.core.records import Page, Plan, Route, WorkloadDefinition
from pgperf.runner.capture.statements import Capture, OperationWork
from pgperf.runner.plan import make_plan
from tests.runner.builders import definition

WEB = Route("web", "127.0.0.1", 8000, "", "", "", url="http://127.0.0.1:8000")
TCP = Route("tcp", "127.0.0.1", 5432, "shop", "shop", "secret")
POOLED = replace(TCP, name="pooled", pooler="transaction")
LISTED, SHOWN = (WorkloadDefinition(name, "", page=Page("/books/")) for name in ("list", "show"))


def plan(*layers: str) -> Plan:
    """Two pages and a statement."""
    works = (LISTED, SHOWN, WorkloadDefinition("one", "SELECT 1"))
    return make_plan(
        definition(workloads=works, layers=layers, routes=("web", "tcp"), web_routes={"web": ""})
    )


def capture(work: WorkloadDefinition, **found: str) -> Capture:
    return Capture(work, OperationWork(("SELECT ?",), (1,)), **found)


def test_only_pages_over_http_and_only_in_production_are_checked() -> None:
    assert production_pages.requested(plan("http"), production=True) == [LISTED, SHOWN]
    assert production_pages.requested(plan("http", "libpq"), production=True) == [LISTED, SHOWN]
    assert production_pages.requested(plan("libpq", "django_view"), production=True) == []
    assert production_pages.requested(plan("http", "libpq"), production=False) == []


def test_they_run_first_over_the_most_direct_route() -> None:
    routes = {route.name: route for route in (WEB, POOLED, TCP)}
    assert production_pages.capture_route([LISTED], routes) == TCP
    assert production_pages.capture_route([LISTED], {"web": WEB, "pooled": POOLED}) == POOLED
    assert production_pages.capture_route([], {"web": WEB}) is None


def test_without_a_route_to_the_database_production_is_not_asked() -> None:
    with pytest.raises(PageRefused, match=r"^page: list \(/books/\) .* no enabled target .* Add one$"):
        apply(plan("http"), {"web": WEB}, production=True)
    assert apply(plan("http"), {"web": WEB}, production=False).routes == {"web": WEB}


def test_a_stopped_page_is_named_with_the_reason_and_the_remedy() -> None:
    captures = [capture(LISTED), capture(SHOWN, refusal="page: it sends mail", stopped="page: it sends mail")]
    with pytest.raises(PageRefused) as caught:
        production_pages.check([LISTED, SHOWN], captures)
    assert str(caught.value) == (
        "page: show (/books/) is not requested from web servers of a production database: inside a client it was"
        " stopped: it sends mail. In production, measure a page that only reads; measure this one on another database"
    )


def test_a_page_that_cannot_be_replayed_but_was_not_stopped_is_requested() -> None:
    production_pages.check([LISTED], [capture(LISTED, refusal="it controls transactions")])


def test_a_page_that_did_not_run_is_refused() -> None:
    with pytest.raises(PageRefused, match="it has not run inside a client first"):
        production_pages.check([LISTED, SHOWN], [capture(LISTED)])
