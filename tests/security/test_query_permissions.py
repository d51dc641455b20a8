"""The form, the import, the start page, saved runs and the worker ask for the permissions of a query
without code.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from pgperf.core import records
from pgperf.models import Benchmark, Run, Target, Workload
from pgperf.runs import clone
from pgperf.worker import execution
from tests.factories import make_benchmark, make_database, make_run
from tests.runner.builders import definition

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]
DEFINER = (
    "pgperf.view_workload", "pgperf.add_workload", "pgperf.change_workload", "pgperf.import_workload",
    "pgperf.view_benchmark", "pgperf.add_benchmark", "pgperf.view_run", "pgperf.start_run",
)  # fmt: skip
#: Queries of books.Book in each of their parts, and the model that they pass.
QUERIES: list[tuple[dict[str, Any], str]] = [
    ({"fetch": "count"}, "books.book"),
    ({"fetch": "exists", "lookup": {"author__name__startswith": "A"}}, "books.author"),
    ({"fetch": "count", "lookup": {"publisher__books__author": 1}}, "books.publisher"),
    ({"fetch": "list", "ordering": ["publisher__city"]}, "books.publisher"),
    ({"fetch": "values_list", "values": ["author__name"]}, "books.author"),
    ({"fetch": "list", "select_related": ["author"]}, "books.author"),
    ({"fetch": "first", "prefetch_related": ["publisher__books__author"]}, "books.publisher"),
]
#: Queries that are refused to everyone, and what the answer names.
SECRETS: list[tuple[dict[str, Any], str]] = [
    (
        {"model": "auth.User", "fetch": "count", "lookup": {"password__startswith": "md5$"}},
        "auth.User.password",
    ),
    ({"model": "auth.User", "fetch": "list"}, "password"),
    (
        {"model": "admin.LogEntry", "fetch": "count", "lookup": {"user__password__lt": "n"}},
        "auth.User.password",
    ),
    ({"model": "sessions.Session", "fetch": "count", "lookup": {"pk__startswith": "a"}}, "sessions.Session"),
    ({"model": "pgperf.Run", "fetch": "count", "lookup": {"benchmark_name": "a"}}, "pgperf.Run"),
]

Place = Callable[[User, dict[str, Any]], str]


def user_with(*permissions: str, superuser: bool = False) -> User:
    user = User.objects.create_user(uuid.uuid4().hex[:20], is_staff=True, is_superuser=superuser)
    for name in permissions:
        app, _dot, codename = name.partition(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return user


def viewer(*lacking: str) -> User:
    models = {"books.book", "books.author", "books.publisher"} - set(lacking)
    return user_with(*DEFINER, *(name.replace(".", ".view_") for name in models))


def fields(query: dict[str, Any]) -> dict[str, Any]:
    return {"name": "mine", "title": "Mine", "model": "books.Book", "fetch": "list", **query}


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def by_form(user: User, query: dict[str, Any]) -> str:
    """The errors of the form; "" if the workload was saved."""
    words = {
        name: ", ".join(query.get(name, ()))
        for name in ("select_related", "prefetch_related", "ordering", "values")
    }
    empty = {
        "sql": "",
        "orm": "",
        "fixture": "",
        "other_sql": "",
        "other_orm": "",
        "limit": "0",
        "method": "GET",
    }
    lists = {"args": "[]", "other_args": "[]", "lookup": json.dumps(query.get("lookup", {}))}
    data = {**fields(query), **empty, **lists, **words}
    response = client_of(user).post(reverse("admin:pgperf_workload_add"), data)
    if response.status_code == 302:
        return ""
    return " ".join(str(each) for each in response.context["adminform"].form.errors.values())


def by_import(user: User, query: dict[str, Any]) -> str:
    file = SimpleUploadedFile("x.json", json.dumps([fields(query)]).encode())
    response = client_of(user).post(reverse("admin:pgperf_workload_import"), {"import_file": file})
    return "" if response.status_code == 302 else str(response.context["problems"])


def benchmark_of(query: dict[str, Any]) -> Benchmark:
    return make_benchmark("asks", workloads=[Workload.objects.create(**fields(query))])


def by_start_page(user: User, query: dict[str, Any]) -> str:
    data = {"database": make_database().pk, "length": "quick", "token": uuid.uuid4().hex}
    page = reverse("admin:pgperf_benchmark_run", args=[benchmark_of(query).pk])
    response = client_of(user).post(page, data)
    return "" if response.status_code == 302 else str(response.context["form"].errors)


def by_worker(user: User, query: dict[str, Any]) -> str:
    """The error of a run that was queued while the user had the permissions."""
    database = make_database()
    Target.objects.filter(route="tcp").update(route="here")
    frozen = definition(blocks=1, workloads=(work(query),)).to_json()
    run = make_run(Run.Status.QUEUED, database=database, busy_key=None, definition=frozen, requested_by=user)
    return execution.perform(run.pk, "w@h").error


def by_saved_run(user: User, query: dict[str, Any]) -> str:
    run = make_run(definition=replace(definition(), workloads=(work(query),)).to_json())
    try:
        clone.from_run(run, Workload.objects.all(), user)
    except Exception as error:
        return str(error)
    return ""


def work(query: dict[str, Any]) -> records.WorkloadDefinition:
    row = Workload(**fields(query))
    return records.WorkloadDefinition("mine", "", query=row.query)


PLACES = [by_form, by_import, by_start_page, by_worker, by_saved_run]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("query", "model"), QUERIES)
def test_refused_without_the_permission_to_view_a_model_that_it_passes(
    place: Place, query: dict[str, Any], model: str
) -> None:
    app, name = model.split(".")
    assert f"({app}.view_{name})" in place(viewer(model), query)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("query", [query for query, _model in QUERIES])
def test_accepted_with_the_permissions(place: Place, query: dict[str, Any]) -> None:
    said = place(viewer(), query)
    assert "permission" not in said
    assert "view_" not in said
    if place is not by_worker and place is not by_saved_run:
        assert said == ""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("query", "named"), SECRETS)
def test_secrets_are_refused_to_superusers_too(place: Place, query: dict[str, Any], named: str) -> None:
    assert named in place(user_with(superuser=True), query)


@pytest.mark.parametrize(("query", "named"), SECRETS)
def test_secrets_are_refused_on_the_command_line(query: dict[str, Any], named: str) -> None:
    make_database()
    benchmark_of(query)
    with pytest.raises(CommandError, match=named):
        call_command("pgperf", "run", "asks", "--database", "demo", "--quick")


def test_the_command_line_asks_for_no_permission() -> None:
    make_database()
    benchmark_of({"fetch": "count"})
    with pytest.raises(CommandError) as caught:
        call_command("pgperf", "run", "asks", "--database", "demo", "--quick", "--layers", "fake")
    assert "view_" not in str(caught.value)


def test_an_unchanged_row_of_an_import_needs_no_permission() -> None:
    Workload.objects.create(**fields({"fetch": "count"}))
    assert by_import(viewer("books.book"), {"fetch": "count"}) == ""
