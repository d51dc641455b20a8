"""Steps of a web site at a fixed rate."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pgperf.cli import markdown, text_table
from pgperf.cli import result as terminal
from pgperf.models import Run
from pgperf.reports import markdown_table, staircases, step_latency
from pgperf.reports.run_page import result
from pgperf.reports.run_rows import read
from tests import factories, site_steps
from tests.site_steps import STEPS

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed() -> Run:
    return site_steps.make_run(benchmark=factories.make_benchmark("site-steps"))


@pytest.fixture
def at_rate(closed: Run) -> Run:
    return site_steps.at_rate(closed, 2)


def staircase(run: Run) -> staircases.Staircase:
    (found,) = staircases.found(read(run))
    return found


@pytest.mark.parametrize(
    ("slowest", "rate"), [(4.0, 2.0), (4.7, 2.3), (417.0, 200.0), (0.0337, 0.016), (None, None)]
)
def test_the_rate_is_half_of_the_slowest_step(closed: Run, slowest: float | None, rate: float | None) -> None:
    closed.variants.update(ops_per_s=1000)
    closed.variants.filter(route="web_tls").update(ops_per_s=slowest)
    assert step_latency.rate_for(staircase(closed)) == (None if rate is None else pytest.approx(rate))


def test_a_closed_loop_says_how_to_measure_percentiles(closed: Run) -> None:
    found = staircase(closed)
    assert "pgperf run site-steps --rates 2." in step_latency.advice(found, "site-steps")
    assert step_latency.percentiles(found) is None
    assert step_latency.percentile_table(found, [found]).rows == []


def test_a_run_at_a_rate_shows_the_percentiles_of_each_step(at_rate: Run) -> None:
    found = staircase(at_rate)
    assert step_latency.advice(found, "site-steps") == ""
    chart = step_latency.percentiles(found)
    assert chart is not None
    assert [row[0] for row in chart["rows"]] == list(STEPS)
    by_name = {series["name"]: series["values"][0] for series in chart["series"]}
    assert by_name == {"p50": 250, "p90": 500, "p95": 750, "p99": 1000}
    table = step_latency.percentile_table(found, [found])
    assert table.caption == "Response time of each step at 2 operations/s, 20 clients"
    assert table.shown().heads[2:5] == ("p50, ms", "p90, ms", "p95, ms")
    first, second, *_others = table.shown().rows
    assert [cell.text for cell in first] == [
        "web_apache", "no", "250", "≥ 500", "≥ 750", "≥ 1,000", "1,250", "0",
    ]  # fmt: skip
    assert [cell.text for cell in second][:2] == ["web_nginx", "yes"]


def test_at_a_rate_no_step_has_an_effect_on_requests_per_second(at_rate: Run) -> None:
    """All of them have the rate, and the published figures are those of a closed loop."""
    found = staircase(at_rate)
    assert not any(step.own or step.total for step in found.steps)
    assert staircases.headlines(found) == []
    assert found.figures == {}
    part = result(at_rate).part("staircase")
    assert part is not None
    assert part["staircases"][0]["effects"]["rows"] == []
    assert part["note"] == "", "it explains the effects"
    assert part["source"] == "", "no published figure is beside it"


def test_the_answer_shows_what_a_visitor_waits_and_in_a_closed_loop_the_throughput(closed: Run) -> None:
    def first() -> tuple[str, str]:
        part: Any = result(closed).part("answer")
        figure = part["figures"][0]
        return figure.title, figure.chart["kind"]

    assert first() == ("Requests per second of each step", "groups")
    site_steps.at_rate(closed, 2)
    assert first() == ("Percentiles of the response time of each step", "dots")


def test_terminal_and_markdown_have_the_table_of_the_page(at_rate: Run) -> None:
    rows = read(at_rate)
    part = result(at_rate).part("staircase")
    assert part is not None
    table = part["staircases"][0]["percentile_table"]
    assert text_table.text(table) in terminal.report(rows).split("\n\n")
    assert markdown_table.table(table) in markdown.markdown(rows)
    first = terminal.report(rows).split("\n\n")[1].splitlines()[2]
    assert re.split(" {2,}", first) == [cell.text for cell in table.shown().rows[0]]


def test_the_terminal_says_how_to_measure_percentiles_after_a_closed_loop(closed: Run) -> None:
    for text in (terminal.report(read(closed)), markdown.markdown(read(closed))):
        assert "pgperf run site-steps --rates 2." in text
        assert "Response time of each step" not in text


def test_each_rate_has_a_table_of_its_own(at_rate: Run) -> None:
    found = staircase(at_rate)
    steps = [replace(step, variant=replace(step.variant, rate=3.0)) for step in found.steps]
    faster = replace(
        found,
        steps=steps,
        rows={each.variant: found.row(of) for each, of in zip(steps, found.steps, strict=True)},
    )
    captions = [step_latency.percentile_table(each, [found, faster]).caption for each in (found, faster)]
    assert captions == [
        "Response time of each step at 2 operations/s, 20 clients",
        "Response time of each step at 3 operations/s, 20 clients",
    ]


def test_a_step_is_in_one_table_only(at_rate: Run) -> None:
    assert step_latency.beside_steps(read(at_rate)).rows == []
