"""The sections of a run's page."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pgperf.models import Run
from pgperf.reports import labels
from pgperf.reports.run_page import SECTIONS, TOPICS, result
from tests import factories
from tests.cpu_accounts import CLIENTS, add_cpu_accounts

pytestmark = pytest.mark.django_db


def names(run: Run) -> list[str]:
    return [section.name for section in result(run).sections]


def test_a_run_without_results_has_nothing_to_show() -> None:
    empty = result(factories.make_run(Run.Status.FAILED))
    assert (empty.sections, empty.measured) == ([], False)


def test_a_run_without_cpu_accounts_has_no_cpu_section() -> None:
    run = factories.make_results(factories.make_run())
    assert names(run) == [
        "answer", "ladder", "comparisons", "speed", "latency", "cold", "reading", "environment",
    ]  # fmt: skip
    part = result(run).part("speed")
    assert part is not None
    assert [table.name for table in part["tables"]] == ["throughput", "cpu"]


def test_the_order_of_the_page() -> None:
    run = add_cpu_accounts(factories.make_results(factories.make_run()))
    assert names(run) == [
        "answer", "ladder", "comparisons", "spent", "verdicts", "speed", "latency", "cold", "host", "server", "reading",
        "environment",
    ]  # fmt: skip
    assert [topic.name for topic in result(run).topics] == [
        "answer", "layers", "time", "latency", "host", "server", "method",
    ]  # fmt: skip


def test_every_section_has_a_topic() -> None:
    assert [entry.name for entry in SECTIONS if entry.topic not in TOPICS] == []
    order = list(TOPICS)
    places = [order.index(entry.topic) for entry in SECTIONS]
    assert places == sorted(places)


def test_more_clients_have_curves_and_ladders_of_their_own() -> None:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=CLIENTS)
    found = result(add_cpu_accounts(run))
    scaling, ladder, answer = found.part("scaling"), found.part("ladder"), found.part("answer")
    assert scaling is not None
    assert ladder is not None
    assert answer is not None
    assert len(scaling["cpu"]) == 2 * 3
    loads = [labels.clients_title(count) for count in CLIENTS]
    assert [(load, len(rungs)) for load, rungs in ladder["groups"]] == [(load, 3) for load in loads]
    assert answer["figures"][0].chart["rows"] == [
        ["socket", "1 client"],
        ["tcp", "1 client"],
        ["pgbouncer", "1 client"],
    ]
    assert ladder["groups"][1][1][0].title == "socket · 2 clients"
    scales = {load: rungs[0].chart["max"] for load, rungs in ladder["groups"]}
    assert scales["32 clients"] > 10 * scales["1 client"]


def test_one_number_of_clients_makes_no_curve() -> None:
    run = add_cpu_accounts(factories.make_results(factories.make_run(), clients=(8,)))
    assert "scaling" not in names(run)
    point = {"clients": 8, "ops_per_s": 1.0}
    run.summary["scaling"] = [
        {"workload": "w", "layer": "libpq", "mode": "simple", "route": "tcp", "points": [point]}
    ]
    assert "scaling" not in names(run)


def charts(part: Any) -> Iterator[dict[str, Any]]:
    """Every chart of a section, however deep."""
    if isinstance(part, dict):
        if "kind" in part:
            yield part
        part = list(part.values())
    if isinstance(part, list | tuple):
        for each in part:
            yield from charts(each)
    if chart := getattr(part, "chart", None):
        yield chart


def test_every_chart_is_plain_json_and_none_is_empty() -> None:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=(1, 8))
    found = [chart for section in result(add_cpu_accounts(run)).sections for chart in charts(section.part)]
    assert {chart["kind"] for chart in found} == {"stack", "ladder", "bars", "dots", "lines", "area"}
    for chart in found:
        assert chart["label"]
        assert json.dumps(chart)
        assert chart.get("rows") or chart.get("x")
        assert chart.get("values") or any(any(series["values"]) for series in chart["series"])
