"""Admin forms with hostile input: an error message, never a 500."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from hypothesis import strategies as st

from pgperf.models import Benchmark, Database, Run, Workload
from tests.fuzz.browser import ANSWERS, Fields, form
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import LONG, VALUES, pick

Undone = Callable[[], AbstractContextManager[None]]
MODELS = {"benchmark": Benchmark, "database": Database, "workload": Workload}
#: (index of the field, its new values; an empty list omits the field)
CHANGES = st.lists(st.tuples(st.integers(0, 99), st.lists(VALUES, max_size=2)), min_size=1, max_size=4)


def changed(fields: Fields, changes: list[tuple[int, list[str]]]) -> Fields:
    names = sorted(name for name in fields if name != "csrfmiddlewaretoken")
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


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 1, changes=CHANGES)
def test_a_changed_row_is_saved_or_refused(
    site: Client, undone: Undone, model: str, changes: list[tuple[int, list[str]]]
) -> None:
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    with undone():
        send(site, reverse(f"admin:pgperf_{model}_change", args=[row.pk]), "name", changes)


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 0.5, field=st.integers(0, 99), long=LONG)
def test_a_long_value_is_saved_or_refused(
    site: Client, undone: Undone, model: str, field: int, long: str
) -> None:
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    with undone():
        send(site, reverse(f"admin:pgperf_{model}_change", args=[row.pk]), "name", [(field, [long])])


@pytest.mark.parametrize("model", MODELS)
@fuzzed("forms", 1, changes=CHANGES)
def test_a_new_row_is_saved_or_refused(
    site: Client, undone: Undone, model: str, changes: list[tuple[int, list[str]]]
) -> None:
    """From the form of an existing row, as with "Save as new"."""
    row = MODELS[model].objects.order_by("pk").first()  # type: ignore[attr-defined]
    fields = form(site.get(reverse(f"admin:pgperf_{model}_change", args=[row.pk])).content.decode(), "name")
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
