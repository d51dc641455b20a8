"""Two runs side by side: what differs around their figures, and what is said of these."""

import json
from typing import Any

import pytest

from pgperf.core.records import LATER_FIELDS, Definition, WorkloadDefinition
from pgperf.models import Run
from pgperf.reports.run_comparison import compare_runs
from tests import factories

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
    assert "which the runs’ pages may not show" in note
    assert "The ratio is their quotient" in note
