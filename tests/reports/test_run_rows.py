"""A run's stored rows, read once."""

import pytest

from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.records import Variant
from pgperf.models import Run
from pgperf.reports.run_rows import RunRows, once, read
from tests import factories


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_a_page_parses_each_row_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read(run)
    monkeypatch.setattr(VariantSummary, "from_json", None)
    assert all(each.record for each in rows.variants)
    assert all(each.variant.record and each.baseline.record for each in rows.comparisons)
    monkeypatch.setattr(Variant, "of_values", None)
    assert all(each.identity.layer == each.layer for each in rows.variants)


def test_a_saving_is_at_least_the_near_end_of_the_comparison_s_interval(run: Run) -> None:
    rows = read(run)
    row = next(each for each in rows.comparisons if each.variant.layer == "django_orm" and each.delta_us > 0)
    upper, lower = row.variant.label, row.baseline.label
    assert rows.savings[upper, lower] == row.delta_low_us
    assert rows.savings[lower, upper] == -row.delta_high_us
    row.delta_low_us = None
    assert (upper, lower) not in RunRows(run, rows.variants, rows.comparisons).savings


def test_elsewhere_a_changed_row_has_a_changed_record(run: Run) -> None:
    row = run.variants.first()
    assert row
    assert row.record.verdict is None or row.record.verdict.word != "client_cpu"
    row.verdict = factories.stored_verdict()
    assert row.record.verdict
    assert row.record.verdict.word == "client_cpu"


def test_what_several_parts_of_a_page_need_is_made_once_of_the_same_rows(run: Run) -> None:
    made: list[RunRows] = []

    @once
    def count(rows: RunRows) -> int:
        made.append(rows)
        return len(rows.variants)

    first, second = read(run), read(run)
    assert count(first) == count(first) == count(second) == 17
    assert len(made) == 2
