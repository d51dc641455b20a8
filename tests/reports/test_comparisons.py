"""Comparisons as tables and sentences."""

import pytest

from pgperf.models import ComparisonResult, Run
from pgperf.reports import comparisons
from tests import factories
from tests.reports.reading import texts


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def test_comparisons_are_told_apart(run: Run) -> None:
    layers, routes = comparisons.comparison_tables(run.comparisons.all())
    assert texts(layers)[0][:3] == ["psycopg2 · socket", "libpq (C)", "differs"]
    assert texts(routes)[0][:2] == ["libpq (C) · tcp", "socket"]
    controls = comparisons.control_table(run.comparisons.all())
    assert texts(controls)[0][:2] == ["libpq (C) · socket · control 1", "itself"]
    assert (texts(controls)[0][2], texts(controls)[0][7]) == ("inconclusive", "2.1 %")
    assert len(layers.rows) + len(routes.rows) + len(controls.rows) == run.comparisons.count()


def test_a_baseline_of_another_shape_keeps_its_whole_label(run: Run) -> None:
    row = run.comparisons.all()[0]
    row.variant = "psycopg · tcp · prepared"
    assert comparisons.baseline_text(row) == "libpq (C) · socket"


def test_columns_of_numbers_have_heads_of_numbers(run: Run) -> None:
    table = comparisons.comparison_tables(run.comparisons.all())[0]
    assert [column.numeric for column in table.columns] == [False] * 3 + [True] * 6


def test_a_change_of_workload_in_one_sentence_and_a_table_of_its_own() -> None:
    libpq = "libpq · tcp · loop"
    rows = [
        _changed("libpq", "cure", "loop", -190.0),
        _changed("django_orm", "cure", "loop", -2310.0),
        ComparisonResult(variant="django_orm · tcp · loop", baseline=libpq, ratio=9.0, delta_us=99.0),
        ComparisonResult(variant=f"{libpq} · control 1", baseline=libpq, ratio=1, delta_us=0, aa=True),
    ]  # fmt: skip
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM, 190 µs in libpq (C)."
    ]
    rows[0].delta_us = 5.0
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop changes −2,310 µs in Django ORM, +5.00 µs in libpq (C)."
    ]
    rows[0].outcome = "inconclusive"
    assert comparisons.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM. "
        "tcp: no certain difference between loop and cure in libpq (C)."
    ]
    assert [row.variant for row in comparisons.workload_rows(rows)] == [
        "libpq · tcp · cure",
        "django_orm · tcp · cure",
    ]


def test_more_clients_are_no_other_workload() -> None:
    rows = [
        _changed("libpq", "16 clients", "8 clients", 700.0),
        _changed("libpq", "32 clients", "8 clients", 1900.0),
        _changed("django_orm", "8 clients · per operation", "per operation", 250.0),
    ]
    for row in rows:
        row.pairs = 12
    assert comparisons.workload_headlines(rows) == []
    assert [(table.caption, len(table.rows)) for table in comparisons.comparison_tables(rows)] == [
        ("More clients", 3)
    ]


def _changed(layer: str, second: str, first: str, delta_us: float) -> ComparisonResult:
    variant, baseline = f"{layer} · tcp · {second}", f"{layer} · tcp · {first}"
    return ComparisonResult(
        variant=variant, baseline=baseline, ratio=0.5, delta_us=delta_us, outcome="differs"
    )
