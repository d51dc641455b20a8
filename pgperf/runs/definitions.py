"""From a Benchmark row and what the user changed to the frozen Definition of one run."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError

from pgperf import models
from pgperf.conf import get_settings
from pgperf.core import records
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.layers import LAYERS
from pgperf.db import validators

#: A first look: every layer and route, as many blocks as an interval needs, little of everything else.
QUICK_BLOCKS = 7
QUICK_ROUNDS = 7
QUICK_LEAD_IN_MS = 20
QUICK_COLD_BLOCKS = 1
QUICK_DIAGNOSTIC_MS = 250

_LIMITS = {"blocks": (1, 100), "rounds": (1, 200), "slice_ms": (0, 5000), "diagnostic_ms": (0, 10_000)}
_SLICE_MIN_MS = 10
_DIAGNOSTIC_MIN_MS = 50


@dataclass(frozen=True)
class Overrides:
    """What one run changes of its benchmark; None keeps the benchmark's.

    `slice_ms` 0 leaves it to the pilot, `diagnostic_ms` 0 asks the server nothing.
    """

    layers: Sequence[str] | None = None
    routes: Sequence[str] | None = None
    clients: Sequence[int] | None = None
    placement: str | None = None
    idle: str | None = None
    slice_ms: int | None = None
    rounds: int | None = None
    blocks: int | None = None
    diagnostic_ms: int | None = None
    quick: bool = False


#: The benchmark as it is saved.
AS_SAVED = Overrides()


def freeze(
    benchmark: models.Benchmark, database: models.Database, overrides: Overrides = AS_SAVED
) -> records.Definition:
    """The definition with every default filled in. Raises InvalidDefinition naming the field that is wrong."""
    preset = _Preset(benchmark, overrides)
    definition = records.Definition(
        benchmark=benchmark.name,
        workload=workload(benchmark.workload),
        compared_with=_compared_with(benchmark),
        layers=_checked("layers", preset.pick("layers"), validators.layer_list),
        routes=_routes(benchmark, database, overrides.routes),
        modes=_checked("modes", benchmark.modes, validators.mode_list),
        clients=_clients(preset.pick("clients")),
        placement=_one_of("placement", preset.pick("placement"), records.PLACEMENTS),
        idle=_one_of("idle", preset.pick("idle"), records.IDLES),
        blocks=_number("blocks", preset.pick("blocks", QUICK_BLOCKS)),
        rounds=_number("rounds", preset.pick("rounds", QUICK_ROUNDS)),
        slice_ms=_slice(preset.pick("slice_ms")),
        lead_in_ms=QUICK_LEAD_IN_MS if overrides.quick else records.Definition.lead_in_ms,
        cold_blocks=QUICK_COLD_BLOCKS if overrides.quick else records.Definition.cold_blocks,
        diagnostic_ms=_diagnostic(preset.pick("diagnostic_ms", QUICK_DIAGNOSTIC_MS)),
        seed=secrets.randbelow(2**31),
    )
    _some_mode_possible(definition)
    return definition


def workload(row: models.Workload) -> records.Workload:
    """The record of a Workload row. Raises InvalidDefinition naming the field that is wrong."""
    return records.Workload(
        name=row.name,
        sql=row.sql,
        args=_checked("args", row.args, validators.scalar_list),
        orm=row.orm,
        other_sql=row.other_sql,
        other_args=_checked("other_args", row.other_args, validators.scalar_list),
        other_orm=row.other_orm,
        fixture=row.fixture,
        query=row.query,
    )


def _compared_with(benchmark: models.Benchmark) -> records.Workload | None:
    if benchmark.compared_with is None:
        return None
    if benchmark.compared_with == benchmark.workload:
        raise InvalidDefinition("compared_with: that is the workload itself; choose another, or none")
    return workload(benchmark.compared_with)


def missing_routes(benchmark: models.Benchmark, database: models.Database) -> list[str]:
    """Routes the benchmark names and the database has no enabled target for: a run leaves them out."""
    there = set(_enabled(database))
    return [route for route in benchmark.routes if route not in there]


@dataclass(frozen=True)
class _Preset:
    """Who decides a value: the user's override, else the quick preset where it is less, else the benchmark."""

    benchmark: models.Benchmark
    overrides: Overrides

    def pick(self, name: str, quick: int | None = None) -> Any:
        given, saved = getattr(self.overrides, name), getattr(self.benchmark, name)
        if given is not None:
            return given
        return min(quick, saved) if self.overrides.quick and quick is not None else saved


def _checked(field: str, value: Any, validate: Any) -> tuple[Any, ...]:
    value = list(value) if isinstance(value, tuple) else value
    try:
        validate(value)
    except ValidationError as error:
        raise InvalidDefinition(f"{field}: {' '.join(error.messages)}") from None
    return tuple(value)


def _routes(
    benchmark: models.Benchmark, database: models.Database, wanted: Iterable[str] | None
) -> tuple[str, ...]:
    """What the user asked for must be there; of the benchmark's own routes, those that the database has."""
    there = _enabled(database)
    asked = _checked("routes", benchmark.routes if wanted is None else list(wanted), validators.name_list)
    lacking = [route for route in asked if route not in there]
    if lacking and (wanted is not None or len(lacking) == len(asked)):
        raise InvalidDefinition(
            f"routes: database {database} has no enabled target for {', '.join(lacking)}; "
            f"it has {', '.join(there) or 'none: add a target'}"
        )
    return tuple(dict.fromkeys(route for route in asked if route in there))


def _enabled(database: models.Database) -> list[str]:
    return list(database.targets.filter(enabled=True).values_list("route", flat=True))


def _clients(value: Any) -> tuple[int, ...]:
    clients = _checked("clients", value, validators.client_list)
    most = get_settings().MAX_CLIENTS
    if max(clients) > most:
        raise InvalidDefinition(f"clients: {max(clients)} is more than {most} (PGPERF['MAX_CLIENTS'])")
    return clients


def _one_of(field: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidDefinition(f"{field}: {value!r} is unknown; choose from {', '.join(choices)}")
    return str(value)


def _number(field: str, value: Any) -> int:
    least, most = _LIMITS[field]
    if type(value) is not int or not least <= value <= most:
        raise InvalidDefinition(f"{field}: {value!r} is no whole number from {least} to {most}")
    return value


def _slice(value: Any) -> int:
    length = _number("slice_ms", value)
    if 0 < length < _SLICE_MIN_MS:
        raise InvalidDefinition(
            f"slice_ms: {length} is too short; give 0 for the pilot's choice, or {_SLICE_MIN_MS} to 5000"
        )
    return length


def _diagnostic(length: Any) -> int:
    length = _number("diagnostic_ms", length)
    if 0 < length < _DIAGNOSTIC_MIN_MS:
        raise InvalidDefinition(
            f"diagnostic_ms: {length} is too short to see anything; give 0 for none, or {_DIAGNOSTIC_MIN_MS} to 10000"
        )
    return length


def _some_mode_possible(definition: records.Definition) -> None:
    if not any(mode in LAYERS[layer].modes for layer in definition.layers for mode in definition.modes):
        raise InvalidDefinition(
            f"modes: none of {', '.join(definition.layers)} knows {', '.join(definition.modes)}"
        )
