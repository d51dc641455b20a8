"""Published figures beside measured ones: only of the benchmark and the configuration that reproduce
them.
"""

from collections.abc import Iterator
from statistics import geometric_mean
from typing import Any

import pytest

from benchmarks import published_c, published_d
from example.stack import web_steps
from pgperf.catalog import BENCHMARKS
from pgperf.catalog.published import PUBLICATIONS
from pgperf.core.delayed_routes import apart
from pgperf.models import Run
from pgperf.reports import connections, run_page, suite
from pgperf.reports.run_rows import RunRows, read
from tests.catalog_runs import make_catalog_run
from tests.kept_rows import kept
from tests.reports.reading import texts


def test_each_publication_is_of_a_catalog_benchmark_that_has_its_configurations() -> None:
    assert set(PUBLICATIONS) - set(BENCHMARKS) == {"site-steps"}  # the example site has it
    for name in set(PUBLICATIONS) & set(BENCHMARKS):
        publication, benchmark = PUBLICATIONS[name], BENCHMARKS[name]
        assert publication.connections in {count * benchmark.workers for count in benchmark.clients}
        for figure in publication.figures:
            assert figure.layer in benchmark.layers
            assert figure.connect in benchmark.connection_modes
            assert not figure.routes or set(figure.routes) & set(benchmark.routes)
            assert figure.workload in ("", *(work.name for work in benchmark.workloads))


def test_the_steps_of_the_site_are_those_of_the_stack() -> None:
    figures = PUBLICATIONS["site-steps"].figures
    routes = {apart(route)[0] for figure in figures for route in figure.routes}
    assert routes <= set(web_steps.STEPS)
    assert {apart(route)[1] for figure in figures for route in figure.routes} == {0.0, 45.0}


def test_the_figures_are_those_of_the_benchmarks_that_judge_the_conclusions() -> None:
    drivers = PUBLICATIONS["driver-suite-published"].figures
    written = published_d.MEASURES[0].published
    for layer, (_mean, *values) in written.items():
        assert [each.ops_per_s for each in drivers if each.layer == layer] == values
    assert {each.layer for each in drivers} == set(written)
    poolers = PUBLICATIONS["connection-cost"].figures
    assert [(each.ops_per_s, each.excluding) for each in poolers] == [published_c.DIRECT, published_c.POOLED]


@pytest.fixture(scope="module")
def runs(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, int]]:
    """The number of a run of each of these benchmarks."""
    with kept(django_db_blocker):
        yield {name: make_catalog_run(name).pk for name in ("driver-suite-published", "connection-cost")}


@pytest.fixture
def drivers(runs: dict[str, int], db: None) -> Run:
    return Run.objects.get(pk=runs["driver-suite-published"])


def test_a_suite_has_the_published_ratios_as_marks_and_in_a_table(drivers: Run) -> None:
    simple, _prepared = settings = suite.settings(read(drivers))
    chart = suite.bars(simple, settings)
    assert chart["overlay"] == "published figures"
    marks = {series["name"]: series["marks"] for series in chart["series"]}
    assert marks["psycopg 3"][0] == pytest.approx(804.45 / 246.18)
    assert set(marks["psycopg2"]) == {None}  # the base: 1 by itself
    table = suite.published_table(simple, settings)
    assert len(table.rows) == 7 * 3 + 3
    assert texts(table)[0][:3] == ["pg_type", "psycopg2", "246"]
    part: Any = run_page.result(drivers).part("suite")
    assert "Timescale" in part["source"]


def test_the_published_figures_end_with_their_geometric_means(drivers: Run) -> None:
    simple, _prepared = settings = suite.settings(read(drivers))
    means = suite.published_table(simple, settings).rows[-3:]
    assert [row[0].text for row in means] == ["geometric mean"] * 3
    published = {row[1].text: row[2].value for row in means}
    for name, layer in (
        ("psycopg2", "psycopg2"),
        ("psycopg 3", "psycopg"),
        ("psycopg 3 (async, uvloop)", "psycopg_async_uvloop"),
    ):
        assert published[name] == pytest.approx(published_d.MEASURES[0].published[layer][0], abs=0.006)
        own = [row.ops_per_s for row in simple.variants if row.layer == layer]
        here = next(row for row in means if row[1].text == name)[3].value
        assert here == pytest.approx(geometric_mean(own))
    assert [row[4].text for row in means] == ["×1.000", "×0.915", "×1.160"]


