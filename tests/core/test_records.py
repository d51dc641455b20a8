"""The JSON and the digest of a definition do not contain the site's own values."""

import json
from dataclasses import replace

from pgperf.core import sql_parameters
from pgperf.core.records import Definition, Route, WorkloadDefinition, most_direct

WORK = WorkloadDefinition("open-orders", "", orm="shop.open_orders")
DEFINITION = Definition("orders", WORK, layers=("libpq",), routes=("socket",))


def test_captured_statements_are_neither_stored_nor_hashed_nor_shown() -> None:
    captured = (sql_parameters.statement("select * from orders where mail = %s", ["a@private.example"]),)
    work = replace(WORK, statements=captured, other_statements=captured)
    definition = replace(DEFINITION, workload=work)
    assert definition.to_json() == DEFINITION.to_json()
    assert definition.digest() == DEFINITION.digest()
    assert Definition.from_json(definition.to_json()) == DEFINITION
    assert "private" not in json.dumps(definition.to_json()) + repr(definition)


def test_the_most_direct_route_is_the_first_without_a_pooler() -> None:
    pooled, other = Route("a", "h", 1, "d", "u", "", pooler="session"), Route("b", "h", 1, "d", "u", "")
    assert most_direct([pooled, other, replace(other, name="c")]) == other
    assert most_direct([pooled, replace(pooled, name="c")]) == pooled
