"""Two runs side by side: what differs around their figures, and what is said of these."""

import json
import math
from typing import Any

import pytest

from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.step_changes import StepChange
from pgperf.core.records import LATER_FIELDS, Definition, WorkloadDefinition
from pgperf.models import Run
from pgperf.reports import step_changes
from pgperf.reports.run_comparison import compare_runs, run_comparison_json
from tests import factories
from tests.analysis.synthetic import variant
from tests.catalog_runs import make_catalog_run

pytestmark = pytest.mark.django_db

DEFINITION = Definition("light", (WorkloadDefinition("light", "SELECT 1"),), ("libpq",), ("tcp",))


def ended(**fields: Any) -> Run:
    return factories.make_results(factories.make_run(**fields))


def test_a_field_that_an_older_version_lacked_has_its_old_meaning() -> None:
    now = json.loads(json.dumps(DEFINITION.to_json()))
    later = {"workloads", "precision", "budget_s", "web_routes", *LATER_FIELDS}
    old = {name: value for name, value in now.items() if name not in later}
    old |= {"workload": now["workloads"][0], "compared_with": None}
    assert compare_runs(ended(definition=old), ended(definition=now)).definition == []
    several = compare_runs(ended(definition=old), ended(definition={**now, "workers": 2}))
    assert [tuple(each) for each in several.definition] == [("workers", "1", "2")]


def test_the_time_nearest_to_a_site_comes_first_over_each_route() -> None:
    before, after = ended(), factories.make_results(factories.make_run(), slower={"django_orm": 1.1})
    for pair, word in ((before, after), "slower"), ((after, before), "faster"):
        found = compare_runs(*pair).answers
        assert [each.partition(":")[0] for each in found] == [
            f"Django ORM · {route}" for route in factories.ROUTES
        ]
        assert all(each.endswith(f", {word}.") for each in found)
    assert all(each.endswith(", equivalent.") for each in compare_runs(before, ended()).answers)


def test_a_suite_has_no_time_nearest_to_a_site() -> None:
    before, after = (make_catalog_run("driver-suite-published") for _ in range(2))
    found = compare_runs(before, after)
    assert found.changes
    assert found.answers == []


def test_a_partial_run_is_named() -> None:
    before, after = ended(), ended()
    assert compare_runs(before, after).cautions == []
    after.summary |= {"partial": True}
    (said,) = compare_runs(before, after).cautions
    assert said == (
        f"{after} has partial results: it ended early, and its figures come from its completed blocks."
    )


def test_times_that_an_older_version_did_not_store_are_not_those_of_the_pages() -> None:
    before, after = ended(), ended()
    assert "those of the runs’ own pages" in compare_runs(before, after).note
    for level in before.summary["levels"]:
        level["us"] = level["base_us"] = None
    note = compare_runs(before, after).note
    assert "they can differ slightly from those of the runs’ own pages" in note
    assert "The ratio is their quotient" in note


def scattered(us: float) -> Run:
    """A run whose variants take so long, a few per cent apart from block to block."""
    run = ended()
    waves = (0.03, -0.03, 0.01, -0.01, 0.02, -0.02)
    for level in run.summary["levels"]:
        level |= {"log_us": [[math.log(us) + wave for wave in waves]], "base_layer": "", "us": us}
    return run


def test_an_interval_beside_the_margin_is_not_too_wide() -> None:
    """One comparison alone would differ; among all of the run, the same interval does not."""
    before, after = scattered(100), scattered(105)
    (said,) = compare_runs(before, after).headlines
    assert "15 intervals lie outside ±1 %, but among so many comparisons that can be chance." in said
    assert "too wide" not in said
    assert "of two similar intervals one may differ" in compare_runs(before, after).note
    for run in (before, after):
        del run.summary["levels"][1:]
    (alone,) = compare_runs(before, after).headlines
    assert "time per operation is ×1.050" in alone


def test_the_layer_that_adds_more_is_named_with_its_interval() -> None:
    """A cursor that takes 9 µs more: the ORM's own step is what it was."""
    cursor = 1 + 9 / 89.4
    orm = 1 + 9 / 214.7
    before = ended()
    after = factories.make_results(
        factories.make_run(), routes=("socket",), slower={"django_cursor": cursor, "django_orm": orm}
    )
    found = compare_runs(before, after)
    (said,) = [sentence for sentence in found.headlines if " adds " in sentence]
    start = "Django cursor · socket adds 22.8 µs to psycopg 3 instead of 13.8 µs in the first run: "
    assert said.startswith(start)
    assert said.endswith(" µs more.")
    (step,) = [
        each for each in run_comparison_json(found)["steps"] if each["variant"] == "django_cursor · socket"
    ]
    assert step["below"] == "psycopg · socket"
    assert step["delta_us"] == pytest.approx(9.0)
    assert step["delta_low_us"] < 9.0 < step["delta_high_us"]
    assert (step["outcome"], step["doubted"], step["blocks"]) == ("differs", False, [6, 6])


def test_a_step_that_is_subtracted_is_the_change_that_is_shown() -> None:
    """Whole µs in both runs, and so in their difference."""
    delta = Estimate(2.7, 1.2, 4.2, 6, 0.95)
    change = StepChange(variant("psycopg"), variant("libpq"), 123.4, 126.1, delta, "differs", (6, 6))
    (row,) = step_changes.table([change]).rows
    assert [cell.text for cell in row[3:7]] == ["123", "126", "+3", "1 … 4"]


def test_a_layer_that_adds_less_is_said_so() -> None:
    before = factories.make_results(factories.make_run(), slower={"django_orm": 1.2})
    said = [sentence for sentence in compare_runs(before, ended()).headlines if " adds " in sentence]
    assert len(said) == 3
    assert all(sentence.endswith(" µs less.") for sentence in said)


def test_the_chart_of_steps_is_around_no_change() -> None:
    after = factories.make_results(factories.make_run(), slower={"django_orm": 1.2})
    chart = compare_runs(ended(), after).step_chart
    assert chart
    assert (chart["line"], chart["unit"]) == (0, "µs")
    at = chart["rows"].index(["Django ORM", "socket"])
    low, high = chart["whiskers"][at]
    assert low < chart["values"][at] < high
    assert chart["ends"][at] == "+42.9 µs"


def test_relative_has_no_steps() -> None:
    """They have the machine's speed in them."""
    relative = compare_runs(ended(), ended()).relative()
    assert (relative.steps, relative.step_chart, relative.step_table) == ((), None, None)
    assert run_comparison_json(relative)["steps"] == []


def test_relative_tells_of_no_step_that_is_not_compared() -> None:
    without = factories.make_results(factories.make_run(), layers=("libpq", "psycopg", "django_orm"))
    found = compare_runs(ended(), without)
    assert found.step_notes
    assert found.relative().step_notes == []


def test_a_layer_that_stands_on_another_one_is_told() -> None:
    whole = ended()
    without = factories.make_results(factories.make_run(), layers=("libpq", "psycopg", "django_orm"))
    told = [note for note in compare_runs(whole, without).step_notes if "is not compared" in note]
    assert told[0] == (
        "What Django ORM · socket adds is not compared: it stands on Django cursor in the first run and on"
        " psycopg 3 in the second run."
    )
    assert len(told) == 3
