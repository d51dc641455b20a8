"""Every URL of pgperf x every role x every method. A URL without an entry fails."""

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

from pgperf.admin import downloads, several
from pgperf.core.exceptions import RunWaits
from pgperf.models import Benchmark, Database, Run, Schedule, Workload
from pgperf.runs import pause, state
from tests import factories
from tests.admin.conftest import VIEW
from tests.kept_rows import same_user, undone

_DEFINE = [f"{verb}_{model}" for verb in ("add", "change", "delete") for model in ("benchmark", "workload")]
_SCHEDULES = [f"{verb}_schedule" for verb in ("add", "change", "delete")]
_CARRY = [f"{verb}_{model}" for verb in ("import", "export") for model in ("benchmark", "workload")]
_TARGETS = [f"{verb}_{model}" for verb in ("add", "change", "delete") for model in ("database", "target")]
ALL_PERMISSIONS = "everything"

#: Role -> permissions. All are staff, and all but the outsider belong to the group of every row.
ROLES: dict[str, tuple[str, ...]] = {
    "staff": (),
    "viewer": (*VIEW, "view_target"),
    "runner": (*VIEW, "start_run"),
    "canceller": (*VIEW, "cancel_run"),
    "scheduler": (*VIEW, "start_run", *_SCHEDULES),
    "runner_without_view": ("start_run", "cancel_run", "export_run"),
    "exporter": (*VIEW, "export_run"),
    "notes_editor": (*VIEW, "change_run", "delete_run", "delete_worker"),
    "definer": (*VIEW, *_DEFINE, "delete_schedule"),
    "measurer": (*VIEW, *_DEFINE, "start_run", "delete_schedule"),
    "carrier": (*VIEW, *_DEFINE, *_CARRY, "delete_schedule"),
    "database_editor": (*VIEW, "view_target", *_TARGETS),
    "target_admin": (
        *VIEW,
        "view_target",
        *_TARGETS,
        "manage_targets",
        "import_database",
        "export_database",
        "delete_schedule",
    ),
    "outsider": (ALL_PERMISSIONS,),
    "superuser": (ALL_PERMISSIONS,),
}
NON_STAFF = ("anonymous", "customer")
#: No page accepts these methods.
OTHER_METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS")
METHODS = ("GET", "HEAD", "POST", *OTHER_METHODS)
STAFF = frozenset(ROLES)
VIEWS = STAFF - {"staff", "runner_without_view"}
DEFINES = frozenset({"definer", "measurer", "carrier", "outsider", "superuser"})
CARRIES = frozenset({"carrier", "outsider", "superuser"})
MANAGES = frozenset({"target_admin", "outsider", "superuser"})
ASKS = frozenset({"outsider", "superuser"})
MEASURES = frozenset({"measurer", "outsider", "superuser"})
RUNS = frozenset({"runner", "measurer", "scheduler", "outsider", "superuser"})
CANCELS = frozenset({"canceller", "outsider", "superuser"})
EXPORTS = frozenset({"exporter", "outsider", "superuser"})
CHANGES_RUNS = frozenset({"notes_editor", "outsider", "superuser"})
PAUSES = frozenset({"outsider", "superuser"})
SCHEDULES = frozenset({"scheduler", "outsider", "superuser"})
DELETES_SCHEDULES = SCHEDULES | {"definer", "measurer", "carrier", "target_admin"}
NOBODY: frozenset[str] = frozenset()
#: The ends of names of URLs without a row's number.
LISTED = (
    "_changelist", "_dashboard", "_add", "_import", "_export", "_estimate", "_measure", "_statements",
)  # fmt: skip


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
        f"pgperf_{model}_changelist": Page(VIEWS, VIEWS),
        f"pgperf_{model}_add": Page(changes, changes),
        f"pgperf_{model}_history": Page(VIEWS, VIEWS, row=True),
        f"pgperf_{model}_delete": Page(changes, changes, row=True, data=lambda: {"post": "yes"}),
        f"pgperf_{model}_change": Page(VIEWS, changes, row=True),
        f"pgperf_{model}:<path:object_id>/": Page(STAFF, STAFF),
        f"pgperf_{model}_import": Page(carries, carries, data=_file),
        f"pgperf_{model}_export": Page(carries, carries, data=_export),
    }


