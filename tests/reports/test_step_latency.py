"""Steps of a web site at a fixed rate."""

import pytest

from pgperf.models import Run
from pgperf.reports import staircases, step_latency
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
    assert step_latency.percentile_table(found).rows == []


def test_a_run_at_a_rate_shows_the_percentiles_of_each_step(at_rate: Run) -> None:
    found = staircase(at_rate)
    assert step_latency.advice(found, "site-steps") == ""
    chart = step_latency.percentiles(found)
    assert chart is not None
    assert [row[0] for row in chart["rows"]] == list(STEPS)
    by_name = {series["name"]: series["values"][0] for series in chart["series"]}
    assert by_name == {"p50": 250, "p90": 500, "p95": 750, "p99": 1000}
    first, second, *_others = step_latency.percentile_table(found).rows
    assert [cell.text for cell in first] == ["web_apache", "no", "250", "500", "750", "1,000", "1,250", "0"]
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
