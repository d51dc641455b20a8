"""Many rows at once through psycopg 3."""

from typing import Any

from pgperf.clients.async_loop import AsyncOperation
from pgperf.clients.bulk_rows import as_csv_row_by_row, execute_many, records
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol

_BINARY = " (FORMAT binary)"


def insert(connection: Any, spec: protocol.Spec) -> Operation:
    """An operation that inserts all rows: COPY of binary rows, or of CSV text with the api dbapi;
    executemany, which psycopg sends in pipeline mode.
    """
    sql, rows = spec.statements[0].sql, records(spec)
    if spec.bulk.kind == "batch":
        return execute_many(connection, sql, rows)
    return _copy_csv(connection, sql, rows) if spec.bulk.api == "dbapi" else _copy(connection, spec, rows)


def insert_async(connection: Any, spec: protocol.Spec) -> AsyncOperation:
    """Like `insert`, for an asynchronous connection."""
    sql, rows = spec.statements[0].sql, records(spec)
    if spec.bulk.kind == "batch":
        return _async_execute_many(connection, sql, rows)
    if spec.bulk.api == "dbapi":
        return _async_copy_csv(connection, sql, rows)
    return _async_copy(connection, spec, rows)


def _copy(connection: Any, spec: protocol.Spec, rows: list[tuple[Any, ...]]) -> Operation:
    sql, types = spec.statements[0].sql + _BINARY, spec.bulk.types

    def run() -> int:
        with connection.cursor() as cursor:
            with cursor.copy(sql) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)
            if not connection.autocommit:
                connection.commit()
            return int(cursor.rowcount)

    return run


def _copy_csv(connection: Any, sql: str, rows: list[tuple[Any, ...]]) -> Operation:
    def run() -> int:
        text = as_csv_row_by_row(rows)
        with connection.cursor() as cursor:
            with cursor.copy(sql) as copy:
                copy.write(text.read())
            if not connection.autocommit:
                connection.commit()
            return int(cursor.rowcount)

    return run


def _async_copy(connection: Any, spec: protocol.Spec, rows: list[tuple[Any, ...]]) -> AsyncOperation:
    sql, types = spec.statements[0].sql + _BINARY, spec.bulk.types

    async def run() -> int:
        async with connection.cursor() as cursor:
            async with cursor.copy(sql) as copy:
                copy.set_types(types)
                for row in rows:
                    await copy.write_row(row)
            if not connection.autocommit:
                await connection.commit()
            return int(cursor.rowcount)

    return run


def _async_copy_csv(connection: Any, sql: str, rows: list[tuple[Any, ...]]) -> AsyncOperation:
    async def run() -> int:
        text = as_csv_row_by_row(rows)
        async with connection.cursor() as cursor:
            async with cursor.copy(sql) as copy:
                await copy.write(text.read())
            if not connection.autocommit:
                await connection.commit()
            return int(cursor.rowcount)

    return run


def _async_execute_many(connection: Any, sql: str, rows: list[tuple[Any, ...]]) -> AsyncOperation:
    async def run() -> int:
        async with connection.cursor() as cursor:
            await cursor.executemany(sql, rows)
            return len(rows)

    return run
