"""The table that every file format is read into, and the limits of all formats."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pgperf.core.exceptions import TransferError

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 2_000
MAX_COLUMNS = 100
#: Nesting of lists and objects; a definition needs three levels.
MAX_DEPTH = 10

#: NUL and lone surrogates.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass
class ImportTable:
    """Rows as dictionaries. `flat`: the file is a spreadsheet, whose cells hold lists as JSON text.

    `numbers` are the row numbers that a user sees: the header of a spreadsheet is row 1, a JSON or
    YAML list begins with 1.
    """

    flat: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def add(self, number: int, row: dict[str, Any]) -> None:
        """Raises TransferError beyond MAX_ROWS."""
        if len(self.rows) >= MAX_ROWS:
            raise TransferError(f"the file has more than {MAX_ROWS:,} rows: split it")
        self.rows.append(row)
        self.numbers.append(number)

    def columns(self) -> dict[str, int]:
        """The name of each column, with the number of the first row that has it."""
        numbered = zip(reversed(self.numbers), reversed(self.rows), strict=True)
        found = {name: number for number, row in numbered for name in reversed(row)}
        return dict(reversed(found.items()))


def check_headers(headers: Iterable[Any]) -> list[str]:
    """The column names. Raises TransferError for a missing or duplicate name."""
    names = [str(header).strip() if header is not None else "" for header in headers]
    if not any(names):
        raise TransferError("the first row must name the columns")
    if "" in names:
        raise TransferError(f"column {names.index('') + 1} has no name in the first row")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise TransferError(f"column {short(doubled)} appears twice")
    if len(names) > MAX_COLUMNS:
        raise TransferError(f"the file has more than {MAX_COLUMNS} columns")
    return names


def check_storable(value: Any, depth: int = MAX_DEPTH) -> None:
    """Raises ValueError for what a database cannot store: NUL, lone surrogates, infinity, deep
    nesting.
    """
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise ValueError("contains a character that cannot be stored")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("contains a number that JSON does not have")
    elif isinstance(value, list | dict):
        if not depth:
            raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        for part in parts:
            check_storable(part, depth - 1)


def short(text: object, most: int = 60) -> str:
    """A text from a file, shortened and printable, for a message."""
    shown = "".join(char if char.isprintable() else "?" for char in str(text)[: most + 1])
    return repr(shown if len(shown) <= most else f"{shown[:most]}…")
