"""A table as data: columns with units, cells with the shown text and the exact values behind it.

Pages (templates/pgperf/table.html), the terminal (cli/text_table.py), Markdown (markdown_table.py)
and files (reports/csv_files.py) print these tables and format no number of their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from pgperf.reports import number_format

Value = str | float | None
#: Rows that a page shows unasked.
_LONG = 24


@dataclass(frozen=True)
class Column:
    """`keys` name the values of its cells in files: two for an interval, none if files lack the
    column.

    `file_only`: only files have the column.
    """

    title: str
    unit: str = ""
    keys: tuple[str, ...] = ()
    numeric: bool = True
    file_only: bool = False

    @property
    def head(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title


#: The mark of a note that limits what the figures show.
CAUTION = "caution"


@dataclass(frozen=True)
class Note:
    """A line below the text of a cell. `run` is the number of a run that it tells of, None without
    one.
    """

    text: str
    mark: str = ""
    run: int | None = None

    def __str__(self) -> str:
        if self.run is None:
            return self.text
        return _("Run %(number)s: %(text)s") % {"number": self.run, "text": self.text}


@dataclass(frozen=True)
class Offer:
    """A test run that pages offer in a cell: of the variant with this label, by this change."""

    label: str
    variant: str
    change: str


@dataclass(frozen=True)
class Cell:
    """The text that is shown, the values behind it (one for each key of the column), a word to
    colour it by, lines below the text, and a test run that only pages offer.
    """

    text: str
    values: tuple[Value, ...] = ()
    mark: str = ""
    notes: tuple[Note, ...] = ()
    offer: Offer | None = None

    @property
    def lines(self) -> list[str]:
        """The text and the notes, each a line of its own."""
        return [self.text, *map(str, self.notes)]

    @property
    def value(self) -> float | None:
        """The exact number behind the text; None for words, intervals and unknown numbers."""
        numbers = [
            each for each in self.values if isinstance(each, float | int) and not isinstance(each, bool)
        ]
        return numbers[0] if len(numbers) == 1 else None


@dataclass(frozen=True)
class Table:
    """Its first column heads the rows. `name` is a CSS class."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    name: str = ""

    @property
    def is_long(self) -> bool:
        """Do pages fold it?"""
        return len(self.rows) > _LONG

    def shown(self) -> "Table":
        """The table without the columns that only files have."""
        kept = [at for at, column in enumerate(self.columns) if not column.file_only]
        return self if len(kept) == len(self.columns) else self._of(kept)

    def without(self, title: str) -> "Table":
        """The table without the column of that title."""
        return self._of([at for at, column in enumerate(self.columns) if column.title != title])

    def _of(self, kept: Sequence[int]) -> "Table":
        rows = [tuple(row[at] for at in kept) for row in self.rows]
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(column.head for column in self.columns)


def text_column(title: str, *keys: str) -> Column:
    """A column of words."""
    return Column(title, keys=keys, numeric=False)


def interval_column(*keys: str) -> Column:
    """The 95 % interval of the column before it."""
    return Column(_("95 % interval"), keys=keys)


def file_columns(keys: Iterable[str]) -> tuple[Column, ...]:
    """Columns that only files have, headed by their keys."""
    return tuple(Column(key, keys=(key,), file_only=True) for key in keys)


def words(text: str, *values: Value, notes: tuple[Note, ...] = ()) -> Cell:
    return Cell(str(text), values, notes=notes)


def number(value: float | None) -> Cell:
    return Cell(number_format.number(value), (value,), _mark(value))


def exact(value: Value) -> Cell:
    """The value as it is, for files."""
    return Cell("" if value is None else str(value), (value,))


def count(value: int | None) -> Cell:
    return Cell(number_format.whole(value), (value,), _mark(value))


def signed(value: float | None) -> Cell:
    """A difference, with its sign."""
    return Cell(number_format.signed(value), (value,), _mark(value))


def ratio(value: float | None) -> Cell:
    return Cell(number_format.ratio(value), (value,), _mark(value))


def percent(share: float | None) -> Cell:
    """A share of 1 as a percentage."""
    return Cell(number_format.percent(share), (share,), _mark(share))


def interval(low: float | None, high: float | None) -> Cell:
    return Cell(number_format.interval(low, high), (low, high))


def ratio_interval(low: float | None, high: float | None) -> Cell:
    return Cell(number_format.ratio_interval(low, high), (low, high))


def _mark(value: float | None) -> str:
    return "unknown" if value is None else ""
