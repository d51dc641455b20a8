"""E-mail about changes: to the chosen users, each of whom may see the run at that moment."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django
import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core import mail
from django.core.exceptions import FieldError
from django.core.mail.backends.locmem import EmailBackend
from django.db.models import QuerySet

from pgperf.models import ChangePoint, Run
from pgperf.runs import changes
from pgperf.worker import change_mail
from tests.histories import make_history

pytestmark = pytest.mark.django_db
NAMES = ("ann", "bob", "cy")


class Hanging(EmailBackend):
    """A mail server that does not answer."""

    released = threading.Event()

    def send_messages(self, messages: Any) -> int:
        self.released.wait()
        return 0


class Refusing(EmailBackend):
    """A mail server that refuses ann's address."""

    def send_messages(self, messages: Any) -> int:
        if "ann@example.com" in messages[0].to:
            raise ConnectionRefusedError("smtp says no")
        return super().send_messages(messages)


@pytest.fixture
def change(settings: Any) -> ChangePoint:
    settings.PGPERF = {**settings.PGPERF, "CHANGE_EMAILS": list(NAMES)}
    for name in NAMES:
        user = User.objects.create_user(name, email=f"{name}@example.com")
        user.user_permissions.add(Permission.objects.get(codename="view_run"))
    runs = make_history(24, lambda at: 10.0 if at < 18 else 22.0)
    return next(found[0] for run in runs if (found := changes.record(run)))


def use_backend(settings: Any, backend: str, **options: str) -> None:
    """By the setting that this Django has for it."""
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": options}}
    else:
        settings.EMAIL_BACKEND = backend
        for name, value in options.items():
            setattr(settings, f"EMAIL_{name.upper()}", value)


def send(change: ChangePoint) -> list[str]:
    """The addresses that get a message, in their order."""
    change_mail.send(Run.objects.get(pk=change.found_by), [change])
    return sorted(address for message in mail.outbox for address in message.recipients())


def test_each_chosen_user_gets_one_message_about_the_run(change: ChangePoint) -> None:
    User.objects.create_user("dee", email="dee@example.com", is_superuser=True)
    assert send(change) == [f"{name}@example.com" for name in NAMES]
    assert all(len(message.to) == 1 for message in mail.outbox)
    message = mail.outbox[0]
    assert message.subject == "pgperf: 1 change in orm-overhead on demo"
    assert f"12 µs slower since run {change.run_id}" in str(message.body)
    assert "pgperf history orm-overhead --database demo" in str(message.body)


def test_it_names_the_layers_that_changed_and_leads_to_the_page(change: ChangePoint, settings: Any) -> None:
    """The step's own change, which was found with the same run, is told once."""
    settings.PGPERF = {**settings.PGPERF, "SITE_URL": "https://ops.example.com/"}
    run = Run.objects.get(pk=change.found_by)
    change_mail.send(run, list(ChangePoint.objects.all()))
    message = mail.outbox[0]
    assert ChangePoint.objects.count() == 2
    assert message.subject == "pgperf: 1 change in orm-overhead on demo"
    lines = str(message.body).splitlines()
    assert lines[4:7] == [
        "  At the same run:",
        "  - psycopg 3 · socket over libpq (C) · socket: 12 µs slower (1.14 times before, 1.31 times now)",
        "  - this step explains +12 µs of +12 µs",
    ]
    query = f"database={run.database_id}&definition={run.definition_hash}"
    assert f"https://ops.example.com/admin/pgperf/benchmark/{run.benchmark_id}/runs/?{query}" in lines


def test_only_users_who_may_see_the_run_at_that_moment_get_one(change: ChangePoint) -> None:
    run = Run.objects.get(pk=change.found_by)
    assert run.benchmark
    group = Group.objects.create(name="insiders")
    run.benchmark.groups.add(group)
    User.objects.get(username="bob").groups.add(group)
    User.objects.get(username="cy").groups.add(group)
    User.objects.get(username="cy").user_permissions.clear()
    assert send(change) == ["bob@example.com"]


def test_a_change_that_begins_with_a_hidden_run_is_told_to_those_who_see_that_run(
    change: ChangePoint,
) -> None:
    Run.objects.filter(pk=change.run_id).update(restricted=True)
    change.refresh_from_db()
    assert change.run_id != change.found_by
    assert send(change) == []
    User.objects.filter(username="bob").update(is_superuser=True)
    assert send(change) == ["bob@example.com"]


@pytest.mark.parametrize("fields", [{"is_active": False}, {"email": ""}])
def test_inactive_users_and_those_without_an_address_get_none(
    change: ChangePoint, fields: dict[str, Any]
) -> None:
    User.objects.filter(username="ann").update(**fields)
    assert send(change) == ["bob@example.com", "cy@example.com"]


def test_the_address_is_in_the_field_that_the_user_model_names(
    change: ChangePoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(User, "EMAIL_FIELD", "last_name")
    User.objects.filter(username="bob").update(last_name="bob@work.example.com")
    assert send(change) == ["bob@work.example.com"]


def test_a_user_model_may_lack_the_column_is_active(
    change: ChangePoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(**lookups: Any) -> QuerySet[User]:
        if "is_active" in lookups:
            raise FieldError("Cannot resolve keyword 'is_active' into field")
        return User.objects.filter(**lookups)

    model = SimpleNamespace(USERNAME_FIELD="username", _default_manager=SimpleNamespace(filter=chosen))
    monkeypatch.setattr(change_mail, "get_user_model", lambda: model)
    assert send(change) == [f"{name}@example.com" for name in NAMES]


def test_it_tells_of_rows_that_a_replica_may_lack(change: ChangePoint, settings: Any) -> None:
    run, found = Run.objects.get(pk=change.found_by), ChangePoint.objects.get(pk=change.pk)
    settings.DATABASE_ROUTERS = ["tests.lost_replica.Router"]
    change_mail.send(run, [found])
    assert len(mail.outbox) == len(NAMES)


def test_without_the_setting_none_is_sent(change: ChangePoint, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "CHANGE_EMAILS": []}
    assert send(change) == []


def test_a_server_that_refuses_one_address_keeps_no_other_user_from_theirs(
    change: ChangePoint, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    use_backend(settings, f"{__name__}.{Refusing.__qualname__}")
    assert send(change) == ["bob@example.com", "cy@example.com"]
    assert "ConnectionRefusedError" in caplog.text


def test_a_server_that_does_not_answer_is_left_behind(
    change: ChangePoint, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.PGPERF = {**settings.PGPERF, "CHANGE_EMAILS": ["ann"]}  # so that the thread ends with it
    use_backend(settings, f"{__name__}.{Hanging.__qualname__}")
    monkeypatch.setattr(change_mail, "TIMEOUT_S", 0.05)
    try:
        assert send(change) == []
        assert "has not taken the e-mail" in caplog.text
    finally:
        Hanging.released.set()


def test_a_backend_that_does_not_exist_does_not_raise(change: ChangePoint, settings: Any) -> None:
    use_backend(settings, "no.such.Backend")
    assert send(change) == []


def test_a_message_reaches_a_file(change: ChangePoint, settings: Any, tmp_path: Path) -> None:
    use_backend(settings, "django.core.mail.backends.filebased.EmailBackend", file_path=str(tmp_path))
    send(change)
    texts = [path.read_text() for path in tmp_path.iterdir()]  # one for each backend, or one for several
    assert sum(text.count("Subject: pgperf: 1 change") for text in texts) == len(NAMES)
