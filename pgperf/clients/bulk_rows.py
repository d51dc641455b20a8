"""The rows of a bulk operation, as drivers of Python take them."""

import csv
import io
from typing import Any

from pgperf.clients.timed_loop import Operation
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.protocol import Spec


def records(spec: Spec) -> list[tuple[Any, ...]]:
    """All rows that one operation inserts.

    Raises InvalidDefinition unless the spec has one statement with arguments.
    """
    if len(spec.statements) != 1 or not spec.statements[0].args:
        raise InvalidDefinition("bulk: give one statement, whose arguments are the values of a row")
    return [tuple(spec.statements[0].args)] * spec.bulk.rows


def as_csv(rows: list[tuple[Any, ...]]) -> io.StringIO:
    """The rows as text for COPY, separated by tabs and ready to be read."""
    text = io.StringIO()
    csv.writer(text, delimiter="\t").writerows(rows)
    text.seek(0)
    return text


def as_csv_row_by_row(rows: list[tuple[Any, ...]]) -> io.StringIO:
    """The same text as programs often make it. Other threads get the interpreter between two rows."""
    text = io.StringIO()
    write = csv.writer(text, delimiter="\t").writerow
    for row in rows:
        write(row)
    text.seek(0)
    return text


def execute_many(connection: Any, sql: str, rows: list[tuple[Any, ...]]) -> Operation:
    """An operation that inserts all rows by a DB-API driver's executemany."""

    def run() -> int:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)
            return len(rows)

    return run
