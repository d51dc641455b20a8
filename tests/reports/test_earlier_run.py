"""A run set against the run before it: the sentence of its answer, and its evidence."""

import math
from typing import Any

import pytest

from pgperf.models import Run
from pgperf.reports import answer
from pgperf.reports.answer import Point
from pgperf.reports.compared_run import previous
from pgperf.reports.run_rows import read
from tests import factories
from tests.cpu_accounts import add_cpu_accounts

pytestmark = pytest.mark.django_db

QUESTION = "Against the run before"


def stored(**more: Any) -> Run:
    return add_cpu_accounts(factories.make_results(factories.make_run(), **more))


def told(run: Run, before: Run) -> Point:
    (point,) = [each for each in answer.points(read(run, before)) if each.question == QUESTION]
    return point


def test_a_slower_run_says_by_how_much() -> None:
    before, run = stored(), stored(slower={"django_orm": 1.1})
    point = told(run, before)
    assert point.sentences == (f"Slower than {before}.",)
    (line,) = point.lines
    assert "instead of" in line.text
    assert "×1.100" in line.text
    assert "relative to libpq (C) ×3.43 instead of ×3.12 (differs)" in line.text
    assert point.before == before


def test_a_faster_run_and_an_equal_one() -> None:
    before = stored()
    assert told(stored(slower={"django_orm": 0.9}), before).sentences == (f"Faster than {before}.",)
    assert told(stored(), before).sentences == (f"As fast as {before}.",)


def test_an_unknown_difference_says_why() -> None:
    before, run = stored(), stored(slower={"django_orm": 1.1})
    for row in run.variants.all():
        row.verdict = {**row.verdict, "grade": {"word": "poor", "share": 0.4, "disturbances": []}}
        row.save()
    (sentence,) = told(run, before).sentences
    assert sentence == f"Not known: a disturbance may explain the difference from {before}."
    for level in run.summary["levels"]:
        for values in (values for name in ("log_us", "log_over", "us_over") for values in level[name]):
            values[:] = [value + (-1) ** place * abs(value) for place, value in enumerate(values)]
    run.save()
    assert told(run, before).sentences[0].startswith("Not known: the intervals are too wide")


def test_a_difference_that_may_be_chance_among_many_is_not_too_wide() -> None:
    before, run = stored(), stored(slower=dict.fromkeys(factories.LAYER_NAMES, 1.05))
    waves = (0.03, -0.03, 0.01, -0.01, 0.02, -0.02)
    for level in (level for each in (before, run) for level in each.summary["levels"]):
        level["log_us"] = [[math.log(level["us"]) + wave for wave in waves]]
    before.save()
    run.save()
    (sentence,) = told(run, before).sentences
    assert sentence == f"Not known: among so many comparisons, the difference from {before} can be chance."


def test_routes_that_changed_otherwise_are_named() -> None:
    before, run = stored(), stored()
    for level in run.summary["levels"]:
        if level["variant"]["route"] == "tcp":
            level["log_us"] = [[value + math.log(1.2) for value in values] for values in level["log_us"]]
            level["us"] *= 1.2
    run.save()
    assert told(run, before).sentences == (
        f"socket, pgbouncer: As fast as {before}.",
        f"tcp: Slower than {before}.",
    )


def test_a_run_without_an_earlier_one_says_nothing() -> None:
    assert QUESTION not in {each.question for each in answer.points(read(stored()))}
    emptied = stored()
    emptied.summary = {**emptied.summary, "levels": []}
    emptied.save()
    assert QUESTION not in {each.question for each in answer.points(read(stored(), emptied))}


def test_the_run_before_has_the_definition_and_the_database() -> None:
    before, run = stored(), stored()
    other = stored()
    other.database = factories.make_database("other")
    other.save()
    stored().delete()
    latest = stored()
    assert previous(Run.objects.all(), run) == before
    assert previous(Run.objects.all(), latest) == run
    assert previous(Run.objects.all(), other) is None


def test_runs_of_deleted_databases_are_not_set_against_each_other() -> None:
    before, run = stored(), stored()
    Run.objects.filter(pk__in=[before.pk, run.pk]).update(database=None)
    run.refresh_from_db()
    assert previous(Run.objects.all(), run) is None
