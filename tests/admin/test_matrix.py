"""Every URL of ours x every role x every method. A URL without an entry here fails, so that none is forgotten."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from pgperf.models import Benchmark, Database, Run
from tests import factories
from tests.admin.conftest import VIEW

_DEFINE = [f"{verb}_{model}" for verb in ("add", "change", "delete") for model in ("benchmark", "workload")]
_CARRY = [f"{verb}_{model}" for verb in ("import", "export") for model in ("benchmark", "workload")]
_TARGETS = [f"{verb}_{model}" for verb in ("add", "change", "delete") for model in ("database", "target")]
EVERYTHING = "everything"

#: Role -> permissions. All are staff, and all but the outsider belong to the group of every row.
ROLES: dict[str, tuple[str, ...]] = {
    "staff": (),
    "viewer": (*VIEW, "view_target"),
    "runner": (*VIEW, "start_run"),
    "canceller": (*VIEW, "cancel_run"),
    "runner_without_view": ("start_run", "cancel_run", "export_run"),
    "exporter": (*VIEW, "export_run"),
    "keeper": (*VIEW, "change_run", "delete_run", "delete_worker"),
    "definer": (*VIEW, *_DEFINE),
    "carrier": (*VIEW, *_DEFINE, *_CARRY),
    "database_editor": (*VIEW, "view_target", *_TARGETS),
    "target_admin": (*VIEW, "view_target", *_TARGETS, "manage_targets", "import_database", "export_database"),
    "outsider": (EVERYTHING,),
    "superuser": (EVERYTHING,),
}
STRANGERS = ("anonymous", "customer")
#: No page accepts these methods.
STRANGE = ("PUT", "PATCH", "DELETE", "OPTIONS")
METHODS = ("GET", "HEAD", "POST", *STRANGE)
STAFF = frozenset(ROLES)
SEES = STAFF - {"staff", "runner_without_view"}
DEFINES = frozenset({"definer", "carrier", "outsider", "superuser"})
CARRIES = frozenset({"carrier", "outsider", "superuser"})
MANAGES = frozenset({"target_admin", "outsider", "superuser"})
RUNS = frozenset({"runner", "outsider", "superuser"})
CANCELS = frozenset({"canceller", "outsider", "superuser"})
EXPORTS = frozenset({"exporter", "outsider", "superuser"})
KEEPS = frozenset({"keeper", "outsider", "superuser"})
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Page:
    """The roles that get an answer, by method. None: the page does not accept the method.

    `row`: the page shows one row, which the outsider must not see. `reaches_method`: the roles that
    pass the permission checked before the method; a wrong method gives them 405, and others 403.
    """

    get: frozenset[str] | None
    post: frozenset[str] | None
    row: bool = False
    reaches_method: frozenset[str] = STAFF
    more: tuple[str, ...] = ()  # arguments after the row's number
    data: Callable[[], dict[str, Any]] = field(default=dict)


def _file() -> dict[str, Any]:
    upload = io.BytesIO(json.dumps([]).encode())
    upload.name = "definitions.json"
    return {"import_file": upload}


def _export() -> dict[str, Any]:
    return {"format": "json", "chosen": ""}


def _definitions(model: str, changes: frozenset[str], carries: frozenset[str]) -> dict[str, Page]:
    return {
        f"pgperf_{model}_changelist": Page(SEES, SEES),
        f"pgperf_{model}_add": Page(changes, changes),
        f"pgperf_{model}_history": Page(SEES, SEES, row=model != "workload"),
        f"pgperf_{model}_delete": Page(
            changes, changes, row=model != "workload", data=lambda: {"post": "yes"}
        ),
        f"pgperf_{model}_change": Page(SEES, changes, row=model != "workload"),
        f"pgperf_{model}:<path:object_id>/": Page(STAFF, STAFF),
        f"pgperf_{model}_import": Page(carries, carries, data=_file),
        f"pgperf_{model}_export": Page(carries, carries, data=_export),
    }


PAGES: dict[str, Page] = {
    **_definitions("benchmark", DEFINES, CARRIES),
    **_definitions("workload", DEFINES, CARRIES),
    **_definitions("database", MANAGES, MANAGES),
    "pgperf_benchmark_run": Page(RUNS, RUNS, row=True),
    "pgperf_benchmark_clone": Page(None, DEFINES, row=True, reaches_method=DEFINES),
    "pgperf_run_changelist": Page(SEES, SEES),
    "pgperf_run_add": Page(NOBODY, NOBODY),
    "pgperf_run_history": Page(SEES, SEES, row=True),
    "pgperf_run_delete": Page(KEEPS, KEEPS, row=True, data=lambda: {"post": "yes"}),
    "pgperf_run_change": Page(SEES, None, row=True),
    "pgperf_run:<path:object_id>/": Page(STAFF, STAFF),
    "pgperf_run_progress": Page(SEES, None, row=True),
    "pgperf_run_cancel": Page(None, CANCELS, row=True),
    "pgperf_run_download": Page(EXPORTS, None, row=True, more=("variants.csv",)),
    "pgperf_run_compare": Page(SEES, None, row=True),
    "pgperf_run_confirm": Page(RUNS, RUNS, row=True),
    "pgperf_run_notes": Page(None, KEEPS, row=True, reaches_method=KEEPS, data=lambda: {"notes": "seen"}),
    "pgperf_run_pin": Page(None, KEEPS, row=True, reaches_method=KEEPS, data=lambda: {"pinned": "1"}),
    "pgperf_run_benchmark": Page(None, DEFINES, row=True, reaches_method=SEES),
    "pgperf_worker_changelist": Page(SEES, SEES),
    "pgperf_worker_add": Page(NOBODY, NOBODY),
    "pgperf_worker_history": Page(SEES, SEES),
    "pgperf_worker_delete": Page(KEEPS, KEEPS, data=lambda: {"post": "yes"}),
    "pgperf_worker_change": Page(SEES, NOBODY),
    "pgperf_worker:<path:object_id>/": Page(STAFF, STAFF),
}


def _patterns() -> Iterator[tuple[str, URLPattern]]:
    """Every URL of the app as it hangs in the admin, by name, or by model and route where it has none."""
    for resolver in admin.site.urls[0]:
        prefix = str(resolver.pattern)
        if isinstance(resolver, URLResolver) and prefix.startswith("pgperf/"):
            model = prefix.split("/")[1]
            for pattern in resolver.url_patterns:
                yield pattern.name or f"pgperf_{model}:{pattern.pattern}", pattern


def test_every_url_has_an_entry_and_every_entry_a_url() -> None:
    assert {name for name, _pattern in _patterns()} == set(PAGES)


@dataclass
class World:
    """One row of each kind, for members of one group only."""

    group: Group
    benchmark: Benchmark
    database: Database
    run: Run
    worker: Any

    def row(self, name: str) -> Any:
        model = name.split("_")[1].split(":")[0]
        return self.benchmark.workload if model == "workload" else getattr(self, model)

    def is_there(self, name: str) -> bool:
        row = self.row(name)
        return bool(type(row)._default_manager.filter(pk=row.pk).exists())

    def address(self, name: str) -> str:
        model, row = name.split("_")[1].split(":")[0], self.row(name)
        if ":" in name:
            return reverse(f"admin:pgperf_{model}_changelist") + f"{row.pk}/"
        listed = name.endswith(("_changelist", "_add", "_import", "_export"))
        return reverse(f"admin:{name}", args=[] if listed else [row.pk, *PAGES[name].more])


@pytest.fixture
def world(db: None) -> World:
    worker = factories.make_worker()
    run = factories.make_results(factories.make_run())
    group = Group.objects.create(name="insiders")
    assert run.benchmark
    assert run.database
    run.benchmark.groups.add(group)
    run.database.groups.add(group)
    return World(group, run.benchmark, run.database, run, worker)


def log_in(role: str, world: World) -> Client:
    client = Client()
    if role == "anonymous":
        return client
    user = User.objects.create_user(role, is_staff=role != "customer", is_superuser=role == "superuser")
    permissions = Permission.objects.filter(content_type__app_label="pgperf")
    wanted = ROLES.get(role, ())
    if EVERYTHING not in wanted:
        permissions = permissions.filter(codename__in=wanted)
    if role != "superuser":
        user.user_permissions.set(permissions)
    if role != "outsider":
        user.groups.add(world.group)
    client.force_login(user)
    return client


def expected(page: Page, role: str, method: str) -> str:
    if method in STRANGE:
        return "method"
    allowed = page.post if method == "POST" else page.get
    if role in STRANGERS:
        return "login"
    if allowed is None:
        return "method" if role in page.reaches_method else "no"
    if role not in allowed:
        return "no"
    return "hidden" if page.row and role == "outsider" else "ok"


def outcome(response: HttpResponse, method: str) -> str:
    """What the answer comes to."""
    status, to = response.status_code, response.headers.get("Location", "")
    if status == 302 and "/login/" in to:
        return "login"
    if status == 404 or (status == 302 and to == reverse("admin:index")):
        return "hidden"
    return {200: "ok", 302: "ok", 403: "no", 405: "method"}.get(status, str(status))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("role", [*STRANGERS, *ROLES])
def test_each_role_gets_what_is_its_due(role: str, name: str, world: World) -> None:
    page, client = PAGES[name], log_in(role, world)
    for method in METHODS:
        if name == "pgperf_run_cancel":
            world.run.status = Run.Status.QUEUED
            world.run.save()
        data = page.data() if method == "POST" else {}
        response = (
            client.generic(method, world.address(name))
            if method in STRANGE
            else (getattr(client, method.lower())(world.address(name), data))
        )
        got, want = outcome(response, method), expected(page, role, method)
        if got == "hidden" and name.endswith("_delete") and not world.is_there(name):
            got = "ok"  # those who may only delete go to the index afterwards
        assert got == want, (method, got, want)


@pytest.mark.parametrize("name", PAGES)
def test_an_outsider_reads_no_name(name: str, world: World) -> None:
    """Not even in lists, filters, choices, or the notice that there is no such thing."""
    Benchmark.objects.filter(pk=world.benchmark.pk).update(name="hushed-benchmark", title="hushed title")
    Database.objects.filter(pk=world.database.pk).update(name="hushed-database")
    Run.objects.update(benchmark_name="hushed-benchmark", database_name="hushed-database")
    client = log_in("outsider", world)
    response = client.get(world.address(name), follow=True)
    text = b"".join(response.streaming_content) if response.streaming else response.content
    assert b"hushed" not in text


def test_an_outsider_starts_nothing(world: World) -> None:
    """Neither a hidden benchmark nor one of everybody's on a hidden database."""
    open_one = factories.make_benchmark("open")
    client = log_in("outsider", world)
    for benchmark in (world.benchmark, open_one):
        page = reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])
        data = {"database": world.database.pk, "length": "quick", "token": "a" * 32}
        assert client.post(page, data).status_code in (200, 404)
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    "action", ["export_variants_csv", "export_variants_xlsx", "export_comparisons_csv", "delete_selected"]
)
@pytest.mark.parametrize("role", ["viewer", "outsider"])
def test_the_list_acts_on_what_its_user_may(role: str, action: str, world: World) -> None:
    data = {"action": action, "_selected_action": [world.run.pk], "post": "yes"}
    response = log_in(role, world).post(reverse("admin:pgperf_run_changelist"), data)
    text = b"".join(response.streaming_content) if response.streaming else response.content
    assert b"orm-overhead" not in text or role == "viewer"
    assert b"ops_per_s" not in text or role == "outsider"
    assert Run.objects.filter(pk=world.run.pk).exists()


