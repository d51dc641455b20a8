"""Many rows at once through psycopg2."""

from typing import Any

from psycopg2.extras import execute_values

from pgperf.clients.bulk_rows import as_csv, execute_many, records
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol

_COPY_BYTES = 1 << 16


def insert(connection: Any, spec: protocol.Spec) -> Operation:
    """An operation that inserts all rows: COPY of a file of CSV text, the only COPY that psycopg2 has;
    execute_values, or executemany with the api dbapi.
    """
    sql, rows = spec.statements[0].sql, records(spec)
    if spec.bulk.kind == "copy":
        return _copy(connection, sql, rows)
    return (
        execute_many(connection, sql, rows) if spec.bulk.api == "dbapi" else _values(connection, spec, rows)
    )


def _copy(connection: Any, sql: str, rows: list[tuple[Any, ...]]) -> Operation:
    def run() -> int:
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, as_csv(rows), _COPY_BYTES)
            if not connection.autocommit:
                connection.commit()
            return int(cursor.rowcount)

    return run


def _values(connection: Any, spec: protocol.Spec, rows: list[tuple[Any, ...]]) -> Operation:
    sql = f"INSERT INTO {spec.bulk.table} ({', '.join(spec.bulk.columns)}) VALUES %s"

    def run() -> int:
        with connection.cursor() as cursor:
            execute_values(cursor, sql, rows, page_size=len(rows))
            return int(cursor.rowcount)

    return run
