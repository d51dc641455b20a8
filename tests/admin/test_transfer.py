"""Import and export in the admin, with different permissions."""

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from openpyxl import load_workbook

from pgperf.models import Benchmark, Database, Workload
from pgperf.transfer import files
from pgperf.transfer.table import MAX_BYTES
from tests import factories
from tests.admin.test_csp import inline_parts
from tests.admin.users import staff_client

pytestmark = pytest.mark.django_db

MODELS = ["database", "workload", "benchmark"]
ROW = {
    "name": "shop",
    "dbname": "app",
    "credential": "alias:default",
    "targets": [{"route": "tcp", "host": "127.0.0.1"}],
}
MANAGER = ("view_database", "add_database", "change_database", "manage_targets")
TARGETS = ("add_target", "change_target", "delete_target")


def url(model: str, page: str) -> str:
    return reverse(f"admin:pgperf_{model}_{page}")


def upload(client: Client, model: str, content: Any, name: str = "x.json", **data: str) -> Any:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post(url(model, "import"), {"import_file": SimpleUploadedFile(name, raw), **data})


def problems(response: Any) -> list[tuple[Any, ...]]:
    assert response.status_code == 200
    assert "Nothing was imported" in response.content.decode()
    return [tuple(problem)[:2] for problem in response.context["problems"]]


def export(client: Client, model: str, kind: str, **data: str) -> Any:
    return client.post(url(model, "export"), {"format": kind, **data})


@pytest.mark.parametrize("more", [(), ("view_target",), ("change_target",)])
class TestAddressesOfTargets:
    """The history and an export tell them to those who may see targets only."""

    def test_an_export_has_them_for_those_who_may_see_targets(self, more: tuple[str, ...]) -> None:
        factories.make_database().targets.update(host="10.1.2.3")
        client = staff_client("ada", "view_database", "export_database", *more)
        for kind in ("json", "csv", "yaml"):
            assert ("10.1.2.3" in export(client, "database", kind).content.decode()) == bool(more)

    def test_the_history_has_them_for_those_who_may_see_targets(
        self, admin_page: Client, more: tuple[str, ...]
    ) -> None:
        row = {**ROW, "targets": [{"route": "tcp", "host": "localhost"}]}
        upload(admin_page, "database", [row])
        upload(admin_page, "database", [{**row, "targets": [{"route": "tcp", "host": "127.0.0.2"}]}])
        client = staff_client("ada", "view_database", *more)
        page = client.get(reverse("admin:pgperf_database_history", args=[Database.objects.get().pk]))
        shown = page.content.decode()
        assert ("127.0.0.2" in shown) == bool(more)
        assert ("permission to view targets" in shown) != bool(more)


def test_an_import_does_not_tell_whether_a_guessed_address_is_right(admin_page: Client) -> None:
    upload(admin_page, "database", [{**ROW, "targets": [{"route": "tcp", "host": "127.0.0.2"}]}])
    client = staff_client("ada", *MANAGER, "import_database")
    (exported,) = json.loads(export(admin_page, "database", "json").content)
    right = exported["targets"][0]
    sent = [[{**exported, "targets": [{**right, "host": host}]}] for host in ("127.0.0.2", "127.0.0.3")]
    answers = [str(upload(client, "database", rows, check="1").context["problems"]) for rows in sent]
    assert answers[0] == answers[1]
    assert "permission to view targets" in answers[0]


def test_an_import_of_a_file_without_targets_keeps_them(admin_page: Client) -> None:
    factories.make_database().targets.update(host="127.0.0.2")
    found = json.loads(
        export(staff_client("ada", "view_database", "export_database"), "database", "json").content
    )
    (row,) = found
    assert "targets" not in row
    upload(admin_page, "database", [{**row, "notes": "Moved."}])
    assert Database.objects.get().notes == "Moved."
    assert set(Database.objects.get().targets.values_list("host", flat=True)) == {"127.0.0.2"}


