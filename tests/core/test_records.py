"""The JSON and the digest of a definition do not contain the site's own values."""

import json
from dataclasses import replace
from itertools import permutations

import pytest

from pgperf.core import sql_parameters
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import (
    CONNECTION_MODES,
    LATER_FIELDS,
    RECONNECTING,
    Definition,
    Route,
    Variant,
    WorkloadDefinition,
    most_direct,
)

WORK = WorkloadDefinition("open-orders", "", orm="shop.open_orders")
LIGHT = WorkloadDefinition("light", "SELECT %s", (1,))
DEFINITION = Definition("orders", (WORK,), layers=("libpq",), routes=("socket",))


def test_captured_statements_are_neither_stored_nor_hashed_nor_shown() -> None:
    captured = (sql_parameters.statement("select * from orders where mail = %s", ["a@private.example"]),)
    work = replace(WORK, statements=captured, other_statements=captured)
    definition = replace(DEFINITION, workloads=(work,))
    assert definition.to_json() == DEFINITION.to_json()
    assert definition.digest() == DEFINITION.digest()
    assert Definition.from_json(definition.to_json()) == DEFINITION
    assert "private" not in json.dumps(definition.to_json()) + repr(definition)


def test_the_most_direct_route_is_the_first_without_a_pooler() -> None:
    pooled, other = Route("a", "h", 1, "d", "u", "", pooler="session"), Route("b", "h", 1, "d", "u", "")
    assert most_direct([pooled, other, replace(other, name="c")]) == other
    assert most_direct([pooled, replace(pooled, name="c")]) == pooled


#: Definitions as the first release stored them, and the digests that it gave them.
FIRST_RELEASE = [
    (None, "a52243e153abd7a21fe3499dafa3bbfe5a2a291c03cfa451b6a387f1163d13e5"),
    (LIGHT, "20cdc47e24ee09a73e266d25b911445e1e127f79ec0212a0c094e42710f657b3"),
]


@pytest.mark.parametrize(("second", "digest"), FIRST_RELEASE)
def test_a_definition_of_the_first_release_is_read_and_keeps_its_digest(
    second: WorkloadDefinition | None, digest: str
) -> None:
    stored = {k: v for k, v in DEFINITION.to_json().items() if k not in ("workloads", *LATER_FIELDS)}
    stored = json.loads(json.dumps(
        {**stored, "workload": WORK.to_json(), "compared_with": second.to_json() if second else None}
    ))  # fmt: skip
    found = Definition.from_json(stored)
    assert found.workloads == ((WORK, second) if second else (WORK,))
    assert found.digest() == digest


@pytest.mark.parametrize("part", ["definition", "workload"])
def test_a_definition_of_a_later_version_is_refused(part: str) -> None:
    stored = DEFINITION.to_json()
    (stored if part == "definition" else stored["workloads"][0])["later"] = 1
    with pytest.raises(InvalidDefinition, match="definition: another version of pgperf stored it"):
        Definition.from_json(stored)


def test_every_workload_and_their_order_change_the_digest() -> None:
    works = [WORK, LIGHT, replace(LIGHT, name="other"), replace(LIGHT, sql="SELECT 2")]
    chosen = [order for length in range(1, 5) for order in permutations(works, length)]
    digests = {replace(DEFINITION, workloads=order).digest() for order in chosen}
    assert len(digests) == len(chosen)
    assert all(
        Definition.from_json(json.loads(json.dumps(each.to_json()))) == each
        for order in chosen
        if (each := replace(DEFINITION, workloads=order))
    )


@pytest.mark.parametrize(
    ("connect", "reconnects"),
    [("persistent", False), ("pool", False), ("per_operation", True), ("request", True)],
)
def test_backends_pass_where_clients_reconnect_or_each_slice_is_a_new_program(
    connect: str, reconnects: bool
) -> None:
    variant = Variant(
        workload="w", layer="libpq", mode="simple", route="tcp", clients=1, connect=connect, placement="apart"
    )
    assert variant.reconnects is variant.backends_pass is reconnects
    tool = replace(variant, layer="pgbench")
    assert (tool.reconnects, tool.backends_pass) == (reconnects, True)


def test_every_connection_mode_keeps_its_connections_or_not() -> None:
    assert set(RECONNECTING) == set(CONNECTION_MODES) - {"persistent", "pool"}
