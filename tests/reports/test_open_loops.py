"""What a run says of its rates: held or not, how late operations began, how long they took."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.analysis.open_loop import OpenLoop
from pgperf.cli import markdown, result
from pgperf.models import Run, VariantResult
from pgperf.reports import answer, open_loops, run_page, verdicts
from pgperf.reports.run_json import variant_json
from pgperf.reports.run_rows import read
from pgperf.reports.throughput import latency_table
from tests.factories import make_results, make_run, stored_verdict

pytestmark = pytest.mark.django_db

KEPT = OpenLoop(500.0, "constant", due=5000, ended=5000, late=None, skipped=0, backlog=0, seconds=10.0)
SHORT = OpenLoop(
    1_000_000.0,
    "exponential",
    due=10_000_000,
    ended=90_000,
    late=7,
    skipped=3,
    backlog=9_000_000,
    seconds=10.0,
)
TIMES = {
    "min": 50.0,
    "mean": 80.0,
    "stddev": 9.0,
    "p50": 70.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "max": 400.0,
}
UNKNOWN = dict.fromkeys(TIMES)


def with_rate(row: VariantResult, found: OpenLoop, **phases_us: Any) -> VariantResult:
    row.rate, row.schedule, row.open_loop = found.rate, found.schedule, found.to_json()
    row.phases_us = phases_us
    row.label = row.identity.label
    row.save()
    return row


@pytest.fixture
def run() -> Run:
    """Two closed loops, a rate that is kept, and one that is not and reached no due operation."""
    run = make_results(make_run(), routes=("tcp",), layers=("libpq", "psycopg", "django_orm", "psycopg2"))
    rows = {row.layer: row for row in run.variants.filter(control=0)}
    with_rate(rows["psycopg"], KEPT, lag={**TIMES, "p50": 11.0, "p99": 33.0}, service={**TIMES, "mean": 66.0})
    with_rate(rows["django_orm"], SHORT, lag=UNKNOWN, service=UNKNOWN)
    return run


def test_each_rate_has_a_row_with_its_lag_and_whether_it_was_held(run: Run) -> None:
    table = open_loops.rate_table(read(run).variants)
    kept, short = ([cell.text for cell in row] for row in table.rows)
    assert kept[:7] == ["psycopg 3 · tcp · 500/s constant", "500", "500", "yes", "11.0", "33.0", "66.0"]
    assert short[0] == "Django ORM · tcp · 1000000/s exponential"
    assert short[3] == "no"
    assert short[4] == short[5] == short[6]  # all unknown, and so neither 0 nor a number
    assert not any(character.isdigit() for character in short[4])


def test_the_note_names_what_the_ends_of_slices_may_cut() -> None:
    assert "after an allowance for operations that the ends of slices cut off" in open_loops.note()


def test_percentiles_that_are_lower_bounds_are_marked_and_explained(run: Run) -> None:
    """Of 5,000 that were due, 60 had not begun, which is more than 1 %."""
    row = with_rate(
        run.variants.get(layer="psycopg"),
        replace(KEPT, ended=4940, backlog=60),
        lag=TIMES,
        service=TIMES,
    )
    row.latency_us = TIMES
    row.save()
    rows = read(run)
    rates = next(line for line in open_loops.rate_table(rows.variants).rows if "500/s" in line[0].text)
    assert [cell.text for cell in rates[7:9]] == ["70.0", "≥ 99.0"]
    (shown,) = latency_table([each for each in rows.variants if each.rate == KEPT.rate]).rows
    assert [cell.text for cell in shown[5:]] == ["70.0", "90.0", "95.0", "≥ 99.0", "400"]
    assert "≥ 99.0" in result.report(rows)
    assert "“≥” marks a percentile that is a lower bound" in open_loops.note()


def test_a_rate_that_could_not_be_held_is_said_in_a_sentence(run: Run) -> None:
    (said,) = open_loops.sentences(read(run).variants)
    assert (
        said
        == "Django ORM · tcp · 1000000/s exponential could not sustain its rate: 1,000,000 operations/s were"
        " due, and 9,000/s ended. Skipped: 3; not begun when the windows closed: 9,000,000."
    )


def test_what_was_due_is_said_and_not_the_rate_that_was_asked_for(run: Run) -> None:
    """Of an exponential schedule more may be due; the judgement is by that, and so is the sentence."""
    found = OpenLoop(50.0, "exponential", due=2555, ended=2467, late=0, skipped=0, backlog=74, seconds=50.0)
    with_rate(run.variants.get(layer="django_orm"), found)
    (said,) = open_loops.sentences(read(run).variants)
    assert "51.1 operations/s were due, and 49.3/s ended." in said


def test_the_answer_counts_the_rates_that_were_held(run: Run) -> None:
    points = {point.question: point for point in answer.points(read(run))}
    held = points["Rates sustained"]
    assert held.sentences == ("1 of 2 variants with a rate sustained it.",)
    assert [line.text for line in held.lines] == open_loops.sentences(read(run).variants)
    assert held.anchor == "rate"


def test_a_variant_whose_requests_all_failed_held_no_rate(run: Run) -> None:
    """None of its slices counts, so it has no figures of an open loop; it had a rate."""
    lost = run.variants.get(layer="libpq", control=0)
    lost.rate, lost.schedule, lost.open_loop = 100.0, "constant", {}
    lost.save()
    held = {point.question: point for point in answer.points(read(run))}["Rates sustained"]
    assert held.sentences == ("1 of 3 variants with a rate sustained it.",)
    assert held.lines[-1].text.endswith(": each slice had a failed request, so none counts.")
    assert "each slice had a failed request" in result.report(read(run))


def test_the_topic_of_the_page_has_them_where_the_run_has_a_rate(run: Run, admin_client: Client) -> None:
    closed = make_results(make_run())
    assert run_page.result(closed).part("rate") is None
    pages = [
        admin_client.get(reverse("admin:pgperf_run_change", args=[each.pk])).content.decode()
        for each in (run, closed)
    ]
    assert ["Operations at a given rate" in page for page in pages] == [True, False]
    assert "could not sustain its rate" in pages[0]


def test_terminal_and_markdown_have_the_table_and_the_sentence(run: Run) -> None:
    rows = read(run)
    for text in (result.report(rows), markdown.markdown(rows)):
        assert "Operations at a given rate" in text
        assert "could not sustain its rate" in text
    assert open_loops.note() in result.report(rows)
    closed = read(make_results(make_run()))
    assert "at a given rate" not in result.report(closed)
    assert "at a given rate" not in markdown.markdown(closed)


def test_terminal_and_markdown_have_the_percentiles_of_the_page(run: Run) -> None:
    """Of the variants with a rate; the page's table has the closed loops too."""
    rows = read(run)
    page = {row[0].text: [cell.text for cell in row] for row in latency_table(rows.variants).rows}
    _caption, _heads, *lines = next(
        part.splitlines()
        for part in result.report(rows).split("\n\n")
        if part.startswith("Latency: time since an operation was due\n")
    )
    found = [re.split(" {2,}", line) for line in lines]
    assert [page[name] for name, *_figures in found] == found
    assert len(found) == 2
    assert "**Latency: time since an operation was due**" in markdown.markdown(rows)
    assert "Latency:" not in result.report(read(make_results(make_run())))