@pytest.mark.parametrize("model", MODELS)
def test_who_may_only_view_sees_the_groups_without_a_join_to_them(model: str) -> None:
    """A router may keep the groups in another database."""
    pilots = Group.objects.create(name="pilots")
    row: Any = factories.make_database() if model == "database" else factories.make_benchmark()
    row = row.workloads[0] if model == "workload" else row
    row.groups.set([pilots])
    client = staff_client("eve", f"view_{model}")
    User.objects.get(username="eve").groups.add(pilots)
    with CaptureQueriesContext(connection) as asked:
        page = client.get(reverse(f"admin:pgperf_{model}_change", args=[row.pk]))
    assert '<div class="readonly">pilots</div>' in page.content.decode()
    links = row.groups.through._meta.db_table
    assert [each["sql"] for each in asked if links in each["sql"] and "auth_group" in each["sql"]] == []


class TestExport:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("kind", list(files.FORMATS))
    def test_exports_all_rows(self, model: str, kind: str, admin_page: Client) -> None:
        factories.make_benchmark()
        factories.make_database()
        response = export(admin_page, model, kind)
        assert response["Content-Type"] == files.FORMATS[kind].content_type
        assert f'filename="pgperf-{model}s.{kind}"' in response["Content-Disposition"]
        rows = {"database": Database, "workload": Workload, "benchmark": Benchmark}[model].objects.all()
        exported = files.read(f"x.{kind}", response.content).rows
        assert sorted(row["name"] for row in exported) == sorted(row.name for row in rows)
        again = upload(admin_page, model, response.content, f"x.{kind}")
        assert again.status_code == 302
        note = LogEntry.objects.order_by("pk").first()
        assert note is not None
        assert note.get_change_message() == f"Exported as {kind.upper()}. From 127.0.0.1."

    def test_formulas_are_escaped_in_spreadsheets_only(self, admin_page: Client) -> None:
        factories.make_benchmark("a-first", title="=cmd|'/c calc'!A1", description="-2+3")
        row = next(csv.DictReader(io.StringIO(export(admin_page, "benchmark", "csv").content.decode())))
        assert (row["title"], row["description"]) == ("'=cmd|'/c calc'!A1", "'-2+3")
        sheet = load_workbook(io.BytesIO(export(admin_page, "benchmark", "xlsx").content)).worksheets[0]
        assert not [cell for line in sheet.iter_rows() for cell in line if cell.data_type == "f"]
        assert json.loads(export(admin_page, "benchmark", "json").content)[0]["description"] == "-2+3"

    def test_exports_the_selected_rows(self, admin_page: Client) -> None:
        chosen = [factories.make_benchmark("a").pk, factories.make_benchmark("b").pk]
        factories.make_benchmark("c")
        page = admin_page.post(
            url("benchmark", "changelist"), {"action": "export_selected", "_selected_action": chosen}
        )
        form = page.context["form"]
        assert "2 definitions" in page.content.decode()
        response = export(admin_page, "benchmark", "json", chosen=form["chosen"].value())
        assert [row["name"] for row in json.loads(response.content)] == ["a", "b"]
        assert LogEntry.objects.count() == 2

    @pytest.mark.parametrize(
        "data",
        [{}, {"format": "exe"}, {"format": "json", "chosen": "1;2"}, {"format": "json", "chosen": "1" * 30}],
    )
    def test_invalid_input_shows_the_form_again(self, data: dict[str, str], admin_page: Client) -> None:
        response = admin_page.post(url("benchmark", "export"), data)
        assert response.status_code == 200
        assert response.context["form"].errors

    def test_an_empty_export_shows_an_error(self, admin_page: Client) -> None:
        assert "no rows to export" in export(admin_page, "database", "csv").content.decode()

    def test_a_value_too_long_for_the_format_shows_an_error(self, admin_page: Client) -> None:
        factories.make_database(notes="x" * 40_000)
        assert "export as JSON" in export(admin_page, "database", "xlsx").content.decode()
        assert export(admin_page, "database", "json")["Content-Type"] == "application/json"


