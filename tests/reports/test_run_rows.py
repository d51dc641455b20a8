"""A run's stored rows, read once."""

import pytest

from pgperf.analysis.variant_summary import VariantSummary
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
