"""What a client process is told."""

import pytest

from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.layers import LAYERS
from pgperf.core.records import Page, Route, WorkloadDefinition
from pgperf.runner.client_spec import spec
from pgperf.runner.plan import make_plan
from tests.runner.builders import definition


@pytest.mark.parametrize("layer", [name for name in LAYERS if not LAYERS[name].requests_pages])
def test_a_client_gets_the_second_query_in_the_form_of_its_layer(layer: str) -> None:
    what = definition(workloads=(SITE_BY_DOMAIN,), layers=(layer,), modes=LAYERS[layer].modes[:1])
    route = Route("here", "localhost", 5432, "app", "reader", "")
    found = spec(what, make_plan(what).variants[0], route, "pgperf", True, 0)
    assert (bool(found.other_orm), bool(found.other_statements)) == (
        LAYERS[layer].calls_orm, not LAYERS[layer].calls_orm
    )  # fmt: skip


@pytest.mark.parametrize(("layer", "url"), [("django_view", "https://shop.example"), ("psycopg", "")])
def test_a_view_in_process_is_asked_at_the_origin_of_the_web_servers(layer: str, url: str) -> None:
    page = WorkloadDefinition("page", "", page=Page("/books/"))
    what = definition(workloads=(page,), layers=(layer,), web_origin="https://shop.example")
    route = Route("here", "localhost", 5432, "app", "reader", "")
    assert spec(what, make_plan(what).variants[0], route, "pgperf", True, 0).url == url
