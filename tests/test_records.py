"""What a definition says of itself: the site's own values are never among it."""

import json
from dataclasses import replace

from pgperf import sql
from pgperf.records import Definition, Workload

WORK = Workload("open-orders", "", orm="shop.open_orders")
DEFINITION = Definition("orders", WORK, layers=("libpq",), routes=("socket",))


def test_captured_statements_are_neither_stored_nor_hashed_nor_shown() -> None:
    captured = (sql.statement("select * from orders where mail = %s", ["a@private.example"]),)
    work = replace(WORK, statements=captured, other_statements=captured)
    definition = replace(DEFINITION, workload=work)
    assert definition.to_json() == DEFINITION.to_json()
    assert definition.digest() == DEFINITION.digest()
    assert Definition.from_json(definition.to_json()) == DEFINITION
    assert "private" not in json.dumps(definition.to_json()) + repr(definition)
