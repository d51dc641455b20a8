"""The database's clock: one for all machines that write to it."""

from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import functions
from django.db.models.sql.compiler import SQLCompiler


class Now(functions.Now):
    """The time as Django writes it: in the site's own zone where USE_TZ is False.

    PostgreSQL knows the connection's zone. Django sets TZ, which SQLite heeds. MariaDB and MySQL have
    the server's own zone, where Django reads UTC.
    """

    def as_mysql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        clock = "UTC_TIMESTAMP" if settings.USE_TZ else "CURRENT_TIMESTAMP"
        return self.as_sql(compiler, connection, template=f"{clock}(6)", **extra)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        zone = "" if settings.USE_TZ else ", 'localtime'"
        template = f"STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW'{zone})"
        return self.as_sql(compiler, connection, template=template, **extra)
