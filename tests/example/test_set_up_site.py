"""`set_up_site`, called once and twice."""

from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model

from example.books.management.commands.set_up_site import create_admin, create_targets
from example.stack.postgres import READER, TRUSTED
from pgperf.access import credentials
from pgperf.models import Database, Target

pytestmark = pytest.mark.django_db


def test_the_admin_can_log_in_with_the_latest_password() -> None:
    for password in ("first", "second"):
        create_admin("admin", password)
    assert authenticate(username="admin", password="first") is None
    user = authenticate(username="admin", password="second")
    assert user is not None
    assert user.is_superuser
    assert get_user_model().objects.count() == 1


def test_the_demo_has_a_valid_target_for_each_route(stack: dict[str, str]) -> None:
    create_targets(stack)
    database = Database.objects.get(name="demo")
    database.full_clean()
    for target in database.targets.all():
        target.full_clean()
    addresses = {target.route: (target.host, str(target.port)) for target in database.targets.all()}
    assert addresses == {
        "socket": (stack["PGPERF_DB_SOCKET"], stack["PGPERF_DB_PORT"]),
        "tcp": ("127.0.0.1", stack["PGPERF_DB_PORT"]),
        "tcp_trust": ("127.0.0.1", stack["PGPERF_DB_PORT"]),
        "pgbouncer": ("127.0.0.1", stack["PGPERF_PGBOUNCER_PORT"]),
        "pgbouncer_trust": ("127.0.0.1", stack["PGPERF_PGBOUNCER_TRUST_PORT"]),
        "pgbouncer_tls": ("127.0.0.1", stack["PGPERF_PGBOUNCER_PORT"]),
        "pgbouncer_transaction": ("127.0.0.1", stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"]),
        "distance_05ms": ("127.0.0.1", stack["PGPERF_DISTANCE_05MS_PORT"]),
        "distance_45ms": ("127.0.0.1", stack["PGPERF_DISTANCE_45MS_PORT"]),
    }


def test_every_route_of_the_demo_resolves(stack: dict[str, str]) -> None:
    database = create_targets(stack)
    routes = credentials.resolve(database, [target.route for target in database.targets.all()])
    others = {"pgbouncer_transaction": READER, "tcp_trust": TRUSTED, "pgbouncer_trust": TRUSTED}
    assert {name: route.user for name, route in routes.items()} == {
        **dict.fromkeys(routes, stack["PGPERF_DB_USER"]), **others,
    }  # fmt: skip
    assert Path(routes["pgbouncer_tls"].sslrootcert).exists()


def test_changed_ports_are_updated(stack: dict[str, str]) -> None:
    create_targets(stack)
    create_targets({**stack, "PGPERF_DB_PORT": "5999"})
    assert Target.objects.get(route="tcp").port == 5999
    assert Target.objects.count() == 9
