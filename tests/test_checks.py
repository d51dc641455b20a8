"""Each system check: silent when all is well, with an id and a hint when not."""

import sys
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.core.checks import CheckMessage, run_checks
from django.db import ConnectionHandler
from django.urls import clear_url_caches

from pgperf import checks
from pgperf.conf import get_settings
from pgperf.install.launch import C_CLIENT
from pgperf.models import Run
from tests.factories import make_run, make_worker


@pytest.fixture
def built(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings under which no check has anything to say."""
    client = tmp_path / C_CLIENT
    client.write_text("#!/bin/sh\n")
    client.chmod(0o755)
    settings.PGPERF = {"BUILD_DIR": tmp_path}
    monkeypatch.setattr(checks.finders, "find", lambda name: str(client))
    return client


def messages() -> list[CheckMessage]:
    return run_checks(tags=[checks.TAG], databases=[])


def only() -> CheckMessage:
    (message,) = messages()
    assert message.hint
    return message


def test_all_is_well(built: Path) -> None:
    assert messages() == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("QUEUES", "x", "is not a setting of pgperf; choose from QUEUE, BUILD_DIR, "),
        ("MAX_CLIENTS", "64", "must be int, not str."),
        ("MAX_CLIENTS", True, "must be int, not bool."),
        ("MAX_CLIENTS", -1, "must be 0 or more, not -1."),
        ("PIN_SERVER", 1, "must be bool, not int."),
        ("QUEUE", " ", "must name a queue, not be empty."),
        ("ALLOWED_FUNCTIONS", [1], "must be a list of strings."),
        ("ENVIRONMENTS", {1: "python"}, "must have strings as its keys."),
        ("INTERPRETERS", {"psycopg": 1}, "must have strings as its values."),
    ],
)
def test_settings(settings: Any, name: str, value: Any, said: str) -> None:
    settings.PGPERF = {name: value}
    assert only().id == "pgperf.E001"
    assert f"PGPERF[{name!r}] {said}" in only().msg


@pytest.mark.parametrize(("given", "kind"), [(None, "NoneType"), (["QUEUE"], "list"), ("QUEUE", "str")])
def test_settings_that_are_no_dict(settings: Any, given: Any, kind: str) -> None:
    settings.PGPERF = given
    assert only().id == "pgperf.E001"
    assert only().msg == f"PGPERF must be a dict, not {kind}."


def test_settings_may_be_paths_and_whole_numbers(settings: Any, tmp_path: Path) -> None:
    settings.PGPERF = {"BUILD_DIR": tmp_path, "HEARTBEAT_SECONDS": 5}
    build_dir = get_settings().BUILD_DIR
    assert build_dir == str(tmp_path)


def test_import_export(built: Path, settings: Any) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "import_export"]
    assert only().id == "pgperf.E002"


def test_secrets_directory(built: Path, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": str(built)}
    assert only().id == "pgperf.E003"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"python": "python3"}, "E011"),
        ({"python": sys.executable, "variables": {"DB_PASSWORD": "x"}}, "E011"),
        ({"python": "/no/such/bin/python"}, "E012"),
    ],
)
def test_environments(built: Path, settings: Any, entry: dict[str, Any], code: str) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"good": sys.executable}}
    assert messages() == []
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"good": sys.executable, "old": entry}}
    assert only().id == f"pgperf.{code}"
    assert "'old'" in only().msg


def test_c_client(built: Path) -> None:
    built.unlink()
    assert only().id == "pgperf.W001"


@pytest.mark.parametrize(
    ("name", "value", "code"), [("CC", "no-such-cc", "W006"), ("PG_CONFIG", "/no/such/pg_config", "W007")]
)
def test_what_the_c_client_is_built_with(
    built: Path, settings: Any, name: str, value: str, code: str
) -> None:
    settings.PGPERF = {**settings.PGPERF, "CC": "true", "PG_CONFIG": "true", name: value}
    assert messages() == [], "of no interest while the client is there"
    built.unlink()
    first, second = messages()
    assert (first.id, second.id) == ("pgperf.W001", f"pgperf.{code}")
    assert value in second.msg
    assert "apt install" in str(second.hint)


@pytest.mark.parametrize(
    ("layer", "python", "said"),
    [
        ("asyncpg2", sys.executable, "asyncpg2"),
        ("libpq", sys.executable, "libpq"),
        ("django_orm", sys.executable, "django_orm"),
        ("psycopg", "/no/such/python", "/no/such/python"),
    ],
)
def test_interpreters(built: Path, settings: Any, layer: str, python: str, said: str) -> None:
    settings.PGPERF = {**settings.PGPERF, "INTERPRETERS": {layer: python}}
    assert only().id == "pgperf.E004"
    assert said in only().msg


def test_an_interpreter_that_is_there(built: Path, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "INTERPRETERS": {"psycopg": sys.executable}}
    assert messages() == []


@pytest.mark.parametrize("name", ["next_price", ".next_price", "shop.", "pg_catalog.pg_notify"])
def test_allowed_functions(built: Path, settings: Any, name: str) -> None:
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_FUNCTIONS": ["shop.next_price"]}
    assert messages() == []
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_FUNCTIONS": [name]}
    assert only().id == "pgperf.E006"
    assert name in only().msg


def test_refused_models_and_fields(built: Path, settings: Any) -> None:
    more = {"REFUSED_MODELS": ["books.book", "auth.*"], "REFUSED_FIELDS": ["books.Book.isbn"]}
    settings.PGPERF = {**settings.PGPERF, **more}
    assert messages() == []


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("REFUSED_MODELS", "books.Bock"),
        ("REFUSED_MODELS", "book"),
        ("REFUSED_MODELS", "shop.*"),
        ("REFUSED_FIELDS", "books.Book"),
        ("REFUSED_FIELDS", "books.Book.price"),
        ("REFUSED_FIELDS", "books.*.isbn"),
    ],
)
def test_refused_names_that_do_not_exist(built: Path, settings: Any, setting: str, name: str) -> None:
    settings.PGPERF = {**settings.PGPERF, setting: [name]}
    assert only().id == "pgperf.E007"
    assert name in only().msg


def test_drivers(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: None)
    assert only().id == "pgperf.W002"


def test_broker(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.current_app.conf, "broker_url", None)
    assert only().id == "pgperf.W003"


def test_celery_application(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "current_app", Celery("default", set_as_current=False))
    assert only().id == "pgperf.W004"


@pytest.mark.parametrize(
    ("urls", "warned"),
    [
        (
            "from celery import Celery\nfrom pgperf import checks\n"
            "checks.current_app = Celery('site', broker='redis://127.0.0.1:1/0', set_as_current=False)\n",
            False,
        ),
        ("raise RuntimeError\n", True),
    ],
)
def test_celery_application_that_the_urls_import(
    built: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, urls: str, warned: bool
) -> None:
    """Django runs its checks in no order, so that of the URLs may come later."""
    (tmp_path / "late_urls.py").write_text(f"{urls}urlpatterns = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "late_urls", raising=False)
    monkeypatch.setattr(checks, "current_app", Celery("default", set_as_current=False))
    settings.ROOT_URLCONF = "late_urls"
    assert ("pgperf.W004" in [message.id for message in checks.check_celery()]) is warned


@pytest.fixture
def celery(monkeypatch: pytest.MonkeyPatch) -> Celery:
    """An application for one test only."""
    app = Celery("site", broker="redis://127.0.0.1:1/0", set_as_current=False)
    monkeypatch.setattr(checks, "current_app", app)
    return app


@pytest.mark.parametrize(
    ("pool", "fits"), [("gevent", False), ("eventlet", False), ("prefork", True), ("solo", True)]
)
def test_pool(built: Path, celery: Celery, pool: str, fits: bool) -> None:
    celery.conf.worker_pool = pool
    assert [message.id for message in messages()] == ([] if fits else ["pgperf.W012"])


def test_queue_that_may_not_be_made(built: Path, celery: Celery) -> None:
    celery.conf.task_create_missing_queues = False
    assert only().id == "pgperf.W013"


@pytest.mark.parametrize(
    ("engine", "options", "warned"),
    [
        ("postgresql", {}, []),
        ("sqlite3", {}, ["pgperf.W015"]),
        ("sqlite3", {"timeout": 20, "transaction_mode": "DEFERRED"}, ["pgperf.W015"]),
        ("sqlite3", {"transaction_mode": "immediate"}, []),
        ("sqlite3", {"transaction_mode": "EXCLUSIVE"}, []),
    ],
)
def test_sqlite_transactions(
    built: Path, monkeypatch: pytest.MonkeyPatch, engine: str, options: dict[str, str], warned: list[str]
) -> None:
    own = {"ENGINE": f"django.db.backends.{engine}", "NAME": "site", "OPTIONS": options}
    monkeypatch.setattr(checks, "connections", ConnectionHandler({"default": own}))
    assert [message.id for message in messages()] == warned


def test_static_files(built: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.finders, "find", lambda name: None)
    assert only().id == "pgperf.W009"
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if not app.endswith("staticfiles")]
    assert only().id == "pgperf.W008"


@pytest.fixture
def fresh_urls() -> Any:
    clear_url_caches()
    yield
    clear_url_caches()


def test_no_admin_site_shows_it(built: Path, settings: Any, fresh_urls: None) -> None:
    settings.ROOT_URLCONF = "tests.no_urls"
    assert only().id == "pgperf.W011"


def test_an_admin_site_of_its_own_will_do(built: Path, settings: Any, fresh_urls: None) -> None:
    settings.ROOT_URLCONF = "tests.admin.custom_site"
    assert messages() == []


def test_no_admin(built: Path, settings: Any) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "django.contrib.admin"]
    assert only().id == "pgperf.W010"


@pytest.mark.django_db
def test_a_queue_without_a_worker(built: Path) -> None:
    def told() -> list[str | None]:
        return [message.id for message in run_checks(tags=[checks.TAG], databases=["default"])]

    assert told() == [], "no run waits"
    run = make_run(Run.Status.QUEUED)
    assert messages() == [], "no database, no query"
    assert told() == ["pgperf.W005"]
    make_worker()
    assert told() == []
    assert run.status == Run.Status.QUEUED
