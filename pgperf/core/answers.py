"""Control queries with the columns of their answers, which are checked in this one place (pure).

An answer is rows of text. It may come from an odd server, a pooler of another version, or a program
that is no database at all, so nothing is used before it was read here.
"""

import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgperf.core import sql_names

_LONGEST_TEXT = 100_000
_LONGEST_LINE = 1_000
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?")
_TRUTHS = {"t": True, "true": True, "True": True, "f": False, "false": False, "False": False}

#: Rows as a client passes them on: text, None for NULL.
TextRows = Sequence[Sequence[str | None]]


@dataclass(frozen=True)
class Column:
    """One column of an answer: what it holds, for messages, and how to read its text.

    `parse` raises ValueError or KeyError for any other text.
    """

    holds: str
    parse: Callable[[str], Any]
    nullable: bool = False

    @property
    def or_null(self) -> "Column":
        return replace(self, nullable=True)

    def read(self, value: str | None) -> Any:
        if value is None and self.nullable:
            return None
        if value is None:
            raise ValueError("null")
        return self.parse(value)


def _text(value: str) -> str:
    if "\0" in value or len(value) > _LONGEST_TEXT:  # the site's database stores no NUL
        raise ValueError(value)
    return value


def _line(value: str) -> str:
    if not value or not value.isprintable() or len(value) > _LONGEST_LINE:
        raise ValueError(value)
    return value


def _whole(value: str) -> int:
    if not _WHOLE.fullmatch(value):
        raise ValueError(value)
    return int(value)


def _pid(value: str) -> int:
    pid = _whole(value)
    if not 0 < pid < 1 << 31:
        raise ValueError(value)
    return pid


def _number(value: str) -> float:
    if not _NUMBER.fullmatch(value) or not math.isfinite(float(value)):
        raise ValueError(value)
    return float(value)


TEXT = Column("text", _text)
#: For terminals and messages: a name or a version.
LINE = Column("one line of printable text", _line)
#: For SQL: the name is quoted here, whatever the server made of it.
IDENTIFIER = Column("a name in printable characters", lambda value: sql_names.quoted(_line(value)))
WHOLE = Column("a whole number", _whole)
PID = Column("a process id", _pid)
NUMBER = Column("a number", _number)
ADDRESS = Column("an IP address", lambda value: str(ipaddress.ip_address(value)))
TRUTH = Column("true or false", _TRUTHS.__getitem__)


@dataclass(frozen=True)
class ControlQuery:
    """A query of pgperf's own. `about` completes "the answer about ..." in messages."""

    about: str
    sql: str
    columns: tuple[Column, ...]

    def read(self, rows: TextRows) -> list[tuple[Any, ...]]:
        """The typed values of each row.

        Raises ValueError naming the row and the column. It never quotes a value.
        """
        return [self._row(number, row) for number, row in enumerate(rows, 1)]

    def read_one(self, rows: TextRows) -> tuple[Any, ...]:
        """The typed values of the only row. Raises ValueError for any other number of rows."""
        found = self.read(rows)
        if len(found) != 1:
            raise ValueError(f"it has {len(found)} rows instead of one")
        return found[0]

    def _row(self, number: int, row: Sequence[str | None]) -> tuple[Any, ...]:
        if len(row) != len(self.columns):
            raise ValueError(f"row {number} has {len(row)} columns instead of {len(self.columns)}")
        return tuple(
            _value(column, value, f"row {number}, column {at}")
            for at, (column, value) in enumerate(zip(self.columns, row, strict=True), 1)
        )


def named(columns: Sequence[str], row: Sequence[str | None], wanted: dict[str, Column]) -> dict[str, Any]:
    """The wanted values of a row whose columns have names, as in PgBouncer's SHOW.

    Other columns, which a later version may have, are ignored. Raises ValueError naming a column
    that is missing, doubled or unreadable.
    """
    if len(row) != len(columns):
        raise ValueError(f"a row has {len(row)} columns instead of {len(columns)}")
    for name in wanted:
        if columns.count(name) != 1:
            raise ValueError(f"column {name} is there {columns.count(name)} times")
    at = {name: columns.index(name) for name in wanted}
    return {name: _value(column, row[at[name]], f"column {name}") for name, column in wanted.items()}


def _value(column: Column, value: str | None, place: str) -> Any:
    try:
        return column.read(value)
    except (ValueError, KeyError):
        raise ValueError(f"{place} is not {column.holds}") from None
