"""Rows to tables."""

import pytest

from pgperf.models import ComparisonResult, Run
from pgperf.reports import tables
from pgperf.reports.result import result
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return factories.make_results(factories.make_run())


def texts(table: tables.Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_the_ladder_s_table_has_the_exact_values_behind_its_texts(run: Run) -> None:
    ladder = run.summary["ladders"][0]
    table = tables.ladder_table(ladder, run.summary["ladders"])
    assert texts(table)[0] == ["libpq (C)", "68.9", "67.9 … 70.1", "–", "–", "×1.000", "–"]
    assert texts(table)[3][:4] == ["Django ORM", "215", "211 … 218", "+125"]
    assert [row[1].value for row in table.rows[:4]] == [step["us"] for step in ladder["steps"]]
    assert texts(table)[4][0] == "psycopg2, beside"


def test_unknown_is_a_word(run: Run) -> None:
    table = tables.cpu_table(list(run.variants.all()))
    cell = table.rows[-1][-1]
    assert (cell.text, cell.value, cell.mark) == ("unknown", None, "unknown")


def test_a_role_that_nobody_knows_has_no_column(run: Run) -> None:
    variants = list(run.variants.all())
    for variant in variants:
        variant.cpu_us_per_op["pooler"] = None
    table = tables.cpu_table(variants)
    assert table.columns == (
        "Variant",
        "client, user, µs",
        "client, system, µs",
        "server, µs",
        "unattributed, µs",
    )
    assert table.caption == "Processor time per operation; not known here: pooler"


def test_comparisons_are_told_apart(run: Run) -> None:
    layers, routes = tables.comparison_tables(run.comparisons.all())
    assert texts(layers)[0][:3] == ["psycopg2 · socket", "libpq (C)", "differs"]
    assert texts(routes)[0][:2] == ["libpq (C) · tcp", "socket"]
    controls = tables.control_table(run.comparisons.all())
    assert texts(controls)[0][:2] == ["libpq (C) · socket · control 1", "itself"]
    assert (texts(controls)[0][2], texts(controls)[0][7]) == ("inconclusive", "2.1 %")
    assert len(layers.rows) + len(routes.rows) + len(controls.rows) == run.comparisons.count()


def test_a_baseline_of_another_shape_keeps_its_whole_label(run: Run) -> None:
    row = run.comparisons.all()[0]
    row.variant = "psycopg · tcp · prepared"
    assert tables.baseline_text(row) == "libpq (C) · socket"


def test_the_environment_is_flattened(run: Run) -> None:
    by_caption = {table.caption: texts(table) for table in tables.environment_tables(run.environment)}
    assert ["settings.shared_buffers", "128MB"] in by_caption["Server"]
    assert ["python", "3.11.2"] in by_caption["General"]


def test_timings_leave_out_what_was_not_measured() -> None:
    table = tables.timings_table({"wall_s": 10.0, "slices_s": 8.0})
    assert texts(table) == [
        ["slices (lead-ins and windows)", "8.00", "80.0 %"],
        ["whole run", "10.0", "100 %"],
    ]


def test_headlines_say_it_in_a_sentence(run: Run) -> None:
    assert tables.headlines(run.summary["ladders"])[0] == (
        "socket: Django ORM takes 215 µs per operation, ×3.12 of libpq (C)'s 68.9 µs."
    )


def test_columns_of_numbers_have_heads_of_numbers(run: Run) -> None:
    table = tables.comparison_tables(run.comparisons.all())[0]
    assert [numeric for _title, numeric in table.heads] == [False] * 3 + [True] * 6


def test_a_run_without_results_has_an_empty_result() -> None:
    empty = result(factories.make_run(Run.Status.FAILED))
    assert (empty.ladders, empty.throughput_table, empty.comparisons, empty.controls) == ([], None, [], None)


def test_a_change_of_workload_in_one_sentence_and_a_table_of_its_own() -> None:
    libpq = "libpq · tcp · loop"
    rows = [
        _changed("libpq", "cure", "loop", -190.0),
        _changed("django_orm", "cure", "loop", -2310.0),
        ComparisonResult(variant="django_orm · tcp · loop", baseline=libpq, ratio=9.0, delta_us=99.0),
        ComparisonResult(variant=f"{libpq} · control 1", baseline=libpq, ratio=1, delta_us=0, aa=True),
    ]  # fmt: skip
    assert tables.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM, 190 µs in libpq (C)."
    ]
    rows[0].delta_us = 5.0
    assert tables.workload_headlines(rows) == [
        "tcp: cure instead of loop changes −2,310 µs in Django ORM, +5.00 µs in libpq (C)."
    ]
    rows[0].outcome = "inconclusive"
    assert tables.workload_headlines(rows) == [
        "tcp: cure instead of loop saves 2,310 µs in Django ORM. "
        "tcp: no certain difference between loop and cure in libpq (C)."
    ]
    assert [row.variant for row in tables.workload_rows(rows)] == [
        "libpq · tcp · cure",
        "django_orm · tcp · cure",
    ]


def _changed(layer: str, second: str, first: str, delta_us: float) -> ComparisonResult:
    variant, baseline = f"{layer} · tcp · {second}", f"{layer} · tcp · {first}"
    return ComparisonResult(
        variant=variant, baseline=baseline, ratio=0.5, delta_us=delta_us, outcome="differs"
    )


def test_what_was_captured_is_a_table_and_not_among_the_environment() -> None:
    captured = {
        "loop": {
            "statements": 2,
            "rows": 3,
            "each": [{"sql": "SELECT ?", "rows": 1}, {"sql": "x", "rows": 2}],
        }
    }
    (table,) = tables.capture_tables({"captures": captured, "python": "3"})
    assert table.caption == "One operation of loop: 2 statements, 3 rows"
    assert [[cell.text for cell in row] for row in table.rows] == [["1", "SELECT ?", "1"], ["2", "x", "2"]]
    assert len(tables.environment_tables({"captures": captured, "python": "3"})) == 1
    assert tables.capture_tables({}) == []