def test_a_run_does_not_become_everybodys_when_its_database_goes(world: World) -> None:
    page = reverse("admin:pgperf_run_change", args=[world.run.pk])
    world.benchmark.groups.clear()
    world.database.delete()
    assert log_in("outsider", world).get(page).status_code == 302
    assert log_in("viewer", world).get(page).status_code == 302
    assert log_in("superuser", world).get(page).status_code == 200


def test_without_groups_everybody_with_the_permission_sees_it(world: World) -> None:
    world.benchmark.groups.clear()
    world.database.groups.clear()
    page = reverse("admin:pgperf_run_change", args=[world.run.pk])
    assert log_in("outsider", world).get(page).status_code == 200
    assert log_in("staff", world).get(page).status_code == 403


def test_what_is_in_several_groups_is_listed_once(world: World) -> None:
    other = Group.objects.create(name="others")
    world.database.groups.add(other)
    viewer = log_in("viewer", world)
    User.objects.get(username="viewer").groups.add(other)
    text = viewer.get(reverse("admin:pgperf_database_changelist")).content.decode()
    assert text.count('class="field-name"') == 1


@pytest.mark.parametrize("field", ["host", "port", "sslmode", "dbname", "user", "credential"])
def test_where_a_password_goes_is_for_target_admins_and_is_noted(field: str, world: World) -> None:
    new = {"host": "db.example", "port": "6543", "sslmode": "require", "dbname": "else", "user": "other",
           "credential": "env:PGPERF_SECRET_X"}[field]  # fmt: skip
    page = reverse("admin:pgperf_database_change", args=[world.database.pk])
    assert log_in("database_editor", world).post(page, _form(world.database, field, new)).status_code == 403
    assert _stored(world.database, field) != new
    assert not LogEntry.objects.exists()
    old = _stored(world.database, field)
    assert log_in("target_admin", world).post(page, _form(world.database, field, new)).status_code == 302
    assert _stored(world.database, field) == new
    noted = LogEntry.objects.get().get_change_message()
    assert f"{old} → {new}" in noted


def _form(database: Database, changed: str, value: str) -> dict[str, Any]:
    targets = list(database.targets.all())
    data: dict[str, Any] = {
        name: getattr(database, name) for name in ("name", "dbname", "user", "credential", "notes")
    }
    data |= {"allow_fixtures": "on", "groups": [group.pk for group in database.groups.all()]}
    data |= {"targets-TOTAL_FORMS": len(targets), "targets-INITIAL_FORMS": len(targets)}
    for number, target in enumerate(targets):
        for name in ("id", "route", "host", "port", "sslmode", "pooler"):
            data[f"targets-{number}-{name}"] = getattr(target, name)
        data |= {f"targets-{number}-database": database.pk, f"targets-{number}-enabled": "on"}
    key = changed if changed in ("dbname", "user", "credential") else f"targets-1-{changed}"
    return {**data, key: value}


def _stored(database: Database, name: str) -> str:
    row = Database.objects.get(pk=database.pk)
    return str(getattr(row if name in ("dbname", "user", "credential") else row.targets.all()[1], name))
