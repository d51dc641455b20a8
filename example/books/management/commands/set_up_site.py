"""`manage.py set_up_site` sets up the example site. A second call changes nothing."""

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection, transaction

from example.books.benchmarks import create_benchmarks
from example.books.sample_data import create_books
from example.stack.certificates import AUTHORITY
from example.stack.distance import DISTANCES
from example.stack.postgres import READER, TRUSTED
from example.stack.web_steps import STEPS, variable
from pgperf.db import first_release
from pgperf.models import Database, Target


class Command(BaseCommand):
    help = (
        "Sets up the site: tables, static files, an admin user, books, the pgperf database `demo` with a"
        " target for each route, and benchmarks of the site's own queries."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        remove_unreleased_tables()
        call_command("migrate", interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        create_admin(os.environ["PGPERF_ADMIN_USER"], os.environ["PGPERF_ADMIN_PASSWORD"])
        create_books()
        create_benchmarks(create_targets(os.environ))


def remove_unreleased_tables() -> None:
    """Drop the tables of a pgperf from before the first release, which `migrate` cannot upgrade."""
    if first_release.is_unreleased(connection):
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in first_release.removal(connection):
                cursor.execute(statement)


def create_admin(name: str, password: str) -> None:
    """Create the superuser, or set its password to the stack's."""
    user, _ = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": True}
    )
    if not user.check_password(password):
        user.set_password(password)
        user.save()


def create_targets(env: Mapping[str, str]) -> Database:
    """Create the database `demo`, the site's own PostgreSQL, and update its targets: ports may
    change.
    """
    database, _ = Database.objects.get_or_create(
        name="demo",
        defaults={
            "dbname": str(settings.DATABASES["default"]["NAME"]),
            "credential": "alias:default",
            "allow_fixtures": True,
            "notes": "The example site's own PostgreSQL.",
        },
    )
    for route, values in routes(env).items():
        defaults = {"sslmode": Target.SSLMode.DISABLE, "host": "127.0.0.1", **values}
        Target.objects.update_or_create(database=database, route=route, defaults=defaults)
    for route, values in web_routes(env).items():
        Target.objects.update_or_create(database=database, route=route, defaults=values)
    database.targets.filter(route__in=STEPS).exclude(route__in=web_routes(env)).update(enabled=False)
    return database


def web_routes(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The web steps that the stack serves, with the fields of their targets."""
    served = {name: step for name, step in STEPS.items() if variable(name) in env}
    return {
        name: {
            "url": env[variable(name)],
            "builds_on": step.builds_on if step.builds_on in served else "",
            "sslrootcert": AUTHORITY if step.tls else "",
            "enabled": True,
        }
        for name, step in served.items()
    }


def routes(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The routes of the stack, with the fields of their targets.

    The route with transaction pooling uses a read-only role: with such a pooler, session settings
    of one client would leak to the next. Those without a password use a role that may read nothing.
    """
    port, pooler = int(env["PGPERF_DB_PORT"]), int(env["PGPERF_PGBOUNCER_PORT"])
    session = {"port": pooler, "pooler": Target.Pooler.SESSION}
    trusted = {"user": TRUSTED, "credential": f"file:{TRUSTED}"}
    return {
        "socket": {"host": env["PGPERF_DB_SOCKET"], "port": port},
        "tcp": {"port": port},
        "tcp_trust": {"port": port, **trusted},
        "pgbouncer": session,
        "pgbouncer_trust": {**session, "port": int(env["PGPERF_PGBOUNCER_TRUST_PORT"]), **trusted},
        "pgbouncer_tls": {**session, "sslmode": Target.SSLMode.VERIFY_FULL, "sslrootcert": AUTHORITY},
        "pgbouncer_transaction": {
            "port": int(env["PGPERF_PGBOUNCER_TRANSACTION_PORT"]),
            "pooler": Target.Pooler.TRANSACTION,
            "user": READER,
            "credential": f"file:{READER}",
        },
        **{name: {"port": int(env[f"PGPERF_{name.upper()}_PORT"])} for name in DISTANCES},
    }
