"""`pgperf history`."""

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from pgperf.models import Run
from pgperf.runs import changes
from tests import factories
from tests.histories import BASE, LABEL, make_history

pytestmark = pytest.mark.django_db


def history(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "history", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def runs() -> list[Run]:
    made = make_history(24, lambda at: 10.0 if at < 16 else 22.0)
    for run in made:
        changes.record(run)
    return made


def test_it_prints_changes_and_steps(runs: list[Run]) -> None:
    text = history("orm-overhead")
    assert text.startswith(f"orm-overhead on demo: 24 runs, #{runs[0].pk} to #{runs[-1].pk}\n")
    assert "psycopg 3 · socket: 12 µs slower since run " in text
    assert "\n  this step explains +12 µs of +12 µs\n" in text
    assert "libpq (C) · socket: time per operation" in text


def test_it_prints_the_changes_of_the_environment_of_all_runs() -> None:
    first, second, *_others = make_history(52)
    second.environment_changes = {"since": first.pk, "differences": [["python", "3.11.2", "3.13.0"]]}
    second.save()
    [row] = [line for line in history("orm-overhead").splitlines() if "3.11.2" in line]
    assert row.startswith(f"#{second.pk} ")
    assert row.endswith("3.13.0")


def test_a_single_run_is_one() -> None:
    [run] = make_history(1)
    assert history("orm-overhead").startswith(f"orm-overhead on demo: 1 run, #{run.pk}\n")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (8, "There are too few runs to look for change points: 8 of 9."),
        (9, "No step has changed its level in these runs."),
    ],
)
def test_few_runs_are_not_said_to_be_without_changes(count: int, said: str) -> None:
    make_history(count)
    assert history("orm-overhead").split("\n\n")[1] == said


def test_json_and_csv_have_every_point(runs: list[Run]) -> None:
    data = json.loads(history("orm-overhead", "--database", "demo", "--json"))
    assert [(each["variant"], len(each["points"])) for each in data["series"]] == [(BASE, 24), (LABEL, 24)]
    headline, step = data["changes"]
    assert (headline["variant"], headline["below"], step["layers"]) == (LABEL, None, None)
    assert [(each["label"], each["changed"]) for each in headline["layers"]] == [(LABEL, True), (BASE, False)]
    table = list(csv.DictReader(io.StringIO(history("orm-overhead", "--csv"))))
    assert [row["run_id"] for row in table if row["variant"] == LABEL] == [str(run.pk) for run in runs]


def test_a_layer_that_the_newest_run_lacks_is_printed() -> None:
    make_history(2)
    make_history(1, layers=("libpq",))
    series = json.loads(history("orm-overhead", "--json"))["series"]
    assert [(each["variant"], len(each["points"])) for each in series] == [(BASE, 3), (LABEL, 2)]
    assert "psycopg 3 · socket over libpq (C) · socket" in history("orm-overhead")


def test_a_definition_is_named_by_its_first_digits(runs: list[Run]) -> None:
    make_history(2, definition_hash="ab" * 32)
    assert len(json.loads(history("orm-overhead", "--json"))["runs"]) == 2
    assert len(json.loads(history("orm-overhead", "--definition", "9f2c", "--json"))["runs"]) == 24


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing"], "There is no benchmark 'nothing'"),
        (["orm-overhead", "--database", "nowhere"], "There is no database 'nowhere'. Databases: demo."),
        (["orm-overhead", "--definition", "xyz"], "No run of orm-overhead is done with the definition xyz."),
        (["orm-overhead"], "No run of orm-overhead is done."),
    ],
)
def test_what_is_not_there_is_said(words: list[str], reason: str) -> None:
    factories.make_run(Run.Status.FAILED)
    with pytest.raises(CommandError, match=reason):
        history(*words)