class TestImport:
    def test_imports_databases_with_their_routes(self, admin_page: Client) -> None:
        response = upload(admin_page, "database", [ROW])
        assert response["Location"] == url("database", "changelist")
        page = admin_page.get(response["Location"]).content.decode()
        assert "1 new, 0 changed, 0 unchanged" in page
        assert Database.objects.get().targets.get().route == "tcp"
        note = LogEntry.objects.get()
        assert (note.action_flag, note.object_repr) == (ADDITION, "shop")
        assert note.get_change_message() == "Imported from 'x.json'. From 127.0.0.1."

    def test_the_history_names_the_changed_fields(self, admin_page: Client) -> None:
        database = factories.make_database()
        upload(admin_page, "database", [{"name": "demo", "credential": "env:PGPERF_SECRET_X", "notes": "n"}])
        note = LogEntry.objects.get()
        assert note.action_flag == CHANGE
        assert note.get_change_message() == (
            "Imported from 'x.json': changed credential, notes. credential: alias:default → env:PGPERF_SECRET_X."
            " From 127.0.0.1."
        )
        history = admin_page.get(
            reverse("admin:pgperf_database_history", args=[database.pk])
        ).content.decode()
        assert "changed credential, notes" in history

    def test_check_saves_nothing(self, admin_page: Client) -> None:
        factories.make_database()
        response = upload(admin_page, "database", [ROW, {"name": "demo", "notes": "n"}], check="1")
        page = response.content.decode()
        assert "Nothing was imported yet" in page
        assert "shop is new" in page
        assert "demo changes: notes" in page
        assert not Database.objects.filter(name="shop").exists()
        assert not LogEntry.objects.exists()

    def test_imports_all_rows_or_none(self, admin_page: Client) -> None:
        wrong = {**ROW, "name": "bad", "dbname": "host=evil"}
        response = upload(admin_page, "database", [ROW, wrong])
        assert problems(response) == [(2, "dbname")]
        assert "connection string" in response.content.decode()
        assert not Database.objects.exists()
        assert not LogEntry.objects.exists()

    def test_markup_in_a_file_is_escaped(self, admin_page: Client) -> None:
        script = "<script>alert(1)</script>"
        for content, name in (
            ([{script: 1, "name": "x"}], "x.json"),
            ([{**ROW, "name": script}], f"{script}.json"),
        ):
            page = upload(admin_page, "database", content, name).content.decode()
            assert script not in page
            assert inline_parts(page) == []

    def test_the_list_of_problems_is_limited(self, admin_page: Client) -> None:
        response = upload(admin_page, "workload", [{"name": f"n{at}"} for at in range(150)])
        assert len(problems(response)) == 100
        assert "and 200 more" in response.content.decode()

    def test_the_list_of_changes_is_limited(self, admin_page: Client) -> None:
        rows = [{"name": f"n{at}", "title": "t", "sql": "SELECT 1"} for at in range(150)]
        page = upload(admin_page, "workload", rows, check="1").content.decode()
        assert page.count(" is new</li>") == 100
        assert "and 50 more" in page

    def test_a_message_that_quotes_the_file_is_short(self, admin_page: Client) -> None:
        """The choice that the message names has 1 MB."""
        rows = [{"name": "a", "title": "t", "model": "auth.User", "fetch": "x" * 10**6}]
        assert len(upload(admin_page, "workload", rows).content) < 20_000

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("x.exe", b"MZ"),
            ("x.json", b""),
            ("x.json", b"{"),
            ("x.json", b"[" * 200_000),
            ("x.json", b"\xff\xfe\x00"),
            ("x.json", b"null"),
            ("x.csv", b'name\n"'),
            ("x.csv", b"\0\0\0"),
            ("x.xlsx", b"PK\x03\x04junk"),
            ("x.yaml", b"a: &x [*x]"),
            ("x.json", b" " * (MAX_BYTES + 1)),
            ("x" * 300 + ".json", b"[]"),
        ],
    )
    def test_unreadable_files_show_an_error(self, name: str, content: bytes, admin_page: Client) -> None:
        response = upload(admin_page, "database", content, name)
        assert response.status_code == 200
        assert response.context["form"].errors["import_file"]

    def test_a_missing_file_shows_an_error(self, admin_page: Client) -> None:
        assert "required" in admin_page.post(url("database", "import"), {}).content.decode()
        assert "required" in admin_page.post(url("database", "import"), {"import_file": "x"}).content.decode()

    def test_the_page_lists_every_column(self, admin_page: Client) -> None:
        page = admin_page.get(url("benchmark", "import")).content.decode()
        assert "<code>slice_ms</code>" in page
        assert "<code>workloads</code>" in page

    def test_the_history_has_the_changed_addresses(self, admin_page: Client) -> None:
        upload(admin_page, "database", [ROW])
        moved = [{"route": "tcp", "host": "10.0.0.5"}, {"route": "socket", "host": "/run/x"}]
        upload(admin_page, "database", [{"name": "shop", "targets": moved}])
        note = LogEntry.objects.first()
        assert note is not None
        message = note.get_change_message()
        assert "socket: none → /run/x 5432 prefer enabled." in message
        assert "tcp: 127.0.0.1 5432 prefer enabled → 10.0.0.5 5432 prefer enabled." in message