def test_the_ratios_here_are_quotients_of_the_figures_here(drivers: Run) -> None:
    """As the published ones are of the published figures. Throughput counts interruptions in full."""
    simple, _prepared = settings = suite.settings(read(drivers))
    *rows, _one, _two, _three = suite.published_table(simple, settings).rows
    means = suite.published_table(simple, settings).rows[-3:]
    here = {(row[0].text, row[1].text): row[3].value for row in rows}
    ratios: dict[str, list[float]] = {}
    for row in rows:
        expected = here[row[0].text, row[1].text] / here[row[0].text, "psycopg2"]
        assert row[5].value == pytest.approx(expected)
        ratios.setdefault(row[1].text, []).append(expected)
    assert {row[1].text: row[5].value for row in means} == pytest.approx(
        {name: geometric_mean(own) for name, own in ratios.items()}
    )


def test_the_means_are_over_the_workloads_that_each_published_layer_has(drivers: Run) -> None:
    drivers.variants.filter(workload="pg_type", layer="psycopg", mode="simple").delete()
    simple, _prepared = settings = suite.settings(read(drivers))
    means = suite.published_table(simple, settings).rows[-3:]
    others = (626.67, 2099.09, 1091.84, 44.44, 13.26, 9249.65)
    assert means[0][2].value == pytest.approx(geometric_mean(others))


def test_a_layer_without_published_figures_has_no_mark(drivers: Run) -> None:
    _simple, prepared = settings = suite.settings(read(drivers))
    marks = {series["name"]: series["marks"] for series in suite.bars(prepared, settings)["series"]}
    assert set(marks["asyncpg (uvloop)"]) == {None}


@pytest.mark.parametrize(("field", "value"), [("workers", 9), ("benchmark_name", "driver-suite-copy")])
def test_another_configuration_or_benchmark_has_no_overlay(drivers: Run, field: str, value: Any) -> None:
    if field == "workers":
        drivers.variants.update(workers=value)
    else:
        drivers.benchmark_name = value
    rows = read(drivers)
    assert rows.published == {}
    settings = suite.settings(rows)
    assert [suite.bars(each, settings)["overlay"] for each in settings] == ["", ""]
    assert [len(suite.published_table(each, settings).rows) for each in settings] == [0, 0]
    part: Any = run_page.result_of(rows).part("suite")
    assert part["source"] == ""


def test_layers_of_one_colour_have_different_tints(drivers: Run) -> None:
    simple, _prepared = settings = suite.settings(read(drivers))
    tints = {series["name"]: series["tint"] for series in suite.bars(simple, settings)["series"]}
    assert (tints["psycopg2"], tints["psycopg 3"], tints["psycopg 3 (async, uvloop)"]) == (0, 0, 1)


@pytest.fixture
def cost(runs: dict[str, int], db: None) -> RunRows:
    return read(Run.objects.get(pk=runs["connection-cost"]))


def test_connecting_has_the_published_throughput_beside_the_one_thread_of_pgbench(cost: RunRows) -> None:
    shown = connections.reconnecting(cost.variants)
    chart = connections.throughput(shown, cost.published)
    marks = {series["name"]: [mark for mark in series["marks"] if mark] for series in chart["series"]}
    assert marks == {
        "including connecting": [67.5, 1013.0],
        "excluding": [],
        "excluding, by old pgbench": [15_423.0, 2_766.0],
    }
    rows = {row[0]: row[-2:] for row in texts(connections.throughput_table(shown, cost.published))}
    assert rows["pgbench -j 1 · tcp · 20 clients · per operation"] == ["67.5", "15,423"]
    assert rows["pgbench · tcp · 20 clients · per operation"] == ["–", "–"]


def test_the_published_gain_names_the_login_that_it_needs(cost: RunRows) -> None:
    """The benchmark's own routes log in by SCRAM, with which a pooler saves little."""
    part: Any = run_page.result(cost.run).part("connections")
    for told in (part["source"], BENCHMARKS["connection-cost"].description):
        assert "without a password" in told
        assert "--routes tcp_trust,pgbouncer_trust" in told


def test_the_ladders_of_connection_modes_have_titles_and_scales_of_their_own(cost: RunRows) -> None:
    part: Any = run_page.result(cost.run).part("ladder")
    loads = [load for load, _rungs in part["groups"]]
    assert loads == [f"20 clients · {mode}" for mode in ("persistent", "per operation", "pool", "request")]
    titles = [rung.title for _load, rungs in part["groups"] for rung in rungs]
    assert len(titles) == len(set(titles)) == 8
    answer: Any = run_page.result(cost.run).part("answer")
    split = next(figure for figure in answer["figures"] if figure.name == "split")
    assert split.chart["rows"] == [["tcp", "persistent"], ["pgbouncer", "persistent"]]
