"""What is measured once in a run, in its diagnosed block."""

from types import SimpleNamespace
from typing import Any

import pytest

from pgperf.core import sql_parameters
from pgperf.core.records import PageParts, WorkloadDefinition
from pgperf.runner import diagnostic_slices, page_parts, statement_times
from pgperf.runner.client_group import ClientGroup
from tests.core.builders import variant

LOOP = WorkloadDefinition(
    "loop", "", orm="shop.loop", statements=tuple(sql_parameters.statements("SELECT 1", ()) * 2)
)


def test_each_cohort_has_the_reference_and_its_statements_are_timed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statement_times, "measured", lambda *_: ())
    monkeypatch.setattr(
        page_parts,
        "measured",
        lambda group: PageParts(group.variant.workload, group.variant.route, group.variant.mode, {}, 1.0),
    )
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(definition=SimpleNamespace(work=lambda _name: LOOP)),
        host=None,
        statement_times=[],
        page_parts=[],
        between_rounds=lambda _message: None,
    )
    reference, view = (
        ClientGroup(variant(workload="loop", layer=name), "app") for name in ("libpq", "django_view")
    )
    above = ClientGroup(variant(workload="loop", layer="psycopg"), "app")
    for cohort in ([reference, view], [reference, above, view]):
        diagnostic_slices.time_statements(context, cohort)
    assert [each.layer for each in context.statement_times] == ["libpq", "psycopg"]
    assert [each.workload for each in context.page_parts] == ["loop"]
