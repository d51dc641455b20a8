"""Many rows at once through psycopg2."""

import io
from collections.abc import Callable
from typing import Any

from psycopg2.extras import execute_values

from pgperf.clients.bulk_rows import as_csv, as_csv_row_by_row, execute_many, records
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol

Rows = list[tuple[Any, ...]]

#: How COPY sends its text, by `api`: what makes it, and the bytes of one piece. psycopg2 releases
#: the interpreter with each piece, and its own default is 8,192.
_COPY: dict[str, tuple[Callable[[Rows], io.StringIO], int]] = {
    "best": (as_csv, 1 << 16),
    "dbapi": (as_csv_row_by_row, 8192),
}


def insert(connection: Any, spec: protocol.Spec) -> Operation:
    """An operation that inserts all rows: COPY of a file of CSV text, the only COPY that psycopg2 has;
    execute_values, or executemany with the api dbapi. That api also copies as most programs do.
    """
    sql, rows = spec.statements[0].sql, records(spec)
    if spec.bulk.kind == "copy":
        return _copy(connection, sql, rows, *_COPY[spec.bulk.api])
    return (
        execute_many(connection, sql, rows) if spec.bulk.api == "dbapi" else _values(connection, spec, rows)
    )


def _copy(
    connection: Any, sql: str, rows: Rows, text_of: Callable[[Rows], io.StringIO], piece: int
) -> Operation:
    def run() -> int:
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, text_of(rows), piece)
            if not connection.autocommit:
                connection.commit()
            return int(cursor.rowcount)

    return run


def _values(connection: Any, spec: protocol.Spec, rows: Rows) -> Operation:
    sql = f"INSERT INTO {spec.bulk.table} ({', '.join(spec.bulk.columns)}) VALUES %s"

    def run() -> int:
        with connection.cursor() as cursor:
            execute_values(cursor, sql, rows, page_size=len(rows))
            return int(cursor.rowcount)

    return run