@pytest.mark.urls("tests.admin.custom_site")
def test_import_works_in_a_custom_site(admin_page: Client) -> None:
    factories.make_database()
    for page in ("database/import/", "database/export/", "benchmark/import/", "workload/"):
        response = admin_page.get(f"/ops/pgperf/{page}")
        assert response.status_code == 200
        assert "/admin/pgperf" not in response.content.decode()


class TestPermissions:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("verb", ["import", "export"])
    def test_each_page_requires_its_own_permission(self, model: str, verb: str) -> None:
        """All other permissions together do not suffice, unlike in django-import-export."""
        other = "export" if verb == "import" else "import"
        rest = [f"{do}_{model}" for do in ("view", "add", "change", "delete", other)]
        without_permission, with_permission = (
            staff_client("a", *rest),
            staff_client("b", f"{verb}_{model}", f"view_{model}"),
        )
        without_view = staff_client("c", f"{verb}_{model}")
        for method in ("get", "post"):
            assert getattr(without_permission, method)(url(model, verb)).status_code == 403
            assert getattr(without_view, method)(url(model, verb)).status_code == 403
            assert getattr(Client(), method)(url(model, verb)).status_code == 302
            assert getattr(with_permission, method)(url(model, verb)).status_code == 200
        assert with_permission.put(url(model, verb)).status_code == 405
        assert verb.capitalize() in with_permission.get(url(model, "changelist")).content.decode()
        assert f"/{verb}/" not in without_permission.get(url(model, "changelist")).content.decode()

    def test_the_action_requires_the_export_permission(self) -> None:
        row = factories.make_benchmark()
        without_permission = staff_client("a", "view_benchmark", "change_benchmark", "import_benchmark")
        data = {"action": "export_selected", "_selected_action": [row.pk]}
        page = without_permission.post(url("benchmark", "changelist"), data, follow=True).content.decode()
        assert "export_selected" not in page
        assert "id_format" not in page

    def test_a_post_without_a_csrf_token_is_refused(self, admin_page: Client) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = admin_page.cookies
        assert upload(strict, "database", [ROW]).status_code == 403
        assert export(strict, "database", "json").status_code == 403

    def test_the_import_permission_alone_saves_nothing(self) -> None:
        with_permission = staff_client("a", "view_database", "import_database")
        factories.make_database()
        assert problems(upload(with_permission, "database", [ROW])) == [(1, ""), (1, "targets")]
        assert problems(upload(with_permission, "database", [{"name": "demo", "notes": "n"}])) == [(1, "")]

    def test_targets_require_their_permissions(self) -> None:
        half = staff_client("half", "import_database", *MANAGER)
        whole = staff_client("whole", "import_database", *MANAGER, *TARGETS)
        assert problems(upload(half, "database", [ROW])) == [(1, "targets")]
        assert upload(whole, "database", [ROW]).status_code == 302

    @pytest.mark.parametrize("was", [True, False])
    def test_only_superusers_change_production(self, was: bool, admin_page: Client) -> None:
        database = factories.make_database(production=was)
        manager = staff_client("manager", "import_database", *MANAGER, *TARGETS)
        change = [{"name": "demo", "production": not was}]
        assert problems(upload(manager, "database", change)) == [(1, "production")]
        assert problems(upload(manager, "database", [{**ROW, "production": True}])) == [(1, "production")]
        assert (
            upload(manager, "database", [{"name": "demo", "production": was, "notes": "n"}]).status_code
            == 302
        )
        page = manager.get(reverse("admin:pgperf_database_change", args=[database.pk])).content.decode()
        assert 'name="production"' not in page
        assert upload(admin_page, "database", change).status_code == 302

    def test_hidden_rows_are_neither_exported_nor_changed(self) -> None:
        hidden, shown = factories.make_database("hidden"), factories.make_database("shown")
        hidden.groups.add(Group.objects.create(name="others"))
        manager = staff_client("manager", "import_database", "export_database", *MANAGER, *TARGETS)
        rows = json.loads(export(manager, "database", "json").content)
        assert [row["name"] for row in rows] == ["shown"]
        chosen = f"{hidden.pk},{shown.pk}"
        assert b"hidden" not in export(manager, "database", "json", chosen=chosen).content
        change = upload(manager, "database", [{**ROW, "name": "hidden"}])
        assert problems(change) == [(1, "name")]
        hidden.refresh_from_db()
        assert hidden.dbname == "app"

    def test_the_history_of_a_form_has_the_client_address(self) -> None:
        User.objects.create_superuser("boss")
        client = Client(REMOTE_ADDR="10.1.2.3")
        client.force_login(User.objects.get(username="boss"))
        database = factories.make_database()
        page = client.get(reverse("admin:pgperf_database_change", args=[database.pk]))
        form, formset = page.context["adminform"].form, page.context["inline_admin_formsets"][0].formset
        data = {name: value for name, value in form.initial.items() if value not in (None, False, [])}
        for inner in (formset.management_form, *formset.initial_forms):
            data |= {f"{inner.prefix}-{name}": inner[name].value() for name in inner.fields}
        data = {name: value for name, value in data.items() if value not in (None, False)}
        data |= {"credential": "env:PGPERF_SECRET_NEW", "targets-1-host": "localhost", "user": "u"}
        response = client.post(reverse("admin:pgperf_database_change", args=[database.pk]), data)
        assert response.status_code == 302, response.context["errors"]
        message = LogEntry.objects.get().get_change_message()
        assert "Changed User and Credential" in message
        assert "Changed Host for target" in message
        assert message.endswith("From 10.1.2.3.")