def test_the_page_says_what_latency_means_at_a_rate_and_in_a_closed_loop(run: Run) -> None:
    rows = read(run).variants
    closed = [row for row in rows if row.rate is None]
    assert [latency_table(shown).caption for shown in (closed, open_loops.with_rate(rows), rows, [])] == [
        "Latency: duration of one operation, closed loop",
        "Latency: time since an operation was due",
        "Latency: duration of one operation; at a rate, the time since it was due",
        "Latency: duration of one operation, closed loop",
    ]


def test_json_tells_a_closed_loop_from_an_open_one(run: Run) -> None:
    found = {row.layer: variant_json(row)["open_loop"] for row in run.variants.filter(control=0)}
    assert found["libpq"] is None
    assert found["psycopg"] == {
        "due": 5000, "ended": 5000, "late": None, "skipped": 0, "backlog": 0, "offered_per_s": 500.0,
        "achieved_per_s": 500.0, "held": True,
    }  # fmt: skip
    assert found["django_orm"]["held"] is False


def test_the_answer_is_about_the_closed_loop_as_the_ladder_is(run: Run) -> None:
    for row in run.variants.all():
        row.verdict = stored_verdict()
        row.save()
    (told,) = verdicts.last_of_routes(read(run).variants)
    assert (told.layer, told.rate) == ("psycopg2", None)
    VariantResult.objects.filter(rate=None).delete()
    (told,) = verdicts.last_of_routes(read(Run.objects.get()).variants)
    assert (told.layer, told.rate) == ("django_orm", SHORT.rate)


def test_without_a_latency_limit_no_operation_is_late(run: Run) -> None:
    first, second = open_loops.rate_table(open_loops.with_rate(read(run).variants)).rows
    late = [head.title for head in open_loops.rate_table([]).columns].index("Late or skipped")
    assert first[late].text == "–"
    assert second[late].text.endswith("%")
