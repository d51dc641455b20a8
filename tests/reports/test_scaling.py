"""Curves over the number of clients."""

from dataclasses import replace

import pytest

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.open_loop import OpenLoop
from pgperf.analysis.scaling import Curve, Point
from pgperf.models import Run
from pgperf.reports import run_page, scaling
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read
from tests import factories
from tests.cpu_accounts import add_cpu_accounts
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db
COUNTS = (1, 2, 8)


@pytest.fixture
def run() -> Run:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=COUNTS)
    return add_cpu_accounts(run)


def curves(run: Run) -> list[Curve]:
    return read(run).scaling


def test_a_line_for_each_layer_over_each_route(run: Run) -> None:
    series = curves(run)
    throughput, median, tail = (chart for _title, chart in scaling.curves(series))
    assert throughput["x"] == list(COUNTS)
    assert [line["name"] for line in throughput["series"]][:4] == [
        "libpq (C) · socket", "libpq (C) · tcp", "libpq (C) · pgbouncer", "Django ORM · socket",
    ]  # fmt: skip
    assert [line["shape"] for line in throughput["series"]] == [0, 1, 2, 0, 1, 2]
    points = series[0].points
    assert throughput["series"][0]["values"] == [point.ops_per_s for point in points]
    assert throughput["series"][0]["intervals"] == [[point.low, point.high] for point in points]
    assert tail["series"][0]["values"] == [point.p99_us for point in points]
    assert (throughput["log"], median["log"], tail["log"]) == (False, True, True)


def test_a_number_of_clients_that_was_not_measured_leaves_a_gap(run: Run) -> None:
    series = curves(run)
    first, *others = series
    shorter = replace(first, points=(first.points[0], *first.points[2:]))
    chart = scaling.curves([shorter, *others])[0][1]
    assert chart["x"] == list(COUNTS)
    assert [value is None for value in chart["series"][0]["values"]] == [False, True, False]
    assert chart["series"][0]["intervals"][1] is None


def test_the_cpu_charts_of_all_curves_share_scale_and_roles(run: Run) -> None:
    charts = [chart for _title, chart in scaling.cpu_curves(curves(run))]
    assert len(charts) == 6
    assert len({chart["max"] for chart in charts}) == 1
    assert len({tuple(series["name"] for series in chart["series"]) for chart in charts}) == 1
    row = run.variants.get(label="libpq · socket · 8 clients")
    assert charts[0]["series"][0]["values"][2] == 100 * row.cpu_account["share"]["clients"]


def test_unknown_cpu_shares_are_not_drawn(run: Run) -> None:
    run.variants.filter(layer="libpq").update(cpu_account={})
    titles = [title for title, _chart in scaling.cpu_curves(curves(run))]
    assert titles == ["Django ORM · socket", "Django ORM · tcp", "Django ORM · pgbouncer"]
    table = scaling.scaling_table(curves(run)).shown()
    assert texts(table)[0][-1] == "unknown"


@pytest.mark.parametrize(("share", "end"), [(0.004, 1), (0.09, 10), (0.41, 50), (0.51, 100), (1.01, 100)])
def test_the_scale_ends_at_a_round_value(share: float, end: int) -> None:
    assert scaling.whole([CpuShares(clients=share, idle=0.9), CpuShares()]) == end


def test_the_table_has_the_points(run: Run) -> None:
    table = scaling.scaling_table(curves(run)).shown()
    first = texts(table)[0]
    assert first[:2] == ["libpq (C) · socket", "1"]
    assert first[4] == "100 %"
    assert len(table.rows) == 2 * 3 * len(COUNTS)
    assert table.rows[2][2].value == run.summary["scaling"][0]["points"][2]["ops_per_s"]


def test_a_title_names_the_fields_that_differ() -> None:
    one = Curve("w", "libpq", "simple", "tcp", ())
    assert scaling.series_title(one, [one]) == "libpq (C) · tcp"
    assert scaling.series_title(one, [one, replace(one, mode="prepared")]) == "libpq (C) · tcp · simple"
    other = replace(one, connect="per_operation")
    assert scaling.series_title(other, [one, other]) == "libpq (C) · tcp · per operation"


