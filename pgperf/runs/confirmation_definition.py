"""The definition of a run that puts a verdict to the test: the variant and a changed one, side by side. Pure."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pgperf.analysis import interventions
from pgperf.catalog.light import LIGHT
from pgperf.core.delayed_routes import lengthened
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Definition

#: As short as an interval over blocks and a verdict allow.
BLOCKS, ROUNDS = 6, 3
_DIAGNOSTIC_MS = 250


def paired(
    asked: Definition, row: Mapping[str, Any], direct: Callable[[], str], most_clients: int
) -> Definition:
    """What puts the verdict on a variant's `row` of a run of `asked` to the test.

    `direct` names a route around the pooler. Raises InvalidDefinition naming the field that is in the way.
    """
    own = replace(
        asked,
        workload=asked.work(row["workload"]),
        compared_with=None,
        layers=(row["layer"],),
        routes=(row["route"],),
        modes=(row["mode"],),
        clients=(row["clients"],),
        blocks=BLOCKS,
        rounds=ROUNDS,
        cold_blocks=0,
        diagnostic_ms=asked.diagnostic_ms or _DIAGNOSTIC_MS,
        seed=secrets.randbelow(2**31),
    )
    return replace(own, **_change(row, direct, most_clients))


def _change(row: Mapping[str, Any], direct: Callable[[], str], most_clients: int) -> dict[str, Any]:
    """The fields that make the changed variant beside the row's own."""
    clients = row["clients"]
    match row["verdict"]["intervention"]:
        case interventions.LOWER_LAYER:
            return {"layers": ("libpq", row["layer"])}
        case interventions.BYPASS_POOLER:
            return {"routes": (direct(), row["route"])}
        case interventions.LIGHT_STATEMENT:
            return {"compared_with": LIGHT}
        case interventions.ONE_CLIENT:
            return {"clients": (1, clients)}
        case interventions.ADD_DISTANCE:
            return {"routes": (row["route"], lengthened(row["route"], interventions.added_distance_ms(row)))}
    if clients * 2 > most_clients:
        raise InvalidDefinition(f"clients: {clients * 2} is more than {most_clients} (PGPERF['MAX_CLIENTS'])")
    return {"clients": (clients, clients * 2)}


def told_apart(
    rows: list[dict[str, Any]], row: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Of what such a run measured, the variant again and the changed one; empty and None where they are missing."""
    same = ("workload", "layer", "mode", "route", "clients", "connect")
    there = [each for each in rows if not each["control"]]
    own = [each for each in there if all(each[name] == row[name] for name in same)]
    changed = [each for each in there if each not in own]
    return (own[0] if own else {}), (changed[0] if changed else None)
