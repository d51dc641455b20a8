"""A benchmark's numbers have one rule: model, form, file, command line and run accept and refuse
the same ones.
"""

import re
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.forms.models import ModelForm, model_to_dict
from django.test import RequestFactory

import pgperf
from pgperf.cli import run as cli_run
from pgperf.core import limits
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.limits import Limit
from pgperf.db.validators import client_limit
from pgperf.models import Benchmark
from pgperf.runs.definitions import Overrides, freeze
from pgperf.transfer.importing import import_table
from pgperf.transfer.resources import BenchmarkResource
from pgperf.transfer.table import ImportTable
from tests.factories import make_benchmark, make_database
from tests.kept_rows import undone
from tests.transfer.permissions import ALL

pytestmark = pytest.mark.django_db

NUMBERS = [*limits.BY_NAME.values(), client_limit()]


def boundary_values(limit: Limit) -> list[tuple[int, bool]]:
    """Values around the bounds, and whether they are allowed."""
    values = [(limit.low - 1, False), (limit.low, True), (limit.high, True), (limit.high + 1, False)]
    return [*values, (-1, False), (0, bool(limit.zero_means))]


CASES = [
    (limit, value, allowed) for limit in NUMBERS for value, allowed in dict(boundary_values(limit)).items()
]


def value_of(field: str, number: int) -> Any:
    return [number] if field == "clients" else number


def by_model(field: str, number: int) -> str:
    benchmark = make_benchmark()
    setattr(benchmark, field, value_of(field, number))
    try:
        benchmark.full_clean()
    except ValidationError as error:
        return f"{field}: {' '.join(error.message_dict[field])}"
    return ""


def page_form() -> type[ModelForm]:
    """The form of the admin page."""
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True)
    return admin.site.get_model_admin(Benchmark).get_form(request, change=True)


def by_form(field: str, number: int) -> str:
    benchmark = make_benchmark()
    chosen = [row.pk for row in benchmark.workloads]
    sent = {
        **model_to_dict(benchmark),
        "routes": "tcp",
        "clients": "1",
        "rates": "closed",
        "load_hosts": "0",
        "database": "",
        "workloads": chosen,
    }
    form = page_form()({**sent, field: str(number)}, instance=benchmark)
    if form.is_valid():
        return ""
    assert list(form.errors) == [field]
    return f"{field}: {' '.join(form.errors[field])}"


def by_file(field: str, number: int) -> str:
    benchmark = make_benchmark()
    table = ImportTable(
        flat=False, rows=[{"name": benchmark.name, field: value_of(field, number)}], numbers=[1]
    )
    outcome = import_table(BenchmarkResource(permissions=ALL), table)
    return " ".join(f"{problem.field}: {problem.message}" for problem in outcome.problems)


def by_command_line(field: str, number: int) -> str:
    make_database()
    flag = f"--{field.replace('_', '-')}={number}"
    try:
        call_command("pgperf", "run", make_benchmark().name, flag)
    except CommandError as error:
        return str(error)
    return ""


def by_override(field: str, number: int) -> str:
    return refusal_of_run(make_benchmark(), Overrides(**{field: value_of(field, number)}))


def by_saved_row(field: str, number: int) -> str:
    benchmark = make_benchmark()
    setattr(benchmark, field, value_of(field, number))
    return refusal_of_run(benchmark, Overrides())


def refusal_of_run(benchmark: Benchmark, overrides: Overrides) -> str:
    try:
        freeze(benchmark, make_database(), overrides)
    except InvalidDefinition as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "entrance",
    [by_model, by_form, by_file, by_command_line, by_override, by_saved_row],
    ids=lambda e: e.__name__,
)
def test_every_entry_point_gives_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, entrance: Callable[[str, int], str]
) -> None:
    monkeypatch.setattr(cli_run, "carry_out", lambda *_args: None)
    wrong = []
    for limit, value, allowed in CASES:
        with undone():
            refusal = entrance(limit.name, value)
        says_why = refusal.startswith(f"{limit.name}: ") and refusal.count(limit.bounds) == 1
        if not (refusal == "" if allowed else says_why):
            wrong.append(f"{limit.name} = {value}, which is {'' if allowed else 'not '}allowed: {refusal!r}")
    assert wrong == [], "\n".join(wrong)


