"""A run set against the run before it: the sentence of its answer, and its evidence."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pgperf.models import ChangePoint, Run
from pgperf.reports import answer, earlier_run
from pgperf.reports.answer import Point
from pgperf.reports.compared_run import previous
from pgperf.reports.run_rows import read
from pgperf.runs.change_text import day
from pgperf.runs.seen_changes import changes_up_to
from tests import factories
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts

pytestmark = pytest.mark.django_db

QUESTION = "Since the last run"


def stored(**more: Any) -> Run:
    return add_cpu_accounts(factories.make_results(factories.make_run(), **more))


def told(run: Run, before: Run) -> Point:
    changes, _count = changes_up_to(run, Run.objects.all())
    (point,) = [each for each in answer.points(read(run, before, changes)) if each.question == QUESTION]
    return point


def change(run: Run, label: str, more_us: float) -> ChangePoint:
    levels = {"before_us": 50.0, "after_us": 50.0 + more_us, "low_us": more_us - 1, "high_us": more_us + 1}
    return ChangePoint.objects.create(run=run, label=label, found_by=run.pk, **levels)


def test_a_slower_run_says_by_how_much() -> None:
    before, run = stored(), stored(slower={"django_orm": 1.1})
    point = told(run, before)
    assert point.sentences == (f"Slower than {before} of {day(before)}.",)
    (line,) = point.lines
    assert "instead of" in line.text
    assert "×1.100" in line.text
    assert "relative to libpq (C) ×3.43 instead of ×3.12 (differs)" in line.text
    assert point.before == before


def test_a_faster_run_and_an_equal_one() -> None:
    before = stored()
    assert told(stored(slower={"django_orm": 0.9}), before).sentences == (
        f"Faster than {before} of {day(before)}.",
    )
    assert told(stored(), before).sentences == (f"As fast as {before} of {day(before)}.",)


def test_an_unknown_difference_says_why() -> None:
    before, run = stored(), stored(slower={"django_orm": 1.1})
    for row in run.variants.all():
        row.verdict = {**row.verdict, "grade": {"word": "poor", "share": 0.4, "disturbances": []}}
        row.save()
    (sentence,) = told(run, before).sentences
    named = f"{before} of {day(before)}"
    assert sentence == f"Inconclusive: a disturbance may explain the difference from {named}."
    for level in run.summary["levels"]:
        for values in (values for name in ("log_us", "log_over", "us_over") for values in level[name]):
            values[:] = [value + (-1) ** place * abs(value) for place, value in enumerate(values)]
    run.save()
    assert told(run, before).sentences[0].startswith("Inconclusive: the intervals are too wide")


def test_a_difference_that_may_be_chance_among_many_is_not_too_wide() -> None:
    before, run = stored(), stored(slower=dict.fromkeys(factories.LAYER_NAMES, 1.05))
    waves = (0.03, -0.03, 0.01, -0.01, 0.02, -0.02)
    for level in (level for each in (before, run) for level in each.summary["levels"]):
        level["log_us"] = [[math.log(level["us"]) + wave for wave in waves]]
    before.save()
    run.save()
    (sentence,) = told(run, before).sentences
    named = f"{before} of {day(before)}"
    assert sentence == f"Inconclusive: among so many comparisons, the difference from {named} can be chance."


def test_routes_that_changed_otherwise_are_named() -> None:
    before, run = stored(), stored()
    for level in run.summary["levels"]:
        if level["variant"]["route"] == "tcp":
            level["log_us"] = [[value + math.log(1.2) for value in values] for values in level["log_us"]]
            level["us"] *= 1.2
    run.save()
    assert told(run, before).sentences == (
        f"socket, pgbouncer: As fast as {before} of {day(before)}.",
        f"tcp: Slower than {before} of {day(before)}.",
    )


def test_a_run_without_an_earlier_one_says_nothing() -> None:
    assert QUESTION not in {each.question for each in answer.points(read(stored()))}
    emptied = stored()
    emptied.summary = {**emptied.summary, "levels": []}
    emptied.save()
    assert QUESTION not in {each.question for each in answer.points(read(stored(), emptied))}


def test_a_first_run_says_that_none_is_earlier() -> None:
    (point,) = (each for each in answer.points(read(stored(), is_first=True)) if each.question == QUESTION)
    assert point.sentences == ("You see no earlier completed run of this definition on this database.",)
    test = stored()
    test.intervention = "lower_layer"
    assert QUESTION not in {each.question for each in answer.points(read(test, is_first=True))}


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


def test_a_change_that_lasts_is_told_after_the_run_before_has_it_too() -> None:
    first, before, run = stored(), stored(), stored()
    change(first, "django_orm · socket", 12)
    point = told(run, before)
    assert point.sentences == (f"As fast as {before} of {day(before)}.",)
    assert point.change_text == f"Django ORM · socket: 12 µs slower since run {first.pk}, {day(first)}."
    change(before, "django_orm · socket", -7)
    assert told(run, before).change_text == (
        f"Django ORM · socket: 7.0 µs faster since run {before.pk}, {day(before)}."
    )


def test_without_a_change_that_lasts_it_says_so() -> None:
    said = "None of the last 9 runs began a lasting change."
    before, run = stored(), stored()

    def sentences(count: int, *changes: ChangePoint) -> tuple[str, ...]:
        points = answer.points(read(run, before, list(changes), counted=count))
        (point,) = [each for each in points if each.question == QUESTION]
        return point.sentences

    assert sentences(9) == (f"As fast as {before} of {day(before)}.", said)
    assert said not in sentences(9, change(run, "django_orm · socket", 12))
    assert sentences(8) == (f"As fast as {before} of {day(before)}.",)  # too few to look for one


def test_a_change_of_a_layer_below_concerns_the_answer_and_that_of_another_variant_does_not() -> None:
    before, run = stored(), stored()
    for label in ("libpq · socket", "django_orm · elsewhere"):
        change(run, label, 30)
    change(run, "psycopg · socket", -3)
    assert told(run, before).change_text.startswith("libpq (C) · socket: 30 µs slower")


def test_a_change_after_the_run_is_not_told() -> None:
    before, run, later = stored(), stored(), stored()
    change(later, "django_orm · socket", 12)
    assert told(run, before).change is None


def test_a_change_of_a_suite_s_headline_figure_names_no_workload() -> None:
    before, run = (add_cpu_accounts(make_catalog_run("driver-suite-published")) for _ in range(2))
    row = run.variants.exclude(layer="libpq")[0]
    found = change(run, replace(row.identity, named=False).label, 5)
    assert row.workload not in found.label
    assert told(run, before).change == found


def test_a_suite_has_the_last_change_only() -> None:
    before, run = (add_cpu_accounts(make_catalog_run("driver-suite-published")) for _ in range(2))
    assert QUESTION not in {each.question for each in answer.points(read(run, before))}
    (none,) = [each for each in answer.points(read(run, before, counted=9)) if each.question == QUESTION]
    assert none.sentences == ("None of the last 9 runs began a lasting change.",)
    label = run.variants.exclude(layer="libpq").values_list("label", flat=True)[0]
    found = change(before, label, 5)
    point = told(run, before)
    assert (point.sentences, point.change) == ((), found)


def test_those_told_are_decided_among_all_variants() -> None:
    before, run = stored(), stored(slower={"django_orm": 1.1})
    labels = {row.label for row in run.variants.all()}
    every = earlier_run.found(before, run, labels)
    told_of, _measure = next(iter(every))
    one = earlier_run.found(before, run, {told_of})
    assert one == {key: change for key, change in every.items() if key[0] == told_of}
    assert len(every) > len(one)
