"""Tables of the server's diagnostics."""

import pytest

from pgperf.models import VariantResult
from pgperf.reports import server
from tests import factories
from tests.cpu_accounts import add_cpu_accounts
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db


@pytest.fixture
def variants() -> list[VariantResult]:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"))
    return list(add_cpu_accounts(run).variants.all())


def test_wait_events_are_shares_of_the_samples(variants: list[VariantResult]) -> None:
    chart = server.wait_chart(variants)
    assert chart is not None
    assert [series["name"] for series in chart["series"]] == [
        "on a CPU", "waiting for the client", "internal lock (LWLock)", "lock (Lock)",
    ]  # fmt: skip
    assert sum(series["values"][0] for series in chart["series"]) == pytest.approx(100)


def test_an_unknown_wait_class_is_shown(variants: list[VariantResult]) -> None:
    variants[0].diagnostics["wait_events"]["Quantum"] = 0.5
    chart = server.wait_chart(variants)
    assert chart is not None
    assert (chart["series"][-1]["name"], chart["series"][-1]["colour"]) == ("Quantum", "wait-other")
    assert chart["series"][-1]["values"][1] == 0
    assert server.wait_table(variants).heads[-2:] == ("Quantum", "Most frequent")


def test_wait_events_are_sorted_by_frequency(variants: list[VariantResult]) -> None:
    variants[0].diagnostics["events"] = {"IO:a": 0.1, "Lock:b": 0.3, "IO:c": 0.05, "IPC:d": 0.2, "IO:e": 0.0}
    assert texts(server.wait_table(variants))[0][-1] == "Lock:b 30.0 %, IPC:d 20.0 %, IO:a 10.0 %"


def test_the_pooler_s_figures_are_those_of_its_routes(variants: list[VariantResult]) -> None:
    table = server.pooler_table(variants)
    assert [row[0] for row in texts(table)] == ["libpq (C) · pgbouncer", "Django ORM · pgbouncer"]
    assert texts(table)[0][1:4] == ["4,711", "1.00", "2.40"]
    assert texts(table)[0][-1] == "session"


@pytest.mark.parametrize(("expected", "said"), [(True, "yes"), (False, "no"), (None, "unknown")])
def test_layers_with_different_statements_are_noted(
    variants: list[VariantResult], expected: bool | None, said: str
) -> None:
    variants[0].diagnostics["statements"] = {
        "calls_per_op": 2.0,
        "rows_per_op": None,
        "as_expected": expected,
    }
    assert texts(server.statement_table(variants))[0][1:] == ["2.00", "unknown", said]


def test_each_note_is_shown_once(variants: list[VariantResult]) -> None:
    assert server.notes(variants) == ["pooler: this route has no pooler (4 variants)"]


def test_a_note_of_one_variant(variants: list[VariantResult]) -> None:
    assert server.notes(variants[:1]) == ["pooler: this route has no pooler (1 variant)"]


def test_without_diagnostics_there_is_no_table() -> None:
    rows = list(factories.make_results(factories.make_run()).variants.all())
    assert server.wait_chart(rows) is None
    tables = (server.wait_table(rows), server.pooler_table(rows), server.statement_table(rows))
    assert [table.rows for table in tables] == [[], [], []]
    assert server.notes(rows) == []


def test_a_part_that_is_null(variants: list[VariantResult]) -> None:
    for row in variants:
        row.diagnostics = {
            "seconds": 1.0, "samples": 0, "wait_events": None, "events": None, "pooler": None, "statements": None,
            "notes": {"wait_events": "not permitted"},
        }  # fmt: skip
    assert server.wait_chart(variants) is None
    assert server.notes(variants) == ["wait events: not permitted (6 variants)"]