def help_of_field(limit: Limit) -> str:
    return str(page_form()().fields[limit.name].help_text)


def help_of_file(limit: Limit) -> str:
    return str(BenchmarkResource().fields[limit.name].widget.hint())


def help_of_command_line(limit: Limit, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        call_command("pgperf", "run", "--help")
    return re.sub(r"\s+", " ", capsys.readouterr().out)


@pytest.mark.parametrize("limit", NUMBERS, ids=lambda limit: limit.name)
def test_every_help_text_states_the_bounds(limit: Limit, capsys: pytest.CaptureFixture[str]) -> None:
    clients = limits.CLIENTS if limit.name == "clients" else None
    assert limit.bounds in help_of_field(limit)
    assert (clients.option_help if clients else limit.bounds) in help_of_command_line(limit, capsys)
    assert (clients.help_text if clients else limit.bounds) in help_of_file(limit)


@pytest.mark.parametrize("limit", limits.BY_NAME.values(), ids=lambda limit: limit.name)
def test_every_default_is_the_limit_s(limit: Limit) -> None:
    assert limit.allows(limit.default)
    assert Benchmark._meta.get_field(limit.name).default == limit.default
    assert limit.quick is None or limit.allows(limit.quick)


@pytest.mark.parametrize(
    ("words", "asked"), [([], None), (["--rate-search-ms"], 10.0), (["--rate-search-ms", "2.5"], 2.5)]
)
def test_an_option_without_its_number_means_the_usual_one(words: list[str], asked: float | None) -> None:
    parser = ArgumentParser()
    cli_run.add_arguments(parser)
    assert parser.parse_args(["a-benchmark", *words]).rate_search_ms == asked


@pytest.mark.parametrize("limit", limits.BY_NAME.values(), ids=lambda limit: limit.name)
def test_form_fields_have_the_bounds(limit: Limit) -> None:
    attributes = page_form()().fields[limit.name].widget.attrs
    assert attributes["max"] == limit.high
    assert attributes["min"] == (0 if limit.zero_means else limit.low)


def test_a_site_lowers_the_number_of_clients_everywhere(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 4}
    for entrance in (by_model, by_form, by_file, by_override):
        Benchmark.objects.all().delete()
        refusal = entrance("clients", 5)
        assert "1 to 4 (PGPERF['MAX_CLIENTS'])" in refusal


def test_the_reference_states_the_bounds() -> None:
    lines = (Path(pgperf.__file__).parents[1] / "docs/reference.md").read_text().splitlines()
    for limit in (*limits.BY_NAME.values(), limits.CLIENTS):
        row = next(line for line in lines if line.startswith(f"| `{limit.name}` |"))
        assert f"| {limit.bounds} | {limit.default} |" in row


@pytest.mark.parametrize("value", [True, 6.0, "6", None])
def test_only_whole_numbers_are_allowed(value: object) -> None:
    assert not limits.BLOCKS.allows(value)


@pytest.mark.parametrize("value", [2, 0, 0.1, 0.5, 50.0])
def test_a_target_precision_may_have_a_decimal(value: float) -> None:
    assert limits.PRECISION.allows(value)


@pytest.mark.parametrize("value", [True, "2", None, 0.05, 0.55, float("nan"), float("inf"), -0.5])
def test_a_target_precision_is_a_number_with_one_decimal_at_most(value: object) -> None:
    assert not limits.PRECISION.allows(value)


@pytest.mark.parametrize(
    ("limit", "saved", "expected"),
    [
        (limits.PRECISION, 2.0, 5.0), (limits.PRECISION, 8.0, 8.0), (limits.PRECISION, 0.0, 0.0),
        (limits.BUDGET_S, 300, 60), (limits.BUDGET_S, 30, 30), (limits.BUDGET_S, 0, 0),
        (limits.SLICE_MS, 200, 200),
    ],
)  # fmt: skip
def test_a_quick_run_is_shorter_or_less_precise(limit: Limit, saved: float, expected: float) -> None:
    assert limit.in_quick_run(saved) == expected
