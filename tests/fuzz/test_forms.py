"""Admin forms with hostile input: an error message, never a 500."""

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, reverse
from hypothesis import strategies as st

from pgperf.models import Benchmark, Database, Pause, Run, Schedule, Worker, Workload
from pgperf.runs import pause
from pgperf.runs.definitions import freeze
from tests import factories
from tests.admin import test_measure
from tests.fuzz.browser import ANSWERS, Fields, form
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import LONG, VALUES, pick

Undone = Callable[[], AbstractContextManager[None]]
MODELS = {"benchmark": Benchmark, "database": Database, "schedule": Schedule, "workload": Workload}
ROWS: dict[str, type[Model]] = {**MODELS, "pause": Pause, "run": Run, "worker": Worker}
#: A field by which a page's form is found, where it is not `name`.
HOLDING = {"schedule": "benchmark"}
#: (index of the field, its new values; an empty list omits the field)
CHANGES = st.lists(st.tuples(st.integers(0, 99), st.lists(VALUES, max_size=2)), min_size=1, max_size=4)
#: Long values too.
ALL_CHANGES = st.lists(
    st.tuples(st.integers(0, 99), st.lists(VALUES | LONG, max_size=2)), min_size=1, max_size=4
)
#: Views with a small form or a button -> what a browser sends.
SMALL_FORMS: dict[str, Fields] = {
    "pause_add": {"reason": ["An incident"]},
    "benchmark_clone": {},
    "benchmark_statements": {"database": ["1"]},
    "run_benchmark": {},
    "run_cancel": {},
    "run_confirm": {"variant": ["?"], "confirm_name": [""], "token": ["?"], "look": []},
    "run_notes": {"notes": ["After the upgrade"], "seen": [""]},
    "run_pin": {"pinned": ["1"]},
    **{f"{model}_delete": {"post": ["yes"]} for model in ROWS},
}
#: Kinds of *Measure a query of mine*.
KINDS = [*test_measure.QUERIES, "statement"]


def changed(fields: Fields, changes: list[tuple[int, list[str]]]) -> Fields:
    names = sorted(name for name in fields if name != "csrfmiddlewaretoken") or ["a field that is not there"]
    return fields | {pick(number, names): values for number, values in changes}


def check(answer: HttpResponse, entries: int) -> None:
    """Saved and logged, or refused with an error on the form."""
    assert answer.status_code in ANSWERS
    page = answer.content.decode()
    if answer.status_code == 200:
        assert 'class="errorlist' in page or 'class="errornote' in page
        assert LogEntry.objects.count() == entries
    elif answer.status_code == 302:
        assert LogEntry.objects.count() == entries + 1


def send(client: Client, page: str, holding: str, changes: list[tuple[int, list[str]]]) -> None:
    fields = form(client.get(page).content.decode(), holding)
    entries = LogEntry.objects.count()
    check(client.post(page, changed(fields, changes)), entries)


def address(view: str) -> str:
    """Of an admin view, for the first row of its model where it takes one."""
    model = view.partition("_")[0]
    row = ROWS[model]._default_manager.order_by("pk").first()
    for args in ([], [row.pk if row else 1], [row.pk if row else 1, "x"]):
        with suppress(NoReverseMatch):
            return reverse(f"admin:pgperf_{view}", args=args)
    raise LookupError(view)


def sent(view: str) -> Fields:
    """What a browser sends of a small form; its row is there then."""
    if view == "pause_delete":
        pause.begin("fuzz", "An incident")
    if view != "run_confirm":
        return SMALL_FORMS[view]
    run = Run.objects.order_by("pk")[0]
    assert run.benchmark
    assert run.database
    Run.objects.filter(pk=run.pk).update(definition=freeze(run.benchmark, run.database).to_json())
    return SMALL_FORMS[view] | {"variant": [factories.label_to_test(run)], "token": [uuid.uuid4().hex]}


def measure_form(site: Client, kind: str) -> Fields:
    """What a browser sends of the second page of *Measure a query of mine*."""
    if kind == "statement":
        statement = {"kind": ["statement"], "numbered": ["SELECT $1, $2"], "value_1": ["7"], "value_2": ["a"]}
        return measure_form(site, "callable") | statement
    shown = form(site.get(test_measure.address(kind)).content.decode(), "token")
    return shown | {name: [value] for name, value in test_measure.QUERIES[kind][1].items()}


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 1, changes=CHANGES)
def test_a_changed_row_is_saved_or_refused(
    site: Client, undone: Undone, model: str, changes: list[tuple[int, list[str]]]
) -> None:
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    with undone():
        send(
            site, reverse(f"admin:pgperf_{model}_change", args=[row.pk]), HOLDING.get(model, "name"), changes
        )


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 0.5, field=st.integers(0, 99), long=LONG)
def test_a_long_value_is_saved_or_refused(
    site: Client, undone: Undone, model: str, field: int, long: str
) -> None:
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    with undone():
        page = reverse(f"admin:pgperf_{model}_change", args=[row.pk])
        send(site, page, HOLDING.get(model, "name"), [(field, [long])])


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 1, changes=CHANGES)
def test_a_new_row_is_saved_or_refused(
    site: Client, undone: Undone, model: str, changes: list[tuple[int, list[str]]]
) -> None:
    """From the form of an existing row, as with "Save as new"."""
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    page = site.get(reverse(f"admin:pgperf_{model}_change", args=[row.pk])).content.decode()
    fields = form(page, HOLDING.get(model, "name"))
    with undone():
        entries = LogEntry.objects.count()
        fresh = fields | {"name": ["fresh"]} | {name: [""] for name in fields if name.endswith("-id")}
        fresh = {name: ["0"] if name.endswith("INITIAL_FORMS") else values for name, values in fresh.items()}
        answer = site.post(reverse(f"admin:pgperf_{model}_add"), changed(fresh, changes))
        check(answer, entries)


