"""A table as data: what a page shows in each cell, and the exact value behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgperf.reports import number_format


@dataclass(frozen=True)
class Cell:
    """What is shown, the exact value behind it (null: not a number), and a word to colour it by."""

    text: str
    value: float | None = None
    mark: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table with row headers in its first column. `unit` stands in the caption."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    name: str = ""

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Each column's title, and whether it holds numbers."""
        first = self.rows[0] if self.rows else ()
        return [
            (title, index < len(first) and first[index].numeric) for index, title in enumerate(self.columns)
        ]


def head(text: str) -> Cell:
    return Cell(str(text), numeric=False)


def words(text: str, *, numeric: bool = True) -> Cell:
    return Cell(text, numeric=numeric)


def number(value: float | None) -> Cell:
    return Cell(number_format.number(value), value, "" if value is not None else "unknown")


def count(value: int) -> Cell:
    return Cell(number_format.whole(value), value)
