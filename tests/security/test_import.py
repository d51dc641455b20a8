"""The import refuses hostile values and requires the permissions of the form."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from pgperf.models import Database, Target, Workload
from tests import factories
from tests.admin.test_matrix import ROLES
from tests.db.test_validators import HOSTILE, HOSTS

pytestmark = pytest.mark.django_db


@pytest.fixture
def bring() -> Callable[..., str]:
    """Imports rows as a superuser or with the permissions of a role; returns the page."""

    def post(model: str, rows: list[dict[str, Any]], role: str = "") -> str:
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=True, is_superuser=not role)
        wanted = Permission.objects.filter(content_type__app_label="pgperf", codename__in=ROLES.get(role, ()))
        user.user_permissions.set(wanted)
        client = Client()
        client.force_login(user)
        upload = io.BytesIO(json.dumps(rows).encode())
        upload.name = "definitions.json"
        response = client.post(reverse(f"admin:pgperf_{model}_import"), {"import_file": upload}, follow=True)
        assert response.status_code in (200, 403)
        return response.content.decode()

    return post


def row(**changes: Any) -> dict[str, Any]:
    target = {
        "route": "tcp",
        "host": "db.example",
        "port": 5432,
        "sslmode": "disable",
        "pooler": "",
        "enabled": True,
    }
    given = {name: changes.pop(name) for name in list(changes) if name in target}
    base = {"name": "new", "dbname": "app", "credential": "alias:default", "targets": [{**target, **given}]}
    return {**base, **changes}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("host", host) for host in (*HOSTILE, *HOSTS)],
        *[("dbname", name) for name in HOSTILE],
        *[("user", name) for name in HOSTILE if name],
        *[("port", port) for port in (0, 65536, -1, "5432,1", 1.5, None, [5432])],
        *[("sslmode", mode) for mode in ("none", "require options=-cx=y")],
        *[
            ("credential", reference)
            for reference in ("hunter2", "env:HOME", "file:../x", "postgres://u:p@h/d")
        ],
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_hostile_targets_are_refused(bring: Callable[..., str], field: str, value: Any) -> None:
    page = bring("database", [row(name="good"), row(**{field: value})])
    assert not Database.objects.exists()
    assert not Target.objects.exists()
    assert "hunter2" not in page


def test_a_valid_target_is_imported(bring: Callable[..., str]) -> None:
    bring("database", [row()])
    assert Target.objects.get().host == "db.example"


@pytest.mark.parametrize(
    "sql", ["SELECT 1; COMMIT", "\\! id", "COPY t TO PROGRAM 'id'", "SELECT lo_creat(-1)"]
)
@pytest.mark.parametrize("field", ["sql", "other_sql"])
def test_hostile_sql_is_refused(bring: Callable[..., str], field: str, sql: str) -> None:
    before = Workload.objects.count()
    bring("workload", [{"name": "new", "title": "New", "sql": "SELECT 1", field: sql}])
    assert Workload.objects.count() == before


@pytest.mark.parametrize(
    "names",
    [
        ["default", "/bin/sh"],
        ["../old"],
        ["gone"],
        ["broken"],
        [{"python": "/bin/sh"}],
        {"old": "/bin/sh"},
        "old",
        [],
    ],
)
def test_a_file_names_configured_environments_only(
    bring: Callable[..., str], settings: Any, names: Any
) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python", "broken": "sh"}}
    benchmark = factories.make_benchmark("mine")
    bring("benchmark", [{"name": "mine", "environments": names}])
    benchmark.refresh_from_db()
    assert benchmark.environments == ["default"]
    bring("benchmark", [{"name": "mine", "environments": ["default", "old"]}])
    benchmark.refresh_from_db()
    assert benchmark.environments == ["default", "old"]


@pytest.mark.parametrize("role", ["viewer", "definer", "carrier", "database_editor"])
def test_an_address_change_by_import_requires_the_permission(bring: Callable[..., str], role: str) -> None:
    database = factories.make_database("demo")
    bring("database", [row(name="demo", host="evil.example")], role)
    assert not Target.objects.filter(database=database, host="evil.example").exists()
    bring("database", [row(name="demo", host="evil.example")], "target_admin")
    assert Target.objects.filter(database=database, host="evil.example").exists()
