"""A bare loop of the calls that a driver needs for one query, without any client of pgperf.

benchmarks.driver_loop starts it. The first line of stdin is the work, a JSON object with the fields
of `Work`; the answer is the pid of the backend. Each further line is a number of operations; the
answer is the time that they took together and this process's CPU time in it, ns.
"""

import asyncio
import csv
import gc
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import monotonic_ns, process_time_ns
from typing import Any

_COPY_BYTES = 1 << 16
_BINARY = " (FORMAT binary)"

#: Wall time and CPU time, ns.
Taken = tuple[int, int]


@dataclass
class Work:
    """What one operation does, as one driver takes it. `kind` is read, copy or batch."""

    driver: str
    kind: str
    login: dict[str, Any]
    sql: str
    args: list[Any]
    table: str = ""
    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: int = 0
    statement: Any = None  # asyncpg's prepared statement

    @property
    def records(self) -> list[tuple[Any, ...]]:
        return [tuple(self.args)] * self.rows


def main() -> None:
    work = Work(**json.loads(sys.stdin.readline()))
    loop = asyncio.new_event_loop()
    if work.driver in ("psycopg", "psycopg2"):
        connection, pid = _connect(work)
        timed: Callable[[int], Taken] = lambda count: _timed(connection, work, count)  # noqa: E731
    else:
        connection, pid = loop.run_until_complete(_connect_async(work))
        timed = lambda count: loop.run_until_complete(_timed_async(connection, work, count))  # noqa: E731
    print(pid, flush=True)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        gc.collect()
        print(*timed(int(line)), flush=True)


def _connect(work: Work) -> tuple[Any, int]:
    connection = import_module(work.driver).connect(**work.login)
    connection.autocommit = True
    return connection, connection.info.backend_pid


async def _connect_async(work: Work) -> tuple[Any, int]:
    if work.driver == "psycopg_async":
        psycopg = import_module("psycopg")
        connection = await psycopg.AsyncConnection.connect(**work.login, autocommit=True)
        return connection, connection.info.backend_pid
    connection = await import_module("asyncpg").connect(**work.login)
    if work.kind == "read":
        work.statement = await connection.prepare(work.sql)
    return connection, connection.get_server_pid()


def _timed(connection: Any, work: Work, count: int) -> Taken:
    loop = LOOPS[work.driver, work.kind]
    cpu, before = process_time_ns(), monotonic_ns()
    loop(connection, work, count)
    return monotonic_ns() - before, process_time_ns() - cpu


async def _timed_async(connection: Any, work: Work, count: int) -> Taken:
    loop = LOOPS[work.driver, work.kind]
    cpu, before = process_time_ns(), monotonic_ns()
    await loop(connection, work, count)
    return monotonic_ns() - before, process_time_ns() - cpu


def _psycopg2_read(connection: Any, work: Work, count: int) -> None:
    sql, args = work.sql, work.args
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.execute(sql, args)
            cursor.fetchall()


def _psycopg2_copy(connection: Any, work: Work, count: int) -> None:
    sql, records = work.sql, work.records
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.copy_expert(sql, _as_csv(records), _COPY_BYTES)


def _psycopg2_batch(connection: Any, work: Work, count: int) -> None:
    execute_values = import_module("psycopg2.extras").execute_values
    sql = f"INSERT INTO {work.table} ({', '.join(work.columns)}) VALUES %s"
    records = work.records
    for _ in range(count):
        with connection.cursor() as cursor:
            execute_values(cursor, sql, records, page_size=len(records))


def _psycopg_read(connection: Any, work: Work, count: int) -> None:
    sql, args = work.sql, work.args
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.execute(sql, args, prepare=True)
            cursor.fetchall()


def _psycopg_copy(connection: Any, work: Work, count: int) -> None:
    sql, types, records = work.sql + _BINARY, work.types, work.records
    for _ in range(count):
        with connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(types)
            for row in records:
                copy.write_row(row)


def _psycopg_batch(connection: Any, work: Work, count: int) -> None:
    sql, records = work.sql, work.records
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.executemany(sql, records)


async def _psycopg_async_read(connection: Any, work: Work, count: int) -> None:
    sql, args = work.sql, work.args
    for _ in range(count):
        async with connection.cursor() as cursor:
            await cursor.execute(sql, args, prepare=True)
            await cursor.fetchall()


async def _psycopg_async_copy(connection: Any, work: Work, count: int) -> None:
    sql, types, records = work.sql + _BINARY, work.types, work.records
    for _ in range(count):
        async with connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(types)
            for row in records:
                await copy.write_row(row)


async def _psycopg_async_batch(connection: Any, work: Work, count: int) -> None:
    sql, records = work.sql, work.records
    for _ in range(count):
        async with connection.cursor() as cursor:
            await cursor.executemany(sql, records)


async def _asyncpg_read(connection: Any, work: Work, count: int) -> None:
    fetch, args = work.statement.fetch, work.args
    for _ in range(count):
        await fetch(*args)


async def _asyncpg_copy(connection: Any, work: Work, count: int) -> None:
    schema, _, table = work.table.partition(".")
    columns, records = work.columns, work.records
    for _ in range(count):
        await connection.copy_records_to_table(table, schema_name=schema, columns=columns, records=records)


async def _asyncpg_batch(connection: Any, work: Work, count: int) -> None:
    sql, records = work.sql, work.records
    for _ in range(count):
        await connection.executemany(sql, records)


def _as_csv(records: list[tuple[Any, ...]]) -> io.StringIO:
    text = io.StringIO()
    csv.writer(text, delimiter="\t").writerows(records)
    text.seek(0)
    return text


#: By driver and kind: runs so many operations on the connection.
LOOPS: dict[tuple[str, str], Callable[[Any, Work, int], Any]] = {
    ("psycopg2", "read"): _psycopg2_read,
    ("psycopg2", "copy"): _psycopg2_copy,
    ("psycopg2", "batch"): _psycopg2_batch,
    ("psycopg", "read"): _psycopg_read,
    ("psycopg", "copy"): _psycopg_copy,
    ("psycopg", "batch"): _psycopg_batch,
    ("psycopg_async", "read"): _psycopg_async_read,
    ("psycopg_async", "copy"): _psycopg_async_copy,
    ("psycopg_async", "batch"): _psycopg_async_batch,
    ("asyncpg", "read"): _asyncpg_read,
    ("asyncpg", "copy"): _asyncpg_copy,
    ("asyncpg", "batch"): _asyncpg_batch,
}


if __name__ == "__main__":
    main()
