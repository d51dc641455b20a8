"""Advice on server settings on a Database's page: from stored settings, for those who may see them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pgperf.models import Benchmark, Database, Run
from pgperf.reports.server_advice import notes
from pgperf.runner.server import control_connection
from pgperf.tuning.advice import advise, compared
from pgperf.tuning.records import Server
from tests import factories
from tests.admin.users import staff_client

HERE = {**factories.ENVIRONMENT, "machine": {**factories.ENVIRONMENT["machine"], "has_server": True}}


def make_run(environment: dict[str, Any] = HERE, **fields: Any) -> Run:
    run = factories.make_results(factories.make_run(**fields))
    Run.objects.filter(pk=run.pk).update(
        environment=environment, finished_at=timezone.now() - timedelta(days=3), status=Run.Status.DONE
    )
    return run


@pytest.fixture
def database(db: None) -> Database:
    return make_run().database


def page(client: Client, database: Database, **query: str) -> str:
    answer = client.get(reverse("admin:pgperf_database_change", args=[database.pk]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_advice_comes_from_the_latest_run_with_its_age(admin_page: Client, database: Database) -> None:
    text = page(admin_page, database)
    assert "stored these settings 3\xa0days ago" in text
    assert "23.5GB" not in text  # sizes are whole
    assert "24064MB of memory, CPUs: 2" in text
    assert "6016MB" in text  # a quarter of it
    assert "ALTER SYSTEM SET shared_buffers = &#x27;6016MB&#x27;;  -- needs a restart" in text


def test_the_help_of_a_field_is_shown_and_named_by_it(admin_page: Client, database: Database) -> None:
    text = page(admin_page, database)
    assert '<div class="help" id="id_memory_helptext">16GB, for example.</div>' in text
    assert 'aria-describedby="id_memory_helptext"' in text


def test_no_page_connects_to_the_server(
    admin_page: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a page connected to a measured server")

    monkeypatch.setattr(control_connection.ControlConnection, "__init__", refuse)
    assert "Statements to copy" in page(admin_page, database)


def test_settings_of_a_role_are_named(admin_page: Client, db: None) -> None:
    environment = {**HERE, "setting_sources": {"shared_buffers": "command line", "work_mem": "user"}}
    text = page(admin_page, make_run(environment).database)
    assert "work_mem: the present value comes from ALTER ROLE of pgperf&#x27;s login" in text
    assert "shared_buffers: the present value comes from the command line of the server" in text
    assert "ALTER SYSTEM SET shared_buffers" not in text


def test_a_setting_of_the_command_line_that_is_as_advised_is_not_named(admin_page: Client, db: None) -> None:
    text = page(admin_page, make_run({**HERE, "setting_sources": {"huge_pages": "command line"}}).database)
    assert "the present value comes from" not in text


@pytest.mark.parametrize(("cpus", "shown"), [({"cpus": 64}, 64), ({}, 2)])
def test_the_server_has_the_cpus_of_the_host_and_not_the_worker_s(
    admin_page: Client, db: None, cpus: dict[str, int], shown: int
) -> None:
    """Those of the worker are what older runs know."""
    machine = {**factories.ENVIRONMENT["machine"], "has_server": True, "processors": 2}
    text = page(admin_page, make_run({**factories.ENVIRONMENT, "machine": machine | cpus}).database)
    assert f"CPUs: {shown}," in text


def test_settings_that_no_statement_changes_are_not_as_advised() -> None:
    server = Server(memory_kb=16 << 20, version=18.0)
    sources = {each.name: "command line" for each in advise(server)}
    found = compared(server, {}, sources)
    assert not any("as advised" in each or "Copy" in each for each in notes(server, found))


@pytest.mark.parametrize("needs", ["archives", "replicates"])
def test_what_is_left_out_has_its_reason_and_no_statement(admin_page: Client, db: None, needs: str) -> None:
    stored = {**HERE, "replicates": True}
    if needs == "archives":
        stored = {**HERE, "server": {**HERE["server"], "archive_mode": "on"}}
    text = page(admin_page, make_run(stored).database, profile="desktop")
    assert "left out: the server archives" in text or "left out: replication is in use" in text
    assert "SET wal_level" not in text
    assert "SET max_wal_senders" not in text


def test_options_change_the_advice(admin_page: Client, database: Database) -> None:
    text = page(admin_page, database, memory="16GB", cpus="8", profile="dw", storage="hdd", connections="50")
    assert "profile dw: data warehouse, 16GB of memory, CPUs: 8, storage hard disk" in text
    assert "SET max_connections = &#x27;50&#x27;" in text
    assert "SET default_statistics_target = &#x27;500&#x27;" in text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"memory": "lots"}, "memory: &#x27;lots&#x27; is no size"),
        ({"memory": "<script>"}, "memory: &#x27;&lt;script&gt;&#x27; is no size"),
        ({"memory": ""}, "This field is required"),
        ({"cpus": "-1"}, "cpus: -1 is not allowed"),
        ({"cpus": "x"}, "Enter a whole number"),
        ({"connections": "1"}, "connections: 1 is not allowed"),
        ({"profile": "fast"}, "Select a valid choice"),
        ({"storage": "\0"}, "Null characters are not allowed|Select a valid choice"),
    ],
)
def test_bad_options_are_answered(
    admin_page: Client, database: Database, query: dict[str, str], message: str
) -> None:
    text = page(admin_page, database, **query)
    assert any(each in text for each in message.split("|"))
    assert "ALTER SYSTEM" not in text


def test_of_a_server_elsewhere_memory_is_asked_for(admin_page: Client) -> None:
    there = {**HERE, "machine": {**HERE["machine"], "has_server": False}, "server_host": {"processors": 16}}
    database = make_run(there).database
    assert "ALTER SYSTEM" not in page(admin_page, database)
    text = page(admin_page, database, memory="64GB")
    assert "64GB of memory, CPUs: 16" in text


@pytest.mark.parametrize(
    "environment",
    [{}, {"server": None}, {"server": []}, {"server": {"server_version": None}}, {"server": {"jit": "on"}}],
)
def test_without_stored_settings_the_page_says_so(admin_page: Client, environment: dict[str, Any]) -> None:
    text = page(admin_page, make_run(environment).database)
    assert "The settings of this server are unknown" in text
    assert '<form method="get" action="#server-settings"' not in text


@pytest.mark.parametrize("environment", [{}, {"server": None}, {"server": {"server_version": None}}])
def test_a_later_run_without_settings_hides_none(
    admin_page: Client, database: Database, environment: dict[str, Any]
) -> None:
    make_run(environment)
    assert "stored these settings 3\xa0days ago" in page(admin_page, database)


def test_a_new_database_has_no_advice(admin_page: Client, db: None) -> None:
    assert "Server settings" not in admin_page.get(reverse("admin:pgperf_database_add")).content.decode()


def test_runs_of_other_databases_and_failed_runs_tell_nothing(admin_page: Client, database: Database) -> None:
    other = factories.make_database("other")
    assert "are unknown" in page(admin_page, other)
    Run.objects.update(status=Run.Status.FAILED)
    assert "are unknown" in page(admin_page, database)


class TestPermissions:
    def test_viewers_of_database_and_run_see_it(
        self, client_of: Callable[[str], Client], database: Database
    ) -> None:
        assert "ALTER SYSTEM" in page(client_of("viewer"), database)

    def test_without_the_permission_to_view_runs_there_is_no_advice(self, database: Database) -> None:
        text = page(staff_client("reader", "view_database"), database)
        assert "Server settings" not in text
        assert "4MB" not in text

    def test_a_run_that_is_hidden_tells_nothing(
        self, client_of: Callable[[str], Client], database: Database
    ) -> None:
        Benchmark.objects.get(name="orm-overhead").groups.add(Group.objects.create(name="others"))
        text = page(client_of("viewer"), database)
        assert "are unknown" in text
        assert "6016MB" not in text

    def test_it_is_hidden_with_its_database(
        self, client_of: Callable[[str], Client], database: Database
    ) -> None:
        database.groups.add(Group.objects.create(name="others"))
        answer = client_of("viewer").get(reverse("admin:pgperf_database_change", args=[database.pk]))
        assert answer.status_code == 302
        assert b"6016MB" not in answer.content
