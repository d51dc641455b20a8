"""Many rows at once through Django's ORM: bulk_create."""

from functools import cache
from typing import Any

from django.db import models

from pgperf.clients.bulk_rows import records
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol

_FIELDS = {"int4": models.IntegerField, "float8": models.FloatField, "text": models.TextField}


def insert(alias: str, spec: protocol.Spec) -> Operation:
    """An operation that makes an object of each row and inserts them all by bulk_create, which sends
    BEGIN and COMMIT of its own.
    """
    bulk, rows = spec.bulk, records(spec)
    table = _model(bulk.table, tuple(bulk.columns), tuple(bulk.types))

    def run() -> int:
        return len(table._base_manager.using(alias).bulk_create([table(*row) for row in rows]))

    return run


@cache  # a model is registered once in a process, whose workers share it
def _model(table: str, columns: tuple[str, ...], types: tuple[str, ...]) -> type[models.Model]:
    """A model of the table. Its first column stands for the primary key that the table lacks; Django
    neither reads nor checks it.
    """
    schema, name = table.split(".")
    fields: dict[str, Any] = {
        column: _FIELDS[kind](primary_key=not at)
        for at, (column, kind) in enumerate(zip(columns, types, strict=True))
    }
    meta = type(
        "Meta", (), {"managed": False, "app_label": "pgperf_bulk", "db_table": f'"{schema}"."{name}"'}
    )
    return type(name.title(), (models.Model,), {**fields, "Meta": meta, "__module__": __name__})
