"""A table as data: columns with units, cells with the shown text and the exact values behind it.

Pages (templates/pgperf/table.html), the terminal (cli/text_table.py), Markdown (markdown_table.py)
and files (reports/csv_files.py) print these tables and format no number of their own. Times are in
µs here and in files; people read those of a column in the unit that fits the longest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.utils.translation import gettext as _

from pgperf.core.time_units import MICROSECONDS, TimeUnit, unit_of
from pgperf.reports import number_format

Value = str | float | None
#: Rows that a page shows unasked.
_LONG = 24


@dataclass(frozen=True)
class Column:
    """`keys` name the values of its cells in files: two for an interval, none if files lack the
    column.

    `file_only`: only files have the column. `follows`: its times have the unit of the column before.
    """

    title: str
    unit: str = ""
    keys: tuple[str, ...] = ()
    numeric: bool = True
    file_only: bool = False
    follows: bool = False

    @property
    def head(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def is_time(self) -> bool:
        """Are its numbers µs?"""
        return self.unit == number_format.unit_title(MICROSECONDS)


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
    colour it by, lines below the text, and a test run that only pages offer. `form` writes numbers
    such as these; None where the text is no number that may be in µs. `figures`: those that a
    difference comes from, in µs.
    """

    text: str
    values: tuple[Value, ...] = ()
    mark: str = ""
    notes: tuple[Note, ...] = ()
    offer: Offer | None = None
    form: Callable[..., str] | None = None
    figures: tuple[float, ...] = ()

    def in_unit(self, unit: TimeUnit) -> "Cell":
        """The same with its times, which are in µs, in this unit."""
        if self.form is None:
            return self
        figures = [us / unit.us for us in self.figures]
        form = partial(self.form, figures=figures) if figures else self.form
        return replace(self, text=number_format.in_unit(unit, form, *self._numbers))

    @property
    def _numbers(self) -> list[float | None]:
        return [each for each in self.values if not isinstance(each, str)]

    @property
    def lines(self) -> list[str]:
        """The text and the notes, each a line of its own."""
        return [self.text, *map(str, self.notes)]

    @property
    def value(self) -> float | None:
        """The exact number behind the text; None for words, intervals and unknown numbers."""
        numbers = [
            each for each in self.values if isinstance(each, (float, int)) and not isinstance(each, bool)
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
        """As people read it: without the columns that only files have, and each time column in a unit
        that fits.
        """
        kept = [at for at, column in enumerate(self.columns) if not column.file_only]
        return (self if len(kept) == len(self.columns) else self._of(kept))._in_units()

    def _in_units(self) -> "Table":
        units = list(self._units())
        if set(units) <= {None, MICROSECONDS}:
            return self
        columns = tuple(map(_column_in, self.columns, units))
        return replace(self, columns=columns, rows=[tuple(map(_cell_in, row, units)) for row in self.rows])

    def _units(self) -> Iterator[TimeUnit | None]:
        """The unit of each column; None of one without times."""
        unit = None
        for at, column in enumerate(self.columns):
            if not column.follows:
                unit = self._unit(at) if column.is_time else None
            yield unit

    def _unit(self, first: int) -> TimeUnit:
        """That of a time column and those that follow it. An interval has no say in it."""
        after = (at for at in range(first + 1, len(self.columns)) if not self.columns[at].follows)
        of = range(first, next(after, len(self.columns)))
        return unit_of(row[at].value for row in self.rows for at in of if row[at].form)

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


def time_column(title: str, *keys: str, follows: bool = False) -> Column:
    """A column of times in µs; `follows` one with which people compare it, or whose parts it has."""
    return Column(title, number_format.unit_title(MICROSECONDS), keys, follows=follows)


def interval_column(*keys: str) -> Column:
    """The 95 % interval of the column before it."""
    return Column(_("95 % interval"), keys=keys, follows=True)


def file_columns(keys: Iterable[str]) -> tuple[Column, ...]:
    """Columns that only files have, headed by their keys."""
    return tuple(Column(key, keys=(key,), file_only=True) for key in keys)


def words(text: str, *values: Value, notes: tuple[Note, ...] = ()) -> Cell:
    return Cell(str(text), values, notes=notes)


def number(value: float | None) -> Cell:
    return Cell(number_format.number(value), (value,), _mark(value), form=number_format.number)


def at_least(value: float | None) -> Cell:
    """A lower bound."""
    return Cell(number_format.at_least(value), (value,), _mark(value), form=number_format.at_least)


def exact(value: Value) -> Cell:
    """The value as it is, for files."""
    return Cell("" if value is None else str(value), (value,))


def count(value: int | None) -> Cell:
    return Cell(number_format.whole(value), (value,), _mark(value))


def signed(value: float | None, *figures: float | None) -> Cell:
    """A difference, with its sign. `figures`: those that it comes from, whose decimals it has."""
    known = _known(figures)
    text = number_format.signed(value, figures=known)
    return Cell(text, (value,), _mark(value), form=number_format.signed, figures=known)


def ratio(value: float | None) -> Cell:
    return Cell(number_format.ratio(value), (value,), _mark(value))


def percent(share: float | None) -> Cell:
    """A share of 1 as a percentage."""
    return Cell(number_format.percent(share), (share,), _mark(share))


def interval(low: float | None, high: float | None, *figures: float | None) -> Cell:
    """`figures`: those that an interval of a difference comes from."""
    known = _known(figures)
    text = number_format.interval(low, high, figures=known)
    return Cell(text, (low, high), form=number_format.interval, figures=known)


def ratio_interval(low: float | None, high: float | None) -> Cell:
    return Cell(number_format.ratio_interval(low, high), (low, high))


def _known(figures: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(each for each in figures if each is not None)


def _column_in(column: Column, unit: TimeUnit | None) -> Column:
    return replace(column, unit=number_format.unit_title(unit)) if unit and column.is_time else column


def _cell_in(cell: Cell, unit: TimeUnit | None) -> Cell:
    return cell.in_unit(unit) if unit else cell


def _mark(value: float | None) -> str:
    return "unknown" if value is None else ""