PAGES: dict[str, Page] = {
    **_definitions("benchmark", DEFINES, CARRIES),
    **_definitions("workload", DEFINES, CARRIES),
    **_definitions("database", MANAGES, MANAGES),
    "pgperf_benchmark_run": Page(RUNS, RUNS, row=True),
    "pgperf_benchmark_measure": Page(MEASURES, MEASURES, reaches_method=MEASURES),
    "pgperf_benchmark_statements": Page(
        None, ASKS, row=True, reaches_method=ASKS, data=lambda: {"database": Database.objects.get().pk}
    ),
    "pgperf_benchmark_estimate": Page(None, DEFINES, reaches_method=DEFINES),
    "pgperf_benchmark_clone": Page(None, DEFINES, row=True, reaches_method=DEFINES),
    "pgperf_benchmark_runs": Page(VIEWS, None, row=True),
    "pgperf_benchmark_runs_download": Page(EXPORTS, None, row=True, more=("history.csv",)),
    "pgperf_run_changelist": Page(VIEWS, VIEWS),
    "pgperf_run_dashboard": Page(VIEWS, None),
    "pgperf_run_add": Page(NOBODY, NOBODY),
    "pgperf_run_history": Page(VIEWS, VIEWS, row=True),
    "pgperf_run_delete": Page(CHANGES_RUNS, CHANGES_RUNS, row=True, data=lambda: {"post": "yes"}),
    "pgperf_run_change": Page(VIEWS, None, row=True),
    "pgperf_run:<path:object_id>/": Page(STAFF, STAFF),
    "pgperf_run_progress": Page(VIEWS, None, row=True),
    "pgperf_run_cancel": Page(None, CANCELS, row=True),
    "pgperf_run_download": Page(EXPORTS, None, row=True, more=("variants.csv",)),
    "pgperf_run_compare": Page(VIEWS, None, row=True),
    "pgperf_run_comparison": Page(VIEWS, None, row=True),
    "pgperf_run_comparison_file": Page(EXPORTS, None, row=True, more=("report.html",)),
    "pgperf_run_confirm": Page(RUNS, RUNS, row=True),
    "pgperf_run_notes": Page(
        None, CHANGES_RUNS, row=True, reaches_method=CHANGES_RUNS, data=lambda: {"notes": "seen"}
    ),
    "pgperf_run_pin": Page(
        None, CHANGES_RUNS, row=True, reaches_method=CHANGES_RUNS, data=lambda: {"pinned": "1"}
    ),
    "pgperf_run_benchmark": Page(None, DEFINES, row=True, reaches_method=VIEWS),
    "pgperf_schedule_changelist": Page(VIEWS, VIEWS),
    "pgperf_schedule_add": Page(SCHEDULES, SCHEDULES),
    "pgperf_schedule_history": Page(VIEWS, VIEWS, row=True),
    "pgperf_schedule_delete": Page(
        DELETES_SCHEDULES, DELETES_SCHEDULES, row=True, data=lambda: {"post": "yes"}
    ),
    "pgperf_schedule_change": Page(VIEWS, SCHEDULES, row=True),
    "pgperf_schedule:<path:object_id>/": Page(STAFF, STAFF),
    "pgperf_worker_changelist": Page(VIEWS, VIEWS),
    "pgperf_worker_add": Page(NOBODY, NOBODY),
    "pgperf_worker_history": Page(VIEWS, VIEWS),
    "pgperf_worker_delete": Page(CHANGES_RUNS, CHANGES_RUNS, data=lambda: {"post": "yes"}),
    "pgperf_worker_change": Page(VIEWS, NOBODY),
    "pgperf_worker:<path:object_id>/": Page(STAFF, STAFF),
    "pgperf_pause_changelist": Page(VIEWS, VIEWS),
    "pgperf_pause_add": Page(PAUSES, PAUSES),  # it is paused already, and both say so
    "pgperf_pause_history": Page(VIEWS, VIEWS),
    "pgperf_pause_delete": Page(PAUSES, PAUSES, data=lambda: {"post": "yes"}),
    "pgperf_pause_change": Page(VIEWS, NOBODY),
    "pgperf_pause:<path:object_id>/": Page(STAFF, STAFF),
}


