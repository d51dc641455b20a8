"""What a run says of its searches for the highest rate: found, or why there is no number."""

import csv
import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.analysis.grade import Disturbance, Grade, GradeWord, Source
from pgperf.analysis.rate_search import Outcome, RateSearch, Step
from pgperf.cli import export, markdown, result
from pgperf.models import Run
from pgperf.reports import chart_findings, rate_searches, run_page, svg_chart
from pgperf.reports.run_json import rows_json
from pgperf.reports.run_rows import read
from pgperf.reports.svg_chart import curves
from tests.factories import make_results, make_run, stored_verdict

pytestmark = pytest.mark.django_db

#: Of a capacity of 1,000/s: rates, and how many of 1,000 operations were over the limit.
TRIED = ((500, 0), (250, 0), (800, 0), (900, 5), (904, 30), (1000, 400))
FOUND = {"rate": 890.0, "low": 850.0, "high": 930.0, "share": 0.89, "share_low": 0.86, "share_high": 0.92}


def step(rate: float, over: int, round_: int = 0, p99_us: float | None = 9000.0) -> Step:
    return Step(0, round_, rate, 1000.0, 1000, over, 400.0, 900.0, p99_us)


def search(layer: str, outcome: str = Outcome.FOUND, **changes: Any) -> RateSearch:
    fields: dict[str, Any] = {
        "variant": f"{layer} · tcp · highest rate exponential", "reference": f"{layer} · tcp", "workload": "w",
        "layer": layer, "mode": "simple", "route": "tcp", "clients": 1, "workers": 1, "connect": "persistent",
        "environment": "default", "schedule": "exponential", "limit_ms": 10.0, "outcome": outcome,
        "grade": "good", "capacity": 1000.0, "steps": tuple(step(*each) for each in TRIED),
        **(FOUND if outcome == Outcome.FOUND else {}),
    }  # fmt: skip
    return RateSearch(**{**fields, **changes})


def with_searches(run: Run, *found: RateSearch) -> Run:
    run.summary["rate_searches"] = json.loads(json.dumps([each.to_json() for each in found]))
    run.save()
    return run


@pytest.fixture
def run() -> Run:
    """A search that found a rate, and three that did not."""
    run = make_results(make_run(), routes=("tcp",))
    layers = [row.layer for row in run.variants.filter(control=0)]
    disturbed = run.variants.filter(control=0)[1]
    stolen = Disturbance(Source.STEAL, "host", us=40.0, share=0.2)
    disturbed.verdict = stored_verdict(grade=Grade(GradeWord.POOR, 0.4, (stolen,)))
    disturbed.save()
    outcomes = (Outcome.FOUND, Outcome.DISTURBED, Outcome.NONE_HOLDS, Outcome.ALL_HOLD)
    return with_searches(run, *(search(*each) for each in zip(layers, outcomes, strict=False)))


def test_each_search_has_a_sentence_with_its_number_or_the_reason(run: Run) -> None:
    found, disturbed, none, all_ = rate_searches.sentences(read(run))
    assert "up to 890 operations/s (95 % interval 850 … 930)" in found
    assert "stays under 10 ms. That is 89.0 % of the 1,000 operations/s" in found
    assert "because the measurement was much disturbed: " in disturbed
    assert "(at most 40" in disturbed
    assert "exceeds 10 ms at every rate that was tried, from 250 operations/s on" in none
    assert "stays under 10 ms at every rate that was tried, up to 1,000 operations/s" in all_


def test_a_search_without_a_number_shows_none(run: Run) -> None:
    for row in rate_searches.search_table(read(run)).rows[1:]:
        assert [cell.text for cell in row[3:7]] == ["–"] * 4
        assert row[8].text == "undisturbed"
        assert row[3].value is None


def test_neighbouring_steps_are_one_point_and_too_few_operations_no_percentile() -> None:
    points = search("libpq").points()
    assert [round(point.rate) for point in points] == [250, 500, 800, 902, 1000]
    assert [point.slices for point in points] == [1, 1, 1, 2, 1]
    assert points[3].over_share == pytest.approx(0.0175)
    (unknown,) = search("libpq", steps=(step(100.0, 0, p99_us=None),)).points()
    assert (unknown.p50_us, unknown.p99_us) == (400.0, None)


def test_the_chart_marks_the_knee_and_the_limit(run: Run) -> None:
    (title, chart), *others = rate_searches.curves(read(run))
    assert title
    assert chart["knee"] == [850.0, 890.0, 930.0]
    assert (chart["limit"], chart["axis"]) == (10.0, "ms, logarithmic")
    assert [len(series["values"]) for series in chart["series"]] == [5, 5, 5]
    assert chart_findings.finding(chart) == rate_searches.sentences(read(run))[0]
    drawn = svg_chart.svg(chart, "rates")
    assert drawn.count('class="dashed"') == 2
    assert drawn.count('class="band"') == 1
    assert [key.shape for key in svg_chart.legend(chart)] == ["circle", "rect", "triangle"]
    for _title, other in others:
        assert other["knee"] == [None, None, None]
        assert svg_chart.svg(other, "rates").count('class="dashed"') == 1


