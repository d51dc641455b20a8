"""The rows of a bulk operation as text, and how psycopg2 sends that text."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.clients import psycopg2_bulk
from pgperf.clients.bulk_rows import as_csv, as_csv_row_by_row
from pgperf.core import protocol

values = st.none() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(st.lists(st.lists(values, min_size=1, max_size=4).map(tuple), max_size=20))
def test_row_by_row_is_the_same_text(rows: list[tuple[Any, ...]]) -> None:
    whole, single = as_csv(rows), as_csv_row_by_row(rows)
    assert whole.tell() == single.tell() == 0
    assert whole.getvalue() == single.getvalue()


class Connection:
    """One that takes down how COPY sends its text."""

    autocommit, rowcount = True, 3

    def cursor(self) -> "Connection":
        return self

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def copy_expert(self, sql: str, text: io.StringIO, size: int) -> None:
        self.size, self.rows = size, list(csv.reader(text, delimiter="\t"))


@pytest.mark.parametrize(("api", "size"), [("best", 65536), ("dbapi", 8192)])
def test_psycopg2_copies_in_large_pieces_or_in_its_default_ones(api: str, size: int) -> None:
    connection = Connection()
    statement = protocol.Statement("COPY t (a, b) FROM STDIN", [1, "x"], "", "", ["1", "x"], [0, 0])
    bulk = protocol.Bulk("copy", "t", ["a", "b"], ["int4", "text"], 3, api)
    spec = protocol.Spec(layer="psycopg2", statements=[statement], bulk=bulk)
    assert psycopg2_bulk.insert(connection, spec)() == 3
    assert (connection.size, connection.rows) == (size, [["1", "x"]] * 3)
