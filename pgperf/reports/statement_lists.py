"""The statements of databases' servers, as workers stored them, for the page that offers them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from pgperf.access import permissions
from pgperf.core.time_units import TimeUnit, unit_of
from pgperf.models import Database, StatementList
from pgperf.reports import number_format
from pgperf.runs.statement_lists import WAIT_S

_DIGITS = 16


@dataclass(frozen=True)
class ShownStatement:
    """`key` finds it again; `calls` and `mean` (the server's time of one call) are texts."""

    key: str
    query: str
    calls: str
    mean: str


@dataclass(frozen=True)
class DatabaseStatements:
    """What is stored of a database's server. `asked_at`: an answer is awaited since then. `unit`: that
    of the statements' times.
    """

    database: Database
    asked_at: datetime | None = None
    read_at: datetime | None = None
    error: str = ""
    statements: tuple[ShownStatement, ...] = ()
    unit: str = ""


def stored(user: Any) -> list[DatabaseStatements]:
    """Of each database that the user may see, by name. Nothing without the permission to manage
    targets.
    """
    if not user.has_perm(permissions.MANAGE_TARGETS):
        return []
    databases = list(permissions.visible(Database.objects.order_by("name"), user))
    rows = {row.database_id: row for row in StatementList.objects.filter(database__in=databases)}
    return [_shown(each, rows.get(each.pk)) for each in databases]


def find(key: str, user: Any) -> str:
    """The statement of that key; "" if it is no longer stored, or not for that user."""
    every = (each for shown in stored(user) for each in shown.statements)
    return next((each.query for each in every if each.key == key), "")


def _shown(database: Database, row: StatementList | None) -> DatabaseStatements:
    if row is None:
        return DatabaseStatements(database)
    means_us = [_mean_us(each) for each in row.statements]
    unit = unit_of(means_us)
    told = zip(row.statements, means_us, strict=True)
    statements = tuple(_statement(database, each, mean_us, unit) for each, mean_us in told)
    symbol = number_format.unit_title(unit)
    if row.asked_at and timezone.now() - row.asked_at > timedelta(seconds=WAIT_S):
        return DatabaseStatements(
            database, None, row.read_at, _("No worker has answered; ask again."), statements, symbol
        )
    return DatabaseStatements(database, row.asked_at, row.read_at, row.error, statements, symbol)


def _mean_us(stored: Mapping[str, Any]) -> float | None:
    """The server's time of one call; None without calls."""
    calls = int(stored["calls"])
    return 1000 * float(stored["total_ms"]) / calls if calls else None


def _statement(
    database: Database, stored: Mapping[str, Any], mean_us: float | None, unit: TimeUnit
) -> ShownStatement:
    query, calls = str(stored["query"]), int(stored["calls"])
    digest = hashlib.sha256(query.encode()).hexdigest()[:_DIGITS]
    mean = number_format.in_unit(unit, number_format.number, mean_us) if mean_us is not None else ""
    return ShownStatement(f"{database.pk}-{digest}", query, number_format.whole(calls), mean)
