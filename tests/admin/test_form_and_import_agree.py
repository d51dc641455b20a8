"""The forms and the file import accept and refuse the same values."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from pgperf.admin import PAGES
from pgperf.admin.databases import DatabaseAdmin, TargetInline
from pgperf.admin.transfer import DefinitionAdmin
from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer.columns import plain_target, target_fields
from tests import factories
from tests.fuzz.browser import form
from tests.kept_rows import undone

MODELS = {"benchmark": Benchmark, "database": Database, "workload": Workload}

#: Model, field, and a value as a file has it; the form gets it as a user types it.
TAKEN = [
    ("benchmark", "title", "Another"), ("benchmark", "description", ""), ("benchmark", "clients", [1, 8]),
    ("benchmark", "database", None), ("benchmark", "slice_ms", 5000), ("benchmark", "modes", ["simple", "prepared"]),
    ("database", "dbname", "shop"), ("database", "production", True), ("database", "notes", "  "),
    ("workload", "title", "Another"), ("workload", "args", [1, None, "x"]), ("workload", "limit", 0),
]  # fmt: skip
REFUSED = [
    ("benchmark", "name", ""), ("benchmark", "name", "no slug"), ("benchmark", "title", ""),
    ("benchmark", "title", "  "),
    ("benchmark", "title", "x" * 201), ("benchmark", "layers", []), ("benchmark", "layers", ["nonsense"]),
    ("benchmark", "routes", []), ("benchmark", "routes", ["Ü"]), ("benchmark", "modes", ["other"]),
    ("benchmark", "clients", []), ("benchmark", "clients", [0]), ("benchmark", "clients", [1, 1]),
    ("benchmark", "workloads", ["nothing"]), ("benchmark", "workloads", []), ("benchmark", "database", "nowhere"),
    ("benchmark", "placement", "elsewhere"), ("benchmark", "blocks", 0), ("benchmark", "rounds", 201),
    ("benchmark", "slice_ms", -1), ("benchmark", "slice_ms", 5001),
    ("database", "name", ""), ("database", "dbname", ""), ("database", "dbname", "  "), ("database", "dbname", "a=b"),
    ("database", "user", "a b"), ("database", "credential", "hunter2"), ("database", "credential", ""),
    ("workload", "title", "\t"), ("workload", "sql", ""), ("workload", "sql", "  "),
    ("workload", "sql", "DROP TABLE t"),
    ("workload", "args", [[1]]), ("workload", "orm", "nobody.knows"), ("workload", "orm", "pgperf.nothing"),
    ("workload", "model", "no.Model"), ("workload", "fetch", "all"), ("workload", "limit", -1),
    ("workload", "other_sql", "SELECT 1; SELECT 2"),
]  # fmt: skip


@pytest.fixture
def rows(db: None) -> dict[str, Any]:
    Workload.objects.create(name="plain", title="Plain", sql="SELECT 1")
    benchmark = factories.make_benchmark(database=factories.make_database())
    return {
        "benchmark": benchmark, "database": benchmark.database, "workload": Workload.objects.get(name="plain"),
    }  # fmt: skip


def typed(value: Any, choices: dict[str, str]) -> list[str]:
    """The form data as a browser sends it."""
    if isinstance(value, bool):
        return ["on"] if value else []
    if isinstance(value, list) and not choices:
        return [json.dumps(value) if None in value or [] in map(type, value) else ", ".join(map(str, value))]
    words = value if isinstance(value, list) else [value]
    return ["" if word is None else choices.get(str(word), str(word)) for word in words]


class Row:
    """A row's form and its exported file, each sent with one value changed; the database stays as it
    is.
    """

    def __init__(self, client: Client, model: str, row: Any) -> None:
        self.client = client
        self.change = reverse(f"admin:pgperf_{model}_change", args=[row.pk])
        self.upload = reverse(f"admin:pgperf_{model}_import")
        self.page = client.get(self.change)
        self.sent = form(self.page.content.decode(), "name")
        chosen = {"format": "json", "chosen": str(row.pk)}
        (self.exported,) = json.loads(client.post(reverse(f"admin:pgperf_{model}_export"), chosen).content)

    def answers(self, field: str, value: Any) -> tuple[bool, bool]:
        """Whether the form and the import accept the value."""
        return self.is_taken(self.by_form, field, value), self.is_taken(self.by_file, field, value)

    def is_taken(self, send: Callable[[str, Any], HttpResponse], field: str, value: Any) -> bool:
        with undone():
            answer = send(field, value)
        assert answer.status_code in (200, 302)
        return answer.status_code == 302

    def by_form(self, field: str, value: Any) -> HttpResponse:
        shown = self.page.context["adminform"].form.fields[field]
        choices = {str(label): str(key) for key, label in getattr(shown, "choices", ())}
        keys = {key: key for key in choices.values()}
        is_json = shown.__class__.__name__ == "JSONField"
        sent = [json.dumps(value)] if is_json else typed(value, {**choices, **keys})
        return self.client.post(self.change, self.sent | {field: sent})

    def by_file(self, field: str, value: Any) -> HttpResponse:
        upload = SimpleUploadedFile("x.json", json.dumps([self.exported | {field: value}]).encode())
        return self.client.post(self.upload, {"import_file": upload})


def disagreeing(row: Row, cases: Sequence[tuple[str, str, Any]], model: str, taken: bool) -> list[str]:
    """The cases of the model to which the form or the import has the wrong answer."""
    found = {(field, repr(value)): row.answers(field, value) for name, field, value in cases if name == model}
    assert found
    return [
        f"{field} = {value}: the form takes it: {by_form}, the import: {by_file}"
        for (field, value), (by_form, by_file) in found.items()
        if (by_form, by_file) != (taken, taken)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_both_accept(admin_page: Client, rows: dict[str, Any], model: str) -> None:
    wrong = disagreeing(Row(admin_page, model, rows[model]), TAKEN, model, taken=True)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("model", MODELS)
def test_both_refuse(admin_page: Client, rows: dict[str, Any], model: str) -> None:
    wrong = disagreeing(Row(admin_page, model, rows[model]), REFUSED, model, taken=False)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize(("url", "taken"), [("https://shop.example", True), ("https://other.example", False)])
def test_both_take_only_urls_of_the_settings(
    admin_page: Client, rows: dict[str, Any], settings: Any, url: str, taken: bool
) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["https://shop.example"]}
    row = Row(admin_page, "database", rows["database"])
    target = plain_target(Target(route="web", url=url, sslrootcert="ca.crt"))
    count = int(row.sent["targets-TOTAL_FORMS"][0])
    row.sent |= {"targets-TOTAL_FORMS": [str(count + 1)]}
    row.sent |= {f"targets-{count}-{name}": typed(value, {}) for name, value in target.items()}
    by_form = row.is_taken(row.by_form, "notes", "")
    by_file = row.is_taken(row.by_file, "targets", [*row.exported["targets"], target])
    assert (by_form, by_file) == (taken, taken)


@pytest.mark.parametrize("page", [page for page in PAGES.values() if issubclass(page, DefinitionAdmin)])
def test_a_file_has_no_field_that_the_form_lacks(page: type[DefinitionAdmin]) -> None:
    """Otherwise a file could set a value that the admin neither shows nor changes."""
    model = page.resource_class._meta.model
    shown = set(flatten_fieldsets(page(model, admin.site).fieldsets))
    travelling = set(page.resource_class().fields)
    if page is DatabaseAdmin:
        assert {field.name for field in target_fields()} <= set(flatten_fieldsets(TargetInline.fieldsets))
        travelling -= {"targets"}
    assert travelling <= shown
