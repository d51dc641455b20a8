"""The table that every file format is read into, and the limits of all formats."""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from pgperf.core.exceptions import TransferError

#: The readers check these limits before any work that grows with the file, and their work is
#: linear in it. So a file costs a web process less than 2 s of CPU time and 200 MB.
MAX_BYTES = 2 * 1024 * 1024
MAX_ROWS = 150
MAX_COLUMNS = 100
#: Lines of a spreadsheet, the empty ones included.
MAX_LINES = 10_000
#: Nesting of lists and objects in a value; a definition needs three levels.
MAX_DEPTH = 10
#: Values in one list or object, with those inside.
MAX_VALUES = 10_000
#: Digits of a number. Python needs quadratic time for long ones.
MAX_DIGITS = 1_000

_Item = TypeVar("_Item", bound=Hashable)

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


def check_headers(headers: Sequence[Any]) -> list[str]:
    """The column names. Raises TransferError for too many, a missing or a duplicate name."""
    if len(headers) > MAX_COLUMNS:
        raise TransferError(f"the file has more than {MAX_COLUMNS} columns")
    names = [str(header).strip() if header is not None else "" for header in headers]
    if not any(names):
        raise TransferError("the first row must name the columns")
    if "" in names:
        raise TransferError(f"column {names.index('') + 1} has no name in the first row")
    doubled = first_duplicate(names)
    if doubled is not None:
        raise TransferError(f"column {short(doubled)} appears twice")
    return names


def first_duplicate(items: Iterable[_Item]) -> _Item | None:
    """The first item that equals an earlier one, or None."""
    seen: set[_Item] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def check_storable(value: Any) -> None:
    """Raises ValueError for too many or too deeply nested values, and for what a database cannot
    store: NUL, lone surrogates, infinity.
    """
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        if count > MAX_VALUES:
            raise ValueError(f"has more than {MAX_VALUES:,} values")
        for part in level:
            _check_scalar(part)
        level = [inner for part in level if isinstance(part, list | dict) for inner in _inner(part)]
        if not level:
            return
    raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")


def _check_scalar(value: Any) -> None:
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise ValueError("contains a character that cannot be stored")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("contains a number that JSON does not have")


def _inner(value: list[Any] | dict[Any, Any]) -> Iterable[Any]:
    return chain(value, value.values()) if isinstance(value, dict) else value


def clipped(message: str, most: int = 300) -> str:
    """A message that may quote a file, shortened."""
    return message if len(message) <= most else f"{message[:most]}…"


def short(text: object, most: int = 60) -> str:
    """A text from a file, shortened and printable, for a message."""
    shown = "".join(char if char.isprintable() else "?" for char in str(text)[: most + 1])
    return repr(shown if len(shown) <= most else f"{shown[:most]}…")