@fuzzed("forms", 1, changes=CHANGES)
def test_a_run_is_requested_or_refused(
    site: Client, undone: Undone, changes: list[tuple[int, list[str]]]
) -> None:
    page = reverse("admin:pgperf_benchmark_run", args=[Benchmark.objects.get(name="orm-overhead").pk])
    fields = form(site.get(page).content.decode(), "token")
    with undone():
        runs = Run.objects.count()
        answer = site.post(page, changed(fields, changes))
        assert answer.status_code in ANSWERS
        assert Run.objects.count() - runs == (answer.status_code == 302)


@pytest.mark.parametrize("view", SMALL_FORMS)
@fuzzed("forms", 0.5, changes=ALL_CHANGES)
def test_a_small_form_is_performed_or_refused(
    site: Client, undone: Undone, view: str, changes: list[tuple[int, list[str]]]
) -> None:
    with undone():
        entries = LogEntry.objects.count()
        fields = changed(sent(view), changes)
        answer = site.post(address(view), fields)
        assert answer.status_code in ANSWERS
        assert answer.status_code == 302 or LogEntry.objects.count() == entries


@pytest.mark.parametrize("kind", KINDS)
@fuzzed("forms", 0.5, changes=ALL_CHANGES)
def test_a_query_of_mine_is_measured_or_refused(
    site: Client, undone: Undone, kind: str, changes: list[tuple[int, list[str]]]
) -> None:
    fields = changed(measure_form(site, kind), changes)
    with undone():
        runs, rows = Run.objects.count(), Workload.objects.count()
        answer = site.post(reverse(test_measure.MEASURE), fields)
        assert answer.status_code in ANSWERS
        is_taken = answer.status_code == 302
        assert (Run.objects.count() - runs, Workload.objects.count() - rows) == (is_taken, is_taken)


@pytest.mark.parametrize("kind", ["", *KINDS])
@fuzzed("forms", 0.5, changes=ALL_CHANGES)
def test_an_estimate_is_answered_in_json(
    site: Client, undone: Undone, kind: str, changes: list[tuple[int, list[str]]]
) -> None:
    """`kind`: of *Measure a query of mine*; "": the form of a benchmark."""
    benchmark = reverse("admin:pgperf_benchmark_change", args=[Benchmark.objects.order_by("pk")[0].pk])
    fields = measure_form(site, kind) if kind else form(site.get(benchmark).content.decode(), "name")
    with undone():
        answer = site.post(reverse("admin:pgperf_benchmark_estimate"), changed(fields, changes))
        assert answer.status_code == 200
        assert isinstance(answer.json(), dict)


def test_every_view_that_takes_a_post_is_fuzzed(site: Client, undone: Undone) -> None:
    """Those of imports and exports in test_imports.py, a list's actions below."""
    elsewhere = ("_changelist", "_import", "_export", "_history", "_download")
    own = {f"{model}_{act}" for model in MODELS for act in ("add", "change")}
    fuzzed_here = {*own, *SMALL_FORMS, "benchmark_run", "benchmark_measure", "benchmark_estimate"}
    assert {name for name in posted(site, undone) if not name.endswith(elsewhere)} == fuzzed_here


def posted(site: Client, undone: Undone) -> set[str]:
    """The names of pgperf's admin views that accept a superuser's POST, whichever comes first."""
    pages = [page for model, page in admin.site._registry.items() if model._meta.app_label == "pgperf"]
    names = {
        pattern.name.removeprefix("pgperf_") for page in pages for pattern in page.get_urls() if pattern.name
    }
    return {name for name in names if _accepts_post(site, undone, name)}


def _accepts_post(site: Client, undone: Undone, name: str) -> bool:
    """Of a row that is there: from Django 6.1 on, a missing one redirects without permission."""
    with undone():
        if name in ("pause_change", "pause_delete"):
            pause.begin("fuzz", "An incident")
        return site.post(address(name)).status_code not in (403, 405)


@pytest.mark.parametrize("model", MODELS)
@fuzzed(
    "forms",
    0.5,
    body=st.binary(max_size=400),
    kind=st.sampled_from(
        [
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json",
            "text/plain",
            "",
        ]
    ),
)
def test_a_malformed_body_is_refused(
    site: Client, undone: Undone, model: str, body: bytes, kind: str
) -> None:
    with undone():
        entries = LogEntry.objects.count()
        answer = site.post(reverse(f"admin:pgperf_{model}_add"), body, content_type=kind)
        check(answer, entries)


@fuzzed(
    "forms",
    1,
    action=VALUES,
    chosen=st.lists(VALUES, max_size=3),
    model=st.sampled_from(["run", "benchmark", "database", "workload", "worker"]),
    known=st.booleans(),
    number=st.integers(0, 99),
)
def test_actions_refuse_invalid_input(
    site: Client, undone: Undone, action: str, chosen: list[str], model: str, known: bool, number: int
) -> None:
    page = reverse(f"admin:pgperf_{model}_changelist")
    if known:
        action = pick(
            number,
            ["export_variants_csv", "export_variants_xlsx", "export_comparisons_csv", "delete_selected"],
        )
    data: dict[str, Any] = {"action": action, "_selected_action": chosen, "index": 0}
    with undone():
        assert site.post(page, data).status_code in ANSWERS
