"""What an installation of pgperf has made in the site's databases, and its removal."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connections, router, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import QuerySet

from pgperf.core.printable import first_line
from pgperf.db import first_release
from pgperf.models import Run

APP = first_release.APP
ACTIVE = (Run.Status.QUEUED, Run.Status.RUNNING)


@dataclass(frozen=True)
class Traces:
    """What pgperf has left in the database of one alias of `DATABASES`."""

    alias: str
    tables: tuple[str, ...] = ()
    migrations: int = 0
    content_types: int = 0
    permissions: int = 0
    log_entries: int = 0
    #: Why it is not known; "" if it is.
    unreachable: str = ""

    @property
    def counted(self) -> list[str]:
        """How many there are of each kind, in words; none of a kind that is not there."""
        kinds = (
            (len(self.tables), "table", "tables"),
            (self.permissions, "permission", "permissions"),
            (self.content_types, "content type", "content types"),
            (self.log_entries, "entry in the admin's log", "entries in the admin's log"),
            (self.migrations, "row of django_migrations", "rows of django_migrations"),
        )
        return [f"{count} {one if count == 1 else many}" for count, one, many in kinds if count]


def active_runs() -> list[int]:
    """The ids of queued and running runs; none without pgperf's tables."""
    alias = router.db_for_read(Run)
    if Run._meta.db_table not in connections[alias].introspection.table_names():
        return []
    return list(
        Run.objects.using(alias).filter(status__in=ACTIVE).order_by("pk").values_list("pk", flat=True)
    )


def traces() -> Iterator[Traces]:
    """Of every alias that has some, and of those that cannot be reached."""
    for alias in filter(_has_database, connections):
        try:
            found = _traces(alias)
        except DatabaseError as error:
            found = Traces(alias, unreachable=first_line(error))
        if found.counted or found.unreachable:
            yield found


def _has_database(alias: str) -> bool:
    """Has it an engine? Django gives an empty entry of `DATABASES` a dummy one."""
    return bool(connections.databases[alias]["ENGINE"] != "django.db.backends.dummy")


def remove(alias: str) -> None:
    """Remove all traces in one transaction, where the database has such for DDL.

    A foreign key of another app to a table of pgperf stops it: nothing is dropped by CASCADE.
    Raises DatabaseError.
    """
    connection = connections[alias]
    with connection.constraint_checks_disabled(), transaction.atomic(using=alias):
        _log_entries(alias).delete()
        _of_app(alias, "contenttypes.ContentType", app_label=APP).delete()
        with connection.cursor() as cursor:
            for statement in first_release.removal(connection):
                cursor.execute(statement)


def _traces(alias: str) -> Traces:
    connection = connections[alias]
    recorder = MigrationRecorder(connection)
    return Traces(
        alias,
        tables=tuple(first_release.tables(connection)),
        migrations=recorder.migration_qs.filter(app=APP).count() if recorder.has_table() else 0,
        content_types=_of_app(alias, "contenttypes.ContentType", app_label=APP).count(),
        permissions=_of_app(alias, "auth.Permission", content_type__app_label=APP).count(),
        log_entries=_log_entries(alias).count(),
    )


def _log_entries(alias: str) -> QuerySet[Any]:
    return _of_app(alias, "admin.LogEntry", content_type__app_label=APP)


def _of_app(alias: str, label: str, **filters: str) -> QuerySet[Any]:
    """Rows of a model that the site may lack, or keep in another database."""
    app = label.partition(".")[0]
    if not apps.is_installed(f"django.contrib.{app}"):
        return Run.objects.none()
    model = apps.get_model(label)
    manager = model._default_manager.using(alias)
    if model._meta.db_table not in connections[alias].introspection.table_names():
        return manager.none()
    return manager.filter(**filters)
