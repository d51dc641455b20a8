"""Make the example site ready: `manage.py set_up_site`. Doing it twice changes nothing."""

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand

from example.books.measured import register_benchmarks
from example.books.shelves import fill_shelves
from pgperf.models import Database, Target


class Command(BaseCommand):
    help = (
        "Tables, static files, the admin's user, some books, pgperf's Database `demo` with a Target per route, and"
        " benchmarks of the site's own queries."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        create_admin(os.environ["PGPERF_ADMIN_USER"], os.environ["PGPERF_ADMIN_PASSWORD"])
        fill_shelves()
        register_benchmarks(register_targets(os.environ))


def create_admin(name: str, password: str) -> None:
    """The superuser with the stack's random password."""
    user, _ = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": True}
    )
    if not user.check_password(password):
        user.set_password(password)
        user.save()


def register_targets(env: Mapping[str, str]) -> Database:
    """The database `demo`: this site's own PostgreSQL, over each of its routes. Ports may change between starts."""
    database, _ = Database.objects.get_or_create(
        name="demo",
        defaults={
            "dbname": str(settings.DATABASES["default"]["NAME"]),
            "credential": "alias:default",
            "allow_fixtures": True,
            "notes": "The example site's own PostgreSQL.",
        },
    )
    port, pooler_port = int(env["PGPERF_DB_PORT"]), int(env["PGPERF_PGBOUNCER_PORT"])
    routes = {
        "socket": {"host": env["PGPERF_DB_SOCKET"], "port": port},
        "tcp": {"host": "127.0.0.1", "port": port},
        "pgbouncer": {"host": "127.0.0.1", "port": pooler_port, "pooler": Target.Pooler.SESSION},
    }
    for route, address in routes.items():
        values = {"sslmode": Target.SSLMode.DISABLE, **address}
        Target.objects.update_or_create(database=database, route=route, defaults=values)
    return database