def _patterns() -> Iterator[tuple[str, URLPattern]]:
    """Every URL of the app in the admin, by name, or by model and route if it has no name."""
    for resolver in admin.site.urls[0]:
        prefix = str(resolver.pattern)
        if isinstance(resolver, URLResolver) and prefix.startswith("pgperf/"):
            model = prefix.split("/")[1]
            for pattern in resolver.url_patterns:
                yield pattern.name or f"pgperf_{model}:{pattern.pattern}", pattern


def test_the_table_lists_every_url() -> None:
    assert {name for name, _pattern in _patterns()} == set(PAGES)


@dataclass
class Rows:
    """One row of each model, visible only to members of one group."""

    group: Group
    benchmark: Benchmark
    database: Database
    run: Run
    schedule: Schedule
    worker: Any
    pause: Any

    def row(self, name: str) -> Any:
        model = name.split("_")[1].split(":")[0]
        return self.benchmark.workloads[0] if model == "workload" else getattr(self, model)

    def is_there(self, name: str) -> bool:
        row = self.row(name)
        return bool(type(row)._default_manager.filter(pk=row.pk).exists())

    def address(self, name: str) -> str:
        model, row = name.split("_")[1].split(":")[0], self.row(name)
        if ":" in name:
            return reverse(f"admin:pgperf_{model}_changelist") + f"{row.pk}/"
        if "_comparison" in name:
            other = factories.make_results(factories.make_run())
            return reverse(f"admin:{name}", args=PAGES[name].more) + several.link([row.pk, other.pk])
        listed = name.endswith(LISTED)
        return reverse(f"admin:{name}", args=[] if listed else [row.pk, *PAGES[name].more])


@pytest.fixture
def rows(db: None) -> Rows:
    worker = factories.make_worker()
    run = factories.make_results(factories.make_run())
    group = Group.objects.create(name="insiders")
    assert run.benchmark
    assert run.database
    for row in (run.benchmark, run.benchmark.workloads[0], run.database):
        row.groups.add(group)
    schedule = factories.make_schedule(benchmark=run.benchmark, database=run.database)
    return Rows(group, run.benchmark, run.database, run, schedule, worker, pause.begin("someone"))


def open_benchmark() -> Benchmark:
    workload = Workload.objects.create(name="open", title="Open", sql="SELECT 1")
    return factories.make_benchmark("open", workloads=[workload])


def log_in(role: str, rows: Rows) -> Client:
    client = Client()
    if role == "anonymous":
        return client
    user = User.objects.create_user(role, is_staff=role != "customer", is_superuser=role == "superuser")
    permissions = Permission.objects.filter(content_type__app_label="pgperf")
    wanted = ROLES.get(role, ())
    if ALL_PERMISSIONS not in wanted:
        permissions = permissions.filter(codename__in=wanted)
    if role != "superuser":
        user.user_permissions.set(permissions)
    if role != "outsider":
        user.groups.add(rows.group)
    client.force_login(user)
    return client


def expected(page: Page, role: str, method: str) -> str:
    if method in OTHER_METHODS:
        return "method"
    allowed = page.post if method == "POST" else page.get
    if role in NON_STAFF:
        return "login"
    if allowed is None:
        return "method" if role in page.reaches_method else "no"
    if role not in allowed:
        return "no"
    return "hidden" if page.row and role == "outsider" else "ok"


def outcome(response: HttpResponse, method: str) -> str:
    """The kind of response."""
    status, to = response.status_code, response.headers.get("Location", "")
    if status == 302 and "/login/" in to:
        return "login"
    if status == 404 or (status == 302 and to == reverse("admin:index")):
        return "hidden"
    return {200: "ok", 302: "ok", 403: "no", 405: "method"}.get(status, str(status))


def answer(client: Client, method: str, address: str, data: dict[str, Any]) -> HttpResponse:
    if method in OTHER_METHODS:
        return client.generic(method, address)
    found: HttpResponse = getattr(client, method.lower())(address, data)
    return found


