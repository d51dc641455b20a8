"""A site's user model with no more than Django's admin needs: no PermissionsMixin."""

from typing import Any

import pytest
from django.contrib.auth.models import PermissionsMixin, User
from django.test import Client
from django.urls import reverse

from tests.admin.test_matrix import NOBODY, PAGES, Rows, rows  # noqa: F401


def _lacking(user: Any) -> Any:
    raise AttributeError


@pytest.fixture
def plain(db: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Logged in, with every permission, but without superusers, groups and `has_perms`."""
    client = Client()
    client.force_login(User.objects.create_user("ada", is_staff=True))
    monkeypatch.setattr(User, "is_superuser", property(_lacking, lambda user, value: None))
    monkeypatch.setattr(User, "groups", property(_lacking))
    monkeypatch.delattr(PermissionsMixin, "has_perms")
    monkeypatch.setattr(PermissionsMixin, "has_perm", lambda *_args: True)
    monkeypatch.setattr(PermissionsMixin, "has_module_perms", lambda *_args: True)
    return client


def test_a_plain_user_gets_every_page(plain: Client, rows: Rows) -> None:  # noqa: F811
    for row in (rows.benchmark, rows.benchmark.workloads[0], rows.database):
        row.groups.clear()
        type(row)._default_manager.update(restricted=False)
    plain.raise_request_exception = False
    shown = [name for name, page in PAGES.items() if page.get not in (None, NOBODY)]
    answers = {name: plain.get(rows.address(name)).status_code for name in shown}
    assert {name: status for name, status in answers.items() if status not in (200, 301, 302)} == {}


def test_a_plain_user_sees_the_dashboard(plain: Client) -> None:
    assert plain.get(reverse("admin:app_list", args=["pgperf"])).status_code == 200
