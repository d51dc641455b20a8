"""Imports a table: saves all rows, or none and reports every problem."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import tablib
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import DataError, IntegrityError, OperationalError, models
from django.utils.translation import gettext as _
from import_export.results import RowResult

from pgperf.core.exceptions import PgperfError
from pgperf.transfer.cells import Reading
from pgperf.transfer.resources import ABSENT, DefinitionResource
from pgperf.transfer.table import ImportTable, clipped, short

_UNKNOWN_SHOWN = 20


class Problem(NamedTuple):
    """A reason why nothing was imported.

    `row` is a number of ImportTable.numbers, None for the whole file; `field` is the column.
    """

    row: int | None
    field: str
    message: str


class RowChange(NamedTuple):
    """A row that the import adds or changes, its changed columns, and its changed addresses."""

    row: models.Model
    new: bool
    fields: list[str]
    address_changes: list[str]


@dataclass
class ImportOutcome:
    """The changes and the number of unchanged rows; or problems, and then nothing was saved."""

    changes: list[RowChange] = field(default_factory=list)
    same: int = 0
    problems: list[Problem] = field(default_factory=list)


def import_table(resource: DefinitionResource, table: ImportTable, *, dry_run: bool = False) -> ImportOutcome:
    """Import in one transaction. A dry run or a problem rolls everything back."""
    resource.read_older_columns(table)
    unknown = _unknown_columns(resource, table)
    if unknown:
        return ImportOutcome(problems=unknown)
    names = list(table.columns())
    data = tablib.Dataset(headers=names)
    for row in table.rows:
        data.append([row.get(name, ABSENT) for name in names])
    result = resource.import_data(
        data,
        dry_run=dry_run,
        use_transactions=True,
        rollback_on_validation_errors=True,
        numbers=table.numbers,
        reading=Reading(table.flat, resource.visible),
    )
    problems = _problems(result, table.numbers)
    return ImportOutcome(problems=problems) if problems else _outcome(resource, result)


def _unknown_columns(resource: DefinitionResource, table: ImportTable) -> list[Problem]:
    known = [column.column_name for column in resource.fields.values()]
    columns = table.columns()
    if "name" not in columns:
        return [Problem(None, "name", _("This column is required: it identifies the definition."))]
    message = _("There is no such column. Use one of %s.") % ", ".join(known)
    unknown = ((name, number) for name, number in columns.items() if name not in known)
    return [
        Problem(None if table.flat else number, short(name), message)
        for name, number in islice(unknown, _UNKNOWN_SHOWN)
    ]


def _outcome(resource: DefinitionResource, result: Any) -> ImportOutcome:
    outcome = ImportOutcome()
    for position, row in enumerate(result.rows, 1):
        if row.import_type == RowResult.IMPORT_TYPE_SKIP:
            outcome.same += 1
        else:
            new = row.import_type == RowResult.IMPORT_TYPE_NEW
            outcome.changes.append(
                RowChange(row.instance, new, resource.changed[position], resource.address_changes[position])
            )
    return outcome


def _problems(result: Any, numbers: list[int]) -> list[Problem]:
    found = [Problem(None, "", _why(error.error)) for error in result.base_errors]
    for row in result.invalid_rows:
        for name, messages in row.error_dict.items():
            column = "" if name == NON_FIELD_ERRORS else name
            found += [Problem(numbers[row.number - 1], column, clipped(message)) for message in messages]
    for row in result.error_rows:
        found += [Problem(numbers[row.number - 1], "", _why(error.error)) for error in row.errors]
    return sorted(found, key=lambda problem: problem.row or 0)


def _why(error: Exception) -> str:
    """A message for an unexpected error, without values of the file."""
    if isinstance(error, PgperfError):
        return str(error)
    if isinstance(error, IntegrityError):
        return _("Another user saved the same row at the same time. Try again.")
    if isinstance(error, OperationalError):
        return _("The site's database is locked or does not answer. Try again.")
    if isinstance(error, DataError):
        return _("The database rejects a value of this row.")
    return _("The row cannot be read (%s).") % type(error).__name__