def wrong_answers(client: Client, role: str, name: str, rows: Rows) -> Iterator[str]:
    """Of one page to one role, by all methods in turn."""
    client.raise_request_exception = False
    page, address = PAGES[name], rows.address(name)
    for method in METHODS:
        if name == "pgperf_run_cancel":
            Run.objects.filter(pk=rows.run.pk).update(status=Run.Status.QUEUED)
        response = answer(client, method, address, page.data() if method == "POST" else {})
        got, want = outcome(response, method), expected(page, role, method)
        if got == "hidden" and name.endswith("_delete") and not rows.is_there(name):
            got = "ok"  # those who may only delete go to the index afterwards
        if got != want:
            yield f"{role}: {method} {address} ({name}) is answered {got}, not {want}"


@pytest.mark.parametrize("role", [*NON_STAFF, *ROLES])
def test_each_role_gets_the_expected_answer(role: str, rows: Rows) -> None:
    logged_in = log_in(role, rows)
    wrong = []
    for name in PAGES:
        with undone():
            wrong += wrong_answers(same_user(logged_in), role, name, rows)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("role", [*NON_STAFF, *ROLES])
def test_each_role_gets_each_file_or_none(role: str, rows: Rows) -> None:
    client, want = log_in(role, rows), expected(PAGES["pgperf_run_download"], role, "GET")
    addresses = {
        name: reverse("admin:pgperf_run_download", args=[rows.run.pk, name]) for name in downloads.FILES
    }
    found = {name: outcome(client.get(address), "GET") for name, address in addresses.items()}
    assert found == dict.fromkeys(downloads.FILES, want)


def test_an_outsider_sees_no_hidden_name(rows: Rows) -> None:
    """Neither in lists, filters and choices, nor in error messages."""
    Benchmark.objects.filter(pk=rows.benchmark.pk).update(name="hushed-benchmark", title="hushed title")
    Database.objects.filter(pk=rows.database.pk).update(name="hushed-database")
    hidden = [row.pk for row in rows.benchmark.workloads]
    Workload.objects.filter(pk__in=hidden).update(name="hushed-workload", title="hushed")
    Run.objects.update(benchmark_name="hushed-benchmark", database_name="hushed-database")
    outsider = log_in("outsider", rows)
    naming = []
    for name in PAGES:
        with undone():
            response = same_user(outsider).get(rows.address(name), follow=True)
            text = b"".join(response.streaming_content) if response.streaming else response.content
            naming += [name] if b"hushed" in text else []
    assert naming == [], ", ".join(naming)


@pytest.mark.parametrize("waits", ["open", "hidden"])
def test_a_message_names_another_run_to_those_who_see_it(waits: str, rows: Rows) -> None:
    """Two workers of one machine: one run of each side runs, the other waits for it."""
    pause.end()
    Run.objects.filter(pk=rows.run.pk).update(
        benchmark_name="hushed-benchmark", database_name="hushed-database", status=Run.Status.QUEUED
    )
    mine = factories.make_run(
        Run.Status.QUEUED,
        benchmark=open_benchmark(),
        database=factories.make_database("other"),
    )
    first, second = (rows.run, mine) if waits == "open" else (mine, rows.run)
    holder = state.claim(first.pk, "one@host")
    with pytest.raises(RunWaits):
        state.claim(second.pk, "two@host")
    outsider, viewer = log_in("outsider", rows), log_in("viewer", rows)
    for text in ("message", "error"):
        if text == "error":
            state.refuse(second.pk, f"No worker came: run {first.pk} was in the way.")
        second.refresh_from_db()
        assert f"run {first.pk}" in getattr(second, text)
        assert str(holder) not in getattr(second, text)
        for name in ("pgperf_run_changelist", "pgperf_run_change", "pgperf_run_progress"):
            address = reverse(f"admin:{name}", args=[] if name.endswith("list") else [second.pk])
            assert "hushed" not in outsider.get(address, follow=True).content.decode()
        address = reverse("admin:pgperf_run_progress", args=[second.pk])
        assert str(holder) in viewer.get(address).json()[text]
        seen = outsider.get(address)
        assert f"run {first.pk}" in seen.json()[text] if waits == "open" else seen.status_code == 404


