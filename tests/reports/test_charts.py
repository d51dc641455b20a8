"""Rows to chart data."""

import json

import pytest

from pgperf.models import Run
from pgperf.reports import charts
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return factories.make_results(factories.make_run())


def test_the_segments_of_a_bar_add_up_to_the_last_rung(run: Run) -> None:
    ladders = run.summary["ladders"]
    chart = charts.time_split(ladders)
    for row, ladder in enumerate(ladders):
        total = sum(series["values"][row] for series in chart["series"])
        assert total == pytest.approx(ladder["steps"][-1]["us"])
    assert chart["rows"] == [["socket"], ["tcp"], ["pgbouncer"]]
    assert [series["name"] for series in chart["series"]] == [
        "libpq (C)",
        "psycopg 3",
        "Django cursor",
        "Django ORM",
    ]


def test_each_rung_stands_on_the_one_below_and_side_rungs_on_the_first(run: Run) -> None:
    ladders = run.summary["ladders"]
    chart = charts.ladder_chart(ladders[0], ladders)
    assert chart["stands_on"] == [-1, 0, 1, 2, 0]
    assert chart["values"] == [rung["us"] for rung in (*ladders[0]["steps"], *ladders[0]["side"])]
    assert chart["whiskers"][0] == [ladders[0]["steps"][0]["low"], ladders[0]["steps"][0]["high"]]
    assert chart["rows"][-1] == ["psycopg2", "beside"]


def test_all_ladders_share_one_scale(run: Run) -> None:
    ladders = run.summary["ladders"]
    highest = max(step["high"] for ladder in ladders for step in ladder["steps"])
    assert {charts.ladder_chart(ladder, ladders)["max"] for ladder in ladders} == {highest}


def test_a_very_long_whisker_does_not_flatten_the_bars(run: Run) -> None:
    ladders = run.summary["ladders"]
    longest = max(step["us"] for ladder in ladders for step in ladder["steps"])
    ladders[0]["steps"][0]["high"] = 100 * longest
    assert charts.ladder_chart(ladders[0], ladders)["max"] == 2 * longest


def test_a_ladder_s_title_says_what_tells_it_apart() -> None:
    one = {"route": "tcp", "mode": "simple", "clients": 1, "placement": "apart"}
    assert charts.ladder_title(one, [one]) == "tcp"
    assert charts.ladder_title(one, [one, one | {"clients": 8}]) == "tcp · 1 clients"
    assert charts.ladder_title(one, [one, one | {"mode": "prepared"}]) == "tcp · simple"


def test_throughput_and_cpu_have_the_same_rows_without_controls(run: Run) -> None:
    variants = list(run.variants.all())
    throughput, cpu = charts.throughput(variants), charts.cpu(variants)
    assert throughput["rows"] == cpu["rows"]
    assert len(throughput["rows"]) == 15 < len(variants)
    assert throughput["values"][0] == variants[0].ops_per_s


def test_unknown_processor_time_is_empty_not_zero(run: Run) -> None:
    variants = list(run.variants.all())
    unattributed = next(
        series for series in charts.cpu(variants)["series"] if series["colour"] == "cpu-unattributed"
    )
    assert unattributed["values"][-1] is None


def test_latency_leaves_out_what_has_no_median(run: Run) -> None:
    variants = list(run.variants.all())
    variants[0].latency_us = {"p50": None}
    chart = charts.latency(variants)
    assert len(chart["rows"]) == 14
    assert [series["name"] for series in chart["series"]] == ["p50", "p90", "p95", "p99"]


def test_an_unknown_layer_keeps_its_own_name() -> None:
    assert charts.layer_title("asyncpg_of_tomorrow") == "asyncpg_of_tomorrow"


def test_every_chart_is_plain_json(run: Run) -> None:
    variants, ladders = list(run.variants.all()), run.summary["ladders"]
    made = [charts.time_split(ladders), charts.ladder_chart(ladders[0], ladders)]
    made += [charts.throughput(variants), charts.cpu(variants), charts.latency(variants)]
    assert all(chart["label"] and json.dumps(chart) for chart in made)


def test_a_variant_without_results_is_drawn_as_nothing(run: Run) -> None:
    variant = run.variants.first()
    assert variant is not None
    variant.ops_per_s, variant.cpu_us_per_op, variant.latency_us = None, {}, {}
    assert charts.throughput([variant])["values"] == [None]
    assert charts.cpu([variant])["series"] == []
    assert charts.latency([variant])["rows"] == []


def _climb(driver: str, *layers: str) -> charts.Ladder:
    steps = [{"layer": layer, "us": 10.0 * at, "step_us": 10.0} for at, layer in enumerate(layers, 1)]
    return {"route": "socket", "mode": "simple", "driver": driver, "steps": steps}


def test_two_ladders_are_split_by_the_same_parts_in_the_order_of_the_rungs() -> None:
    own = _climb("psycopg", "libpq", "psycopg", "django_cursor", "django_orm")
    other = _climb("psycopg2", "libpq", "psycopg2", "django_cursor_psycopg2", "django_orm_psycopg2")
    chart = charts.time_split([own, other])
    assert chart["rows"] == [["socket", "psycopg"], ["socket", "psycopg2"]]
    assert [(series["name"], series["values"]) for series in chart["series"]] == [
        ("libpq (C)", [10.0, 10.0]),
        ("psycopg 3", [10.0, None]),
        ("psycopg2", [None, 10.0]),
        ("Django cursor", [10.0, 10.0]),
        ("Django ORM", [10.0, 10.0]),
    ]


def test_the_same_on_another_driver_or_implementation_has_the_same_colour() -> None:
    assert charts.colour("django_orm_psycopg2") == charts.colour("django_orm") == "layer-django_orm"
    assert charts.colour("psycopg_python") == charts.colour("psycopg") == "layer-psycopg"
    assert charts.colour("psycopg2") == "layer-psycopg2"


def test_what_was_left_out_has_a_name_that_people_know() -> None:
    assert charts.left_out_title("django_orm_psycopg2/extended") == "Django ORM on psycopg2, extended"
    assert charts.left_out_title("libpq") == "libpq (C)"