def test_clients_with_several_workers_are_counted_by_connections(run: Run) -> None:
    for curve in run.summary["scaling"]:
        curve["workers"] = 10
    series = curves(run)
    assert scaling.unit(series) == "connections"
    titles = [chart["x_axis"] for _title, chart in (*scaling.curves(series), *scaling.cpu_curves(series))]
    assert set(titles) == {"connections"}
    table = scaling.scaling_table(series)
    assert table.heads[1] == "Connections"
    assert table.caption == "Throughput, time and CPUs by connections"


def test_the_section_of_clients_with_several_workers_has_their_name(run: Run) -> None:
    def title() -> str:
        return next(each.title for each in run_page.result(run).sections if each.name == "scaling")

    assert title() == "More clients"
    for curve in run.summary["scaling"]:
        curve["workers"] = 10
    assert title() == "More connections"


def test_at_a_rate_there_is_no_efficiency(run: Run) -> None:
    for curve in run.summary["scaling"]:
        curve["rate"] = 100.0
    table = scaling.scaling_table(curves(run))
    at = table.heads.index("Efficiency")
    assert {(row[at].text, *row[at].values, *row[at + 1].values) for row in table.rows} == {
        ("–", *[None] * 3)
    }
    points = run_json(run)["scaling"][0]["points"]
    assert [(point["efficiency"], point["efficiency_low"]) for point in points] == [(None, None)] * len(
        COUNTS
    )


def test_a_percentile_that_is_a_lower_bound_is_marked_as_elsewhere(run: Run) -> None:
    """Of 5,000 that were due, 60 had not begun."""
    found = OpenLoop(500.0, "constant", due=5000, ended=4940, late=None, skipped=0, backlog=60, seconds=10.0)
    row = run.variants.get(label="libpq · tcp · 8 clients")
    row.rate, row.schedule, row.open_loop = found.rate, found.schedule, found.to_json()
    row.phases_us = dict.fromkeys(("lag", "service"), row.latency_us)
    row.save()
    for curve in run.summary["scaling"]:
        if (curve["layer"], curve["route"]) == ("libpq", "tcp"):
            curve["rate"] = found.rate
    run.save()
    rows = read(run)
    section = run_page.result(run).part("scaling")
    assert section
    for table in (section["table"], scaling.all_points(rows)):
        titles = [column.title for column in table.columns]
        marked = [
            (line[1].text, title)
            for line in table.rows
            for title, cell in zip(titles, line, strict=True)
            if cell.text.startswith("≥")
        ]
        assert marked == [("8", "p99")]


def test_no_two_curves_have_the_same_name_or_look() -> None:
    one = Curve("w", "psycopg", "simple", "tcp", (Point(1, 10.0), Point(2, 19.0)))
    others = [
        {"workers": 10}, {"connect": "per_operation"}, {"layer": "psycopg_c"}, {"mode": "prepared"},
        {"route": "socket"}, {"layer": "libpq"}, {"workload": "v"}, {"environment": "old"}, {"rate": 100.0},
    ]  # fmt: skip
    chart = scaling.curves([one, *(replace(one, **each) for each in others)])[0][1]
    assert len({line["name"] for line in chart["series"]}) == len(others) + 1
    looks = {(line["colour"]["light"], line["shape"], line["tint"]) for line in chart["series"]}
    assert len(looks) == len(others) + 1
    assert {line["shape"] for line in chart["series"]} == {0, 1, 2, 3}


def test_one_process_and_several_are_told_apart() -> None:
    one = Curve("w", "psycopg", "simple", "tcp", ())
    assert scaling.series_title(one, [one, replace(one, workers=10)]) == "psycopg 3 · tcp · 1 worker"
    assert scaling.series_title(one, [one, replace(one, layer="libpq", workers=10)]) == "psycopg 3 · tcp"