def test_an_outsider_cannot_start_a_hidden_run(rows: Rows) -> None:
    """Neither a hidden benchmark nor a visible benchmark on a hidden database."""
    open_one = open_benchmark()
    client = log_in("outsider", rows)
    for benchmark in (rows.benchmark, open_one):
        page = reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])
        data = {"database": rows.database.pk, "length": "quick", "token": "a" * 32}
        assert client.post(page, data).status_code in (200, 404)
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    "action", ["export_variants_csv", "export_variants_xlsx", "export_comparisons_csv", "delete_selected"]
)
@pytest.mark.parametrize("role", ["viewer", "outsider"])
def test_list_actions_respect_permissions_and_groups(role: str, action: str, rows: Rows) -> None:
    data = {"action": action, "_selected_action": [rows.run.pk], "post": "yes"}
    response = log_in(role, rows).post(reverse("admin:pgperf_run_changelist"), data)
    text = b"".join(response.streaming_content) if response.streaming else response.content
    assert b"orm-overhead" not in text or role == "viewer"
    assert b"ops_per_s" not in text or role == "outsider"
    assert Run.objects.filter(pk=rows.run.pk).exists()


def test_a_run_stays_hidden_when_its_database_is_deleted(rows: Rows) -> None:
    page = reverse("admin:pgperf_run_change", args=[rows.run.pk])
    rows.benchmark.groups.clear()
    rows.database.delete()
    assert log_in("outsider", rows).get(page).status_code == 302
    assert log_in("viewer", rows).get(page).status_code == 302
    assert log_in("superuser", rows).get(page).status_code == 200


def test_unrestricted_rows_need_the_permission_only(rows: Rows) -> None:
    for row in (rows.benchmark, rows.benchmark.workloads[0], rows.database):
        row.groups.clear()
        type(row)._default_manager.update(restricted=False)
    page = reverse("admin:pgperf_run_change", args=[rows.run.pk])
    assert log_in("outsider", rows).get(page).status_code == 200
    assert log_in("staff", rows).get(page).status_code == 403


def test_a_row_with_several_groups_is_listed_once(rows: Rows) -> None:
    other = Group.objects.create(name="others")
    rows.database.groups.add(other)
    viewer = log_in("viewer", rows)
    User.objects.get(username="viewer").groups.add(other)
    text = viewer.get(reverse("admin:pgperf_database_changelist")).content.decode()
    assert text.count('class="field-name"') == 1


@pytest.mark.parametrize("field", ["host", "port", "sslmode", "dbname", "user", "credential"])
def test_an_address_change_needs_manage_targets_and_is_logged(field: str, rows: Rows) -> None:
    new = {"host": "db.example", "port": "6543", "sslmode": "require", "dbname": "else", "user": "other",
           "credential": "env:PGPERF_SECRET_X"}[field]  # fmt: skip
    page = reverse("admin:pgperf_database_change", args=[rows.database.pk])
    assert log_in("database_editor", rows).post(page, _form(rows.database, field, new)).status_code == 403
    assert _stored(rows.database, field) != new
    assert not LogEntry.objects.exists()
    old = _stored(rows.database, field)
    assert log_in("target_admin", rows).post(page, _form(rows.database, field, new)).status_code == 302
    assert _stored(rows.database, field) == new
    noted = LogEntry.objects.get().get_change_message()
    assert f"{old} → {new}" in noted


def test_addresses_of_added_and_deleted_targets_are_logged(rows: Rows) -> None:
    page = reverse("admin:pgperf_database_change", args=[rows.database.pk])
    data = _form(rows.database, "host", "127.0.0.1")
    count = data["targets-TOTAL_FORMS"]
    new = {"route": "new", "host": "10.9.9.9", "port": "6543", "sslmode": "require", "enabled": "on"}
    data |= {f"targets-{count}-{name}": value for name, value in new.items()}
    data |= {"targets-TOTAL_FORMS": count + 1, "targets-0-DELETE": "on", "targets-0-host": "/another"}
    gone = rows.database.targets.all()[0]
    assert log_in("target_admin", rows).post(page, data).status_code == 302
    noted = LogEntry.objects.get().get_change_message()
    assert "new: none → 10.9.9.9 6543 require enabled" in noted
    assert f"{gone.route}: {gone.host} {gone.port} {gone.sslmode} enabled → none" in noted


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
