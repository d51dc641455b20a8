"""A table becomes rows: all of them, or none and every reason why."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import tablib
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import DataError, IntegrityError, models
from django.utils.translation import gettext as _
from import_export.results import RowResult

from pgperf.core.exceptions import PgperfError
from pgperf.transfer.cells import Reading
from pgperf.transfer.resources import ABSENT, DefinitionResource
from pgperf.transfer.table import Table, short

_UNKNOWN_SHOWN = 20


class Problem(NamedTuple):
    """Why nothing was imported. `row` counts as Table.numbers; None: the whole file. `field`: its column."""

    row: int | None
    field: str
    message: str


class Change(NamedTuple):
    """One row that was made or changed (or would be), which of its columns, and which logins now go elsewhere."""

    row: models.Model
    new: bool
    fields: list[str]
    moves: list[str]


@dataclass
class Outcome:
    """Either problems, and then nothing was saved, or what was done."""

    changes: list[Change] = field(default_factory=list)
    same: int = 0
    problems: list[Problem] = field(default_factory=list)


def bring_in(resource: DefinitionResource, table: Table, *, dry_run: bool = False) -> Outcome:
    """Import in one transaction; a dry run takes everything back. Nothing is saved where there are problems."""
    unknown = _unknown_columns(resource, table)
    if unknown:
        return Outcome(problems=unknown)
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
        reading=Reading(table.flat, resource.seen),
    )
    problems = _problems(result, table.numbers)
    return Outcome(problems=problems) if problems else _outcome(resource, result)


def _unknown_columns(resource: DefinitionResource, table: Table) -> list[Problem]:
    known = [column.column_name for column in resource.fields.values()]
    columns = table.columns()
    if "name" not in columns:
        return [Problem(None, "name", _("This column is needed: it says which definition a row is."))]
    message = _("There is no such column; choose from %s.") % ", ".join(known)
    unknown = ((name, number) for name, number in columns.items() if name not in known)
    return [
        Problem(None if table.flat else number, short(name), message)
        for name, number in islice(unknown, _UNKNOWN_SHOWN)
    ]


def _outcome(resource: DefinitionResource, result: Any) -> Outcome:
    outcome = Outcome()
    for position, row in enumerate(result.rows, 1):
        if row.import_type == RowResult.IMPORT_TYPE_SKIP:
            outcome.same += 1
        else:
            new = row.import_type == RowResult.IMPORT_TYPE_NEW
            outcome.changes.append(
                Change(row.instance, new, resource.changed[position], resource.moved[position])
            )
    return outcome


def _problems(result: Any, numbers: list[int]) -> list[Problem]:
    found = [Problem(None, "", _why(error.error)) for error in result.base_errors]
    for row in result.invalid_rows:
        for name, messages in row.error_dict.items():
            column = "" if name == NON_FIELD_ERRORS else name
            found += [Problem(numbers[row.number - 1], column, message) for message in messages]
    for row in result.error_rows:
        found += [Problem(numbers[row.number - 1], "", _why(error.error)) for error in row.errors]
    return sorted(found, key=lambda problem: problem.row or 0)


def _why(error: Exception) -> str:
    """A sentence for what the rules did not foresee; values stay out of it."""
    if isinstance(error, PgperfError):
        return str(error)
    if isinstance(error, IntegrityError):
        return _("Somebody else saved it at the same moment: try again.")
    if isinstance(error, DataError):
        return _("Holds a value that the database does not take.")
    return _("Cannot be read (%s).") % type(error).__name__
