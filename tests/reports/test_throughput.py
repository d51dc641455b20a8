"""Throughput, latency and CPU time of each variant."""

import pytest

from pgperf.models import Run
from pgperf.reports import cpu_accounting
from pgperf.reports import throughput as charts
from tests import factories


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_throughput_and_cpu_have_the_same_rows_without_controls(run: Run) -> None:
    variants = list(run.variants.all())
    throughput, cpu = charts.throughput(variants), cpu_accounting.cpu(variants)
    assert throughput["rows"] == cpu["rows"]
    assert len(throughput["rows"]) == 15 < len(variants)
    assert throughput["values"][0] == variants[0].ops_per_s


def test_unknown_cpu_time_is_empty_not_zero(run: Run) -> None:
    variants = list(run.variants.all())
    variants[3].cpu_us_per_op["server"] = None
    server = next(
        series for series in cpu_accounting.cpu(variants)["series"] if series["colour"] == "cpu-server"
    )
    assert server["values"][2:5] == [21.8, None, 21.8]


def test_the_latency_table_has_the_variation_beside_the_standard_deviation(run: Run) -> None:
    variants = list(run.variants.all())
    variants[1].latency_us = {"mean": 40.0}
    table = charts.latency_table(variants).shown()
    at = table.heads.index("Variation, of the mean")
    assert table.heads[at - 1].startswith("stddev")
    assert [row[at].text for row in table.rows[:2]] == ["31.0 %", "unknown"]


def test_latency_leaves_out_what_has_no_median(run: Run) -> None:
    variants = list(run.variants.all())
    variants[0].latency_us = {"p50": None}
    chart = charts.latency(variants)
    assert len(chart["rows"]) == 14
    assert [series["name"] for series in chart["series"]] == ["p50", "p90", "p95", "p99"]


def test_a_percentile_that_no_variant_has_is_not_in_the_legend(run: Run) -> None:
    variants = list(run.variants.all())
    for variant in variants:
        variant.latency_us = {**variant.latency_us, "p99": None}
    assert [series["name"] for series in charts.latency(variants)["series"]] == ["p50", "p90", "p95"]


def test_a_phase_that_no_variant_has_is_no_column(run: Run) -> None:
    variants = list(run.variants.all())
    titles = [column.title for column in charts.cold_table(variants).columns]
    for variant in variants:
        variant.cold_us = {**variant.cold_us, "other_query_first": None, "other_query_second": None}
    assert titles[-2:] == ["Other query, first", "Other query, second"]
    assert [column.title for column in charts.cold_table(variants).columns] == titles[:-2]


def test_a_variant_without_results_is_not_drawn(run: Run) -> None:
    variant = run.variants.first()
    assert variant is not None
    variant.ops_per_s, variant.cpu_us_per_op, variant.latency_us = None, {}, {}
    assert charts.throughput([variant])["values"] == [None]
    assert cpu_accounting.cpu([variant])["series"] == []
    assert charts.latency([variant])["rows"] == []


def test_unknown_is_a_word(run: Run) -> None:
    table = cpu_accounting.cpu_table(list(run.variants.all()))
    cell = table.rows[-1][-1]
    assert (cell.text, cell.value, cell.mark) == ("unknown", None, "unknown")


def test_an_unknown_role_has_no_column(run: Run) -> None:
    variants = list(run.variants.all())
    for variant in variants:
        variant.cpu_us_per_op["pooler"] = None
    table = cpu_accounting.cpu_table(variants)
    assert table.heads == (
        "Variant",
        "Client, user, µs",
        "Client, system, µs",
        "Server, µs",
        "Unattributed, µs",
    )
    assert table.caption == "CPU time per operation; not known here: pooler"
