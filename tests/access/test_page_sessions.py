"""The sessions of pages' users: made without a login, ended with their run."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client, override_settings
from django.utils import timezone

from pgperf.access import page_sessions
from pgperf.core.exceptions import InvalidDefinition, SessionNotFound
from pgperf.core.records import Definition, Page, WorkloadDefinition
from pgperf.models import Run
from tests import factories

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("reader", "page_users"),
]
DEFINITION = Definition(
    "test",
    (WorkloadDefinition("page", "", page=Page("/books/", user="reader")),),
    ("django_view",),
    ("tcp",),
)


@pytest.fixture
def page_users(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "PAGE_USERS": ["reader"], "MAX_RUN_SECONDS": 600}


@pytest.fixture
def reader() -> User:
    return User.objects.create_user("reader")


@pytest.fixture
def run() -> Run:
    database = factories.make_database(dbname=connection.settings_dict["NAME"])
    found: Run = factories.make_run(database=database)
    return found


def test_a_session_is_the_user_s_and_ends_with_the_run(run: Run, reader: User, client: Client) -> None:
    logins: list[Any] = []
    user_logged_in.connect(lambda **sent: logins.append(sent), weak=False, dispatch_uid="test")
    try:
        _sees_the_page(run, reader, client)
    finally:
        user_logged_in.disconnect(dispatch_uid="test")
    reader.refresh_from_db()
    assert (reader.last_login, logins) == (None, [])
    assert not Session.objects.exists()


def _sees_the_page(run: Run, reader: User, client: Client) -> None:
    with page_sessions.opened(run, DEFINITION) as definition:
        name, key = definition.workloads[0].cookie.split("=")
        client.cookies[name] = key
        assert client.get("/books/").wsgi_request.user == reader
        assert SessionStore(key).get_expiry_age() <= 600
    assert "sessionid" not in repr(definition)
    assert definition.to_json() == DEFINITION.to_json()


def test_a_site_that_saves_sessions_in_each_request_does_not_prolong_one(run: Run) -> None:
    """As SESSION_SAVE_EVERY_REQUEST does: a session ends MAX_RUN_SECONDS after its run began."""
    with page_sessions.opened(run, DEFINITION):
        (made,) = Session.objects.all()
        SessionStore(made.session_key).save()
        (saved,) = Session.objects.all()
    assert saved.expire_date == made.expire_date


class Permissions:
    """A backend that knows no account, as that of object permissions or of failed logins."""

    def authenticate(self, request: Any, **_: Any) -> None:
        """It logs nobody in."""


def test_a_backend_that_knows_no_account_is_passed_over(
    run: Run, reader: User, client: Client, settings: Any
) -> None:
    settings.AUTHENTICATION_BACKENDS = [
        f"{__name__}.Permissions", "django.contrib.auth.backends.ModelBackend",
    ]  # fmt: skip
    _sees_the_page(run, reader, client)
    settings.AUTHENTICATION_BACKENDS = settings.AUTHENTICATION_BACKENDS[:1]
    with pytest.raises(InvalidDefinition, match="no authentication backend of this site knows this user"):
        page_sessions.opened(run, DEFINITION).__enter__()


def test_reconcile_ends_the_sessions_of_a_lost_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    opened = page_sessions.opened(run, DEFINITION)
    opened.__enter__()
    call_command("pgperf", "reconcile")
    assert Session.objects.count() == 1
    Run.objects.filter(pk=run.pk).update(
        status=Run.Status.LOST,
        finished_at=timezone.now() - timedelta(seconds=60),
        definition=DEFINITION.to_json(),
    )
    call_command("pgperf", "reconcile")
    assert not Session.objects.exists()
    assert "Ended sessions of pages' users: 1." in capsys.readouterr().out


def test_a_store_that_fails_at_the_end_does_not_decide_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("the store restarts")

    with monkeypatch.context() as patched, page_sessions.opened(run, DEFINITION):
        patched.setattr(SessionStore, "delete", away)
    assert Session.objects.count() == 1
    Run.objects.filter(pk=run.pk).update(
        status=Run.Status.CANCELLED, finished_at=timezone.now(), definition=DEFINITION.to_json()
    )
    call_command("pgperf", "reconcile")
    assert not Session.objects.exists()
    assert "Ended sessions of pages' users: 1." in capsys.readouterr().out


class TestOnALoadHost:
    """It finds the session that the owner of its run has made."""

    def test_the_same_cookie_follows(self, run: Run) -> None:
        with page_sessions.opened(run, DEFINITION) as own:
            assert page_sessions.found(run, DEFINITION).workloads == own.workloads
            assert Session.objects.count() == 1

    def test_a_page_for_visitors_needs_none(self, run: Run) -> None:
        visited = replace(DEFINITION, workloads=(WorkloadDefinition("page", "", page=Page("/books/")),))
        assert page_sessions.found(run, visited) is visited

    @pytest.mark.parametrize(
        "differs",
        [
            pytest.param({"SECRET_KEY": "another"}, id="the key"),
            pytest.param({"SESSION_ENGINE": "django.contrib.sessions.backends.cache"}, id="the store"),
            pytest.param({"SESSION_ENGINE": page_sessions._IN_COOKIES}, id="cookies"),
        ],
    )
    def test_a_host_that_does_not_find_it_refuses(self, run: Run, differs: dict[str, str]) -> None:
        found = pytest.raises(SessionNotFound, match="made for reader: its SECRET_KEY, its SESSION_ENGINE or")
        with page_sessions.opened(run, DEFINITION), override_settings(**differs), found as refused:
            page_sessions.found(run, DEFINITION)
        assert len(f"load host a: {refused.value}") <= 300

    def test_that_of_an_earlier_attempt_or_of_another_user_is_not_it(self, run: Run) -> None:
        with page_sessions.opened(run, DEFINITION):
            run.attempt += 1
            with pytest.raises(SessionNotFound):
                page_sessions.found(run, DEFINITION)
            run.attempt -= 1
            store = SessionStore(page_sessions.key_of(run, "reader"))
            store[SESSION_KEY] = "4711"
            store.save()
            with pytest.raises(SessionNotFound):
                page_sessions.found(run, DEFINITION)

    def test_it_checks_what_the_owner_checks(self, run: Run) -> None:
        over_web = replace(DEFINITION, web_routes={"web": ""})
        assert run.database
        run.database.targets.create(route="web", url="http://site.example")
        with page_sessions.opened(run, DEFINITION):
            with pytest.raises(InvalidDefinition, match="loopback or TLS only"):
                page_sessions.found(run, over_web)
            User.objects.update(is_staff=True)
            with pytest.raises(InvalidDefinition, match="member of the staff"):
                page_sessions.found(run, DEFINITION)
            run.database.dbname = "another"
            with pytest.raises(InvalidDefinition, match="the site's own database"):
                page_sessions.found(run, DEFINITION)


@pytest.mark.parametrize(
    "fields", [{"dbname": "another"}, {"credential": "alias:replica"}, {"credential": "file:reader"}]
)
def test_no_session_is_made_for_another_database(run: Run, fields: dict[str, str]) -> None:
    for name, value in fields.items():
        setattr(run.database, name, value)
    with pytest.raises(InvalidDefinition, match=r"page_user: .* the site's own database"):
        page_sessions.opened(run, DEFINITION).__enter__()
    assert not Session.objects.exists()


@pytest.mark.parametrize("route", ["web", "web+5ms"])
@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://127.0.0.1:8000", False),
        ("http://[::1]:8000", False),
        ("http://localhost:8000", False),
        ("https://site.example", False),
        ("http://site.example", True),
        ("http://192.0.2.7:8000", True),
    ],
)
def test_a_cookie_leaves_this_host_by_tls_only(run: Run, url: str, refused: bool, route: str) -> None:
    assert run.database
    run.database.targets.create(route="web", url=url)
    expected = r"page_user: .* loopback or TLS only, and route web"
    with pytest.raises(InvalidDefinition, match=expected) if refused else nullcontext():
        page_sessions.check_way(run.database, [route])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_staff": True}, "member of the staff"),
        ({"is_active": False}, "not active"),
        ({"username": "renamed"}, "no user of that name"),
    ],
)
def test_a_user_who_may_not_be_used_gets_no_session(
    run: Run, reader: User, changes: dict[str, Any], reason: str
) -> None:
    User.objects.update(**changes)
    with pytest.raises(InvalidDefinition, match=f"page_user: .*{reason}"):
        page_sessions.opened(run, DEFINITION).__enter__()
    assert not Session.objects.exists()


@override_settings(SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies")
def test_sessions_in_cookies_are_refused_because_they_cannot_be_ended(run: Run) -> None:
    with pytest.raises(InvalidDefinition, match="keeps sessions in cookies"):
        page_sessions.opened(run, DEFINITION).__enter__()


def test_the_key_differs_from_run_to_run_and_from_attempt_to_attempt(run: Run) -> None:
    first = page_sessions.key_of(run, "reader")
    run.attempt += 1
    assert page_sessions.key_of(run, "reader") != first != page_sessions.key_of(run, "other")
