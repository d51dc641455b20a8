"""The size of an operation's result by the server's own plan, before the operation first runs.

EXPLAIN plans a statement and does not run it. The estimate may be far off, so it refuses only what
cannot fit. The kernel limits what the clients really take.
"""

import json
from collections.abc import Mapping
from typing import Any

from pgperf.core import layers, sql_parameters
from pgperf.core.answers import TEXT, ControlQuery
from pgperf.core.exceptions import ClientFailed, LayerUnavailable
from pgperf.core.records import Plan, Route, WorkloadDefinition, most_direct
from pgperf.runner.preflight import ResultSize
from pgperf.runner.server.control_connection import ControlConnection

_EXPLAINED = ("SELECT", "WITH", "VALUES", "TABLE")
_ABOUT = "the plan of a statement"


def estimates(plan: Plan, routes: Mapping[str, Route], application: str) -> dict[str, ResultSize]:
    """The largest result of one statement of each workload; without those that are unknown."""
    used = {variant.workload for variant in plan.variants if layers.connects(variant.layer)}
    texts = {work.name: _texts(work) for work in plan.definition.workloads if work.name in used}
    if not any(texts.values()):
        return {}
    route = most_direct(routes.values())
    try:
        with ControlConnection(route, f"{application}-plan") as connection:
            found = {name: _largest(connection, each) for name, each in texts.items() if each}
    except (ClientFailed, LayerUnavailable):
        return {}  # the statement itself will tell
    return {name: size for name, size in found.items() if size}


def read_plan(text: str) -> ResultSize | None:
    """The top node of EXPLAIN (FORMAT JSON); None if it has no such numbers."""
    try:
        node: Any = json.loads(text)[0]["Plan"]
        rows, width = node["Plan Rows"], node["Plan Width"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(rows) is not int or type(width) is not int or rows < 0 or width < 0:
        return None
    return ResultSize(rows, width)


def _texts(work: WorkloadDefinition) -> list[str]:
    """Its statements as they go over the wire, without those that have no plan."""
    statements = [*(work.statements or sql_parameters.statements(work.sql, work.args))]
    return [
        each.literal for each in statements if each.literal.lstrip(" \n\t(").upper().startswith(_EXPLAINED)
    ]


def _largest(connection: ControlConnection, texts: list[str]) -> ResultSize | None:
    sizes = []
    for text in dict.fromkeys(texts):
        query = ControlQuery(_ABOUT, f"EXPLAIN (FORMAT JSON) {text}", (TEXT,))
        sizes.append(read_plan(connection.one(query)[0]))
    return max(filter(None, sizes), key=lambda size: size.bytes, default=None)