def test_percentiles_that_are_lower_bounds_are_marked_and_explained() -> None:
    """Of 1,000 operations at the highest rate, 100 had not begun: a tenth."""
    run = make_results(make_run(), routes=("tcp",))
    steps = (step(500.0, 0), replace(step(1100.0, 600), backlog=100))
    rows = read(with_searches(run, search("libpq", steps=steps)))
    shown = [[cell.text for cell in line[-3:]] for line in rate_searches.curve_table(rows).rows]
    assert shown == [["400", "900", "9,000"], ["400", "≥ 900", "≥ 9,000"]]
    assert "“≥” marks a percentile that is a lower bound" in rate_searches.note()


def test_a_chart_without_any_percentile_is_drawn() -> None:
    run = make_results(make_run(), routes=("tcp",))
    empty = search("libpq", Outcome.NONE_HOLDS, steps=(Step(0, 0, 5.0, 1000.0, 1, 1, None, None, None),))
    ((_title, chart),) = rate_searches.curves(read(with_searches(run, empty)))
    assert "<svg" in svg_chart.svg(chart, "rates")


@pytest.mark.parametrize("limit_ms", [0.1, 10.0, 500.0])
def test_the_limit_is_in_the_chart_wherever_the_latencies_are(limit_ms: float) -> None:
    """A line below the axis would be across its numbers."""
    run = make_results(make_run(), routes=("tcp",))
    ((_title, chart),) = rate_searches.curves(read(with_searches(run, search("libpq", limit_ms=limit_ms))))
    y = curves._frame(chart).y
    assert y.end - 1e-6 <= y.at(chart["limit"]) <= y.start + 1e-6


def test_the_topic_of_the_page_has_them(run: Run, admin_client: Client) -> None:
    plain = make_results(make_run())
    assert run_page.result(plain).part("rate_search") is None
    pages = [
        admin_client.get(reverse("admin:pgperf_run_change", args=[each.pk])).content.decode()
        for each in (run, plain)
    ]
    assert ["The highest rate" in page for page in pages] == [True, False]
    assert "up to 890 operations/s" in pages[0]
    assert pages[0].count('<canvas data-chart="chart-rate-') == 4


def test_terminal_and_markdown_have_sentence_and_tables(run: Run) -> None:
    rows = read(run)
    for text in (result.report(rows), markdown.markdown(rows)):
        assert "up to 890 operations/s" in text
        assert "Latency over the rate" in text
    plain = read(make_results(make_run()))
    assert "highest rate" not in result.report(plain) + markdown.markdown(plain)


def test_json_has_each_step(run: Run) -> None:
    found = rows_json(read(run))["rate_searches"]
    assert [each["outcome"] for each in found] == ["found", "disturbed", "none_holds", "all_hold"]
    assert (found[0]["rate"], found[0]["low"], found[0]["high"]) == (890.0, 850.0, 930.0)
    assert (found[1]["rate"], found[1]["share"]) == (None, None)
    assert [one["over"] for one in found[0]["steps"]] == [0, 0, 0, 5, 30, 400]
    assert rows_json(read(make_results(make_run())))["rate_searches"] == []


def test_files_have_a_row_for_each_search_and_for_each_step(run: Run) -> None:
    searches, steps = (
        list(csv.DictReader(export.TABLES[name](run).splitlines()))
        for name in ("rate-searches", "rate-steps")
    )
    assert [(row["outcome"], row["rate"], row["slices"]) for row in searches] == [
        ("found", "890.0", "6"), ("disturbed", "", "6"), ("none_holds", "", "6"), ("all_hold", "", "6"),
    ]  # fmt: skip
    assert (searches[0]["schedule"], searches[0]["hosts"]) == ("exponential", "0")
    assert len(steps) == 24
    assert (steps[3]["rate"], steps[3]["share"], steps[3]["over"], steps[3]["holds"]) == (
        "900",
        "0.9",
        "5",
        "True",
    )


def test_files_of_runs_without_a_search_have_the_columns_only(admin_client: Client) -> None:
    run = make_results(make_run())
    for name in ("rate-searches.csv", "rate-steps.csv"):
        response = admin_client.get(reverse("admin:pgperf_run_download", args=[run.pk, name]))
        assert response.status_code == 200
        assert len(response.content.decode().splitlines()) == 1


def test_a_search_without_its_closed_loop_has_no_chart() -> None:
    run = make_results(make_run(), routes=("tcp",))
    rows = read(with_searches(run, search("libpq", Outcome.UNKNOWN, capacity=None)))
    assert rate_searches.curves(rows) == []
    assert rate_searches.curve_table(rows).rows == []
    (said,) = rate_searches.sentences(rows)
    assert said.endswith("too little was measured for a highest rate.")
