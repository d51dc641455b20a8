"""Tables from before the first release: how to recognise them, and the SQL that removes them.

The first release began with one new migration, which cannot upgrade them.
"""

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

APP = "pgperf"
#: The first migration of the versions that were never released.
UNRELEASED = (APP, "0001_initial")


def is_unreleased(connection: BaseDatabaseWrapper) -> bool:
    """Were pgperf's tables made by a version from before the first release? Raises DatabaseError."""
    return UNRELEASED in MigrationRecorder(connection).applied_migrations()


def removal(connection: BaseDatabaseWrapper) -> list[str]:
    """The statements that remove pgperf's tables and its rows of django_migrations.

    Results are lost with them.
    """
    quote, there = connection.ops.quote_name, set(connection.introspection.table_names())
    tables = [quote(name) for name in _tables() if name in there]
    one_by_one = connection.vendor == "sqlite"  # its DROP TABLE takes one table
    drops = tables if one_by_one else [", ".join(tables)] if tables else []
    return [
        *(f"DROP TABLE {names};" for names in drops),
        f"DELETE FROM {quote('django_migrations')} WHERE app = '{APP}';",
    ]


def _tables() -> list[str]:
    models = apps.get_app_config(APP).get_models(include_auto_created=True)
    return sorted(model._meta.db_table for model in models)
