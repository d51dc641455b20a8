"""The database's clock: one for all machines that write to it."""

from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import functions
from django.db.models.sql.compiler import SQLCompiler


class Now(functions.Now):
    """The time as Django writes it: in the site's own zone where USE_TZ is False.

    SQLite alone has to be told; the other databases know the connection's zone. Django sets TZ,
    which SQLite heeds.
    """

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        zone = "" if settings.USE_TZ else ", 'localtime'"
        template = f"STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW'{zone})"
        return self.as_sql(compiler, connection, template=template, **extra)
