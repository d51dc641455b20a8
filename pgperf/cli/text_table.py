"""Tables for a terminal: aligned columns, words to the left, numbers to the right."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from pgperf.core import printable
from pgperf.reports.table import Cell, Table

#: Characters of a cell's line.
_WIDEST = 80
#: No-break spaces are for pages: `printable` takes them for unprintable.
_PLAIN = str.maketrans({"\u00a0": " ", "\u202f": " "})


def text(table: Table) -> str:
    """The caption and the rows with their heads; "" for a table without rows."""
    if not table.rows:
        return ""
    table = table.shown()
    lines = [table.heads, *(line for row in table.rows for line in _lines(row))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = [at == 0 or not column.numeric for at, column in enumerate(table.columns)]
    return "\n".join([table.caption, *(_line(line, widths, left) for line in lines)])


def _lines(row: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    """A row over as many lines as its tallest cell has: long words are wrapped, notes stand below."""
    cells = ([part for line in cell.lines for part in _wrapped(line)] for cell in row)
    return zip_longest(*cells, fillvalue="")


def report(parts: Iterable[str | Table]) -> str:
    """Lines and tables, each with an empty line before the next."""
    shown = (part.translate(_PLAIN) if isinstance(part, str) else text(part) for part in parts)
    return "\n\n".join(filter(None, shown))


def names(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _wrapped(line: str) -> list[str]:
    shown = printable.lines(line.translate(_PLAIN))
    return wrap(shown, _WIDEST, break_long_words=False, break_on_hyphens=False) or [""]


def _line(line: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    aligned = (
        cell.ljust(width) if to_left else cell.rjust(width)
        for cell, width, to_left in zip(line, widths, left, strict=True)
    )
    return "  ".join(aligned).rstrip()
