"""Results as files."""

import csv
import io
from datetime import timedelta

import openpyxl
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.verdict import Capacity
from pgperf.models import Run
from pgperf.reports import csv_files, csv_results
from pgperf.reports.comparisons import all_comparisons
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read
from tests import factories
from tests.core.test_formula_injection import TEXTS, begins_a_formula, cells


@pytest.fixture
def run(db: None) -> Run:
    return factories.make_results(factories.make_run())


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_one_row_per_variant_named_as_in_the_json(run: Run) -> None:
    found = rows(csv_results.variants_csv(run))
    first = run.variants.first()
    assert first is not None
    assert len(found) == run.variants.count()
    assert found[0]["label"] == "libpq · socket"
    assert found[0]["run_id"] == str(run.pk)
    assert found[0]["benchmark"] == "orm-overhead"
    assert found[0]["started"] == run.started_at.isoformat()  # type: ignore[union-attr]
    assert float(found[0]["ops_per_s"]) == first.ops_per_s
    assert float(found[0]["latency_us_p50"]) == first.latency_us["p50"]
    assert float(found[0]["latency_us_variation"]) == pytest.approx(0.31)
    assert float(found[0]["cold_us_first"]) == first.cold_us["first"]
    assert float(found[0]["cpu_us_per_op_server"]) == first.cpu_us_per_op["server"]
    assert found[0]["verdict_word"] == ""


def test_a_withheld_capacity_has_columns(run: Run) -> None:
    for position, capacity in enumerate((Capacity(True, "host", 0.93), Capacity())):
        verdict = factories.stored_verdict(capacity=capacity)
        run.variants.filter(position=position).update(verdict=verdict)
    found = [
        (row["verdict_checks_capacity_withheld"], row["verdict_checks_capacity_why"])
        for row in rows(csv_results.variants_csv(run))[:3]
    ]
    assert found == [("True", "the CPUs of the clients' machine were 93 % busy"), ("", ""), ("", "")]


def test_a_run_that_nobody_measures_any_more_is_lost(run: Run) -> None:
    """As in its JSON, also before a worker has marked it."""
    an_hour_ago = timezone.now() - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.RUNNING, heartbeat_at=an_hour_ago)
    run.refresh_from_db()
    files = (csv_results.variants_csv(run), csv_results.comparisons_csv(run))
    assert (
        {row["status"] for text in files for row in rows(text)}
        == {run_json(run)["run"]["status"]}
        == {"lost"}
    )
    run.refresh_from_db()
    assert run.status == Run.Status.RUNNING  # a file changes nothing


def test_unknown_is_empty(run: Run) -> None:
    assert rows(csv_results.variants_csv(run))[-1]["cpu_us_per_op_unattributed"] == ""


def test_one_row_per_comparison(run: Run) -> None:
    found = rows(csv_results.comparisons_csv(run))
    assert len(found) == run.comparisons.count()
    assert float(found[0]["ratio"]) == run.comparisons.all()[0].ratio
    assert [row["aa"] for row in found[-2:]] == ["True", "True"]


def test_numbers_stay_numbers_in_a_workbook_negative_ones_too(run: Run) -> None:
    row = run.comparisons.all()[0]
    row.delta_us = -4.5
    row.save()
    sheet = openpyxl.load_workbook(io.BytesIO(csv_results.comparisons_xlsx(run))).active
    header = [cell.value for cell in sheet[1]]
    assert sheet.cell(2, header.index("delta_us") + 1).value == -4.5
    assert sheet.cell(2, header.index("run_id") + 1).value == run.pk


def test_several_runs_follow_each_other(run: Run) -> None:
    other = factories.make_results(factories.make_run(), routes=("socket",))
    found = rows(csv_results.variants_csv(run, other))
    assert {row["run_id"] for row in found} == {str(run.pk), str(other.pk)}
    assert len(found) == run.variants.count() + other.variants.count()


def test_a_formula_in_a_label_is_harmless_in_both_formats(run: Run) -> None:
    run.benchmark_name = '=HYPERLINK("http://x")'
    run.save()
    run.variants.filter(position=0).update(label="  @SUM(1)", workload="-1+1")
    first = rows(csv_results.variants_csv(run))[0]
    assert (first["benchmark"], first["label"], first["workload"]) == (
        '\'=HYPERLINK("http://x")', "  '@SUM(1)", "'-1+1",
    )  # fmt: skip
    sheet = openpyxl.load_workbook(io.BytesIO(csv_results.variants_xlsx(run))).active
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


@given(TEXTS)
def test_no_text_starts_a_formula_in_any_of_its_cells(text: str) -> None:
    safe = csv_files.cell_text(text)
    assert not any(begins_a_formula(cell) for cell in cells(safe))
    assert not safe.startswith(("\t", "\r", "\n"))


@given(st.text(max_size=30))
def test_every_text_fits_into_a_workbook(text: str) -> None:
    sheet = openpyxl.Workbook().active
    assert sheet is not None
    sheet.append([csv_files.cell_text(text)])


def test_there_is_no_password_and_no_argument_in_a_file(run: Run) -> None:
    names = set(rows(csv_results.variants_csv(run))[0])
    assert not names & {"definition", "args", "password", "credential", "python", "variables", "sql"}
    assert {each["environment"] for each in rows(csv_results.variants_csv(run))} == {"default"}


def test_comparisons_have_the_promised_columns(run: Run) -> None:
    assert set(rows(csv_results.comparisons_csv(run))[0]) == {
        "run_id", "benchmark", "database", "status", "quick", "started", "finished", "definition_hash", "variant",
        "baseline", "ratio", "low", "high", "delta_us", "delta_low_us", "delta_high_us", "outcome", "aa", "pairs",
        "sample", "mde",
    }  # fmt: skip


def test_comparisons_are_those_of_the_page(run: Run) -> None:
    """The file has the exact values behind the texts of the same table."""
    table = all_comparisons(read(run))
    found = rows(csv_results.comparisons_csv(run))
    for shown, row in zip(table.rows, found, strict=True):
        assert [row["variant"], row["ratio"], row["low"]] == [
            shown[0].values[0],
            *map(str, (shown[3].value, shown[4].values[0])),
        ]


def test_the_oldest_run_comes_first_in_both_files(run: Run) -> None:
    later = factories.make_results(factories.make_run(), routes=("socket",))
    for make in (csv_results.variants_csv, csv_results.comparisons_csv):
        found = list(dict.fromkeys(row["run_id"] for row in rows(make(later, run))))
        assert found == [str(run.pk), str(later.pk)]
