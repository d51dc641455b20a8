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
    quote = connection.ops.quote_name
    names = [quote(name) for name in tables(connection)]
    one_by_one = connection.vendor == "sqlite"  # its DROP TABLE takes one table
    drops = names if one_by_one else [", ".join(names)] if names else []
    migrated = [f"DELETE FROM {quote('django_migrations')} WHERE app = '{APP}';"]
    return [
        *(f"DROP TABLE {each};" for each in drops),
        *(migrated if MigrationRecorder(connection).has_table() else []),
    ]


def tables(connection: BaseDatabaseWrapper) -> list[str]:
    """The names of pgperf's tables that are there."""
    there = set(connection.introspection.table_names())
    models = apps.get_app_config(APP).get_models(include_auto_created=True)
    return sorted(model._meta.db_table for model in models if model._meta.db_table in there)