@pytest.mark.parametrize("model", MODELS)
def test_the_pages_obey_the_content_security_policy(model: str, admin_page: Client) -> None:
    factories.make_database()
    for page in ("import", "export", "changelist"):
        assert inline_parts(admin_page.get(url(model, page)).content.decode()) == []


def test_definitions_move_from_one_site_to_another(admin_page: Client) -> None:
    """Export all three models, delete the rows, import all three."""
    database = factories.make_database()
    factories.make_benchmark(database=database)
    content = {model: export(admin_page, model, "json").content for model in MODELS}
    Benchmark.objects.all().delete()
    Workload.objects.all().delete()
    Database.objects.all().delete()
    assert problems(upload(admin_page, "benchmark", content["benchmark"]))
    for model in MODELS:
        assert upload(admin_page, model, content[model]).status_code == 302
    assert {model: export(admin_page, model, "json").content for model in MODELS} == content


def test_an_export_reads_the_workloads_of_all_benchmarks_at_once(admin_page: Client) -> None:
    database = factories.make_database()

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert export(admin_page, "benchmark", "json").status_code == 200
        tables = ("pgperf_workload", "pgperf_benchmarkworkload", "pgperf_database")
        return sum(f'FROM "{table}"' in each["sql"] for each in asked for table in tables)

    few = queries()
    for number in range(5):
        factories.make_benchmark(f"more-{number}", database=database)
    assert queries() == few


def test_the_workloads_of_a_benchmark_are_one_query(django_assert_num_queries: Any) -> None:
    benchmark = factories.make_benchmark(workloads=Workload.objects.order_by("pk")[:4])
    benchmark = Benchmark.objects.get(pk=benchmark.pk)
    with django_assert_num_queries(1):
        assert len(benchmark.workloads) == 4
