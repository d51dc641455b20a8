"""The tables that only files have."""

import csv
import io

import pytest

from pgperf.analysis.verdict_kinds import evidence
from pgperf.models import Run
from pgperf.reports import csv_results, result_keys
from pgperf.reports.csv_results import variants_csv
from tests.cpu_accounts import add_cpu_accounts
from tests.factories import make_results, make_run


@pytest.fixture
def run(db: None) -> Run:
    return add_cpu_accounts(
        make_results(make_run(), routes=("socket",), layers=("libpq", "django_orm"), clients=(1, 8))
    )


@pytest.fixture
def plain(db: None) -> Run:
    return make_results(make_run())


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_point_of_each_curve(run: Run) -> None:
    found = rows(csv_results.scaling_csv(run))
    assert [(row["layer"], row["clients"]) for row in found] == [
        ("libpq", "1"), ("libpq", "8"), ("django_orm", "1"), ("django_orm", "8"),
    ]  # fmt: skip
    point = run.summary["scaling"][1]["points"][1]
    assert float(found[3]["ops_per_s"]) == point["ops_per_s"]
    assert float(found[3]["p99_us"]) == point["p99_us"]
    account = run.variants.get(layer="django_orm", clients=8).cpu_account
    assert float(found[3]["share_server"]) == account["share"]["server"]
    assert found[3]["run_id"] == str(run.pk)


def test_a_point_without_a_cpu_account_has_no_shares(run: Run) -> None:
    run.variants.filter(layer="libpq").update(cpu_account={})
    found = rows(csv_results.scaling_csv(run))
    assert {row[f"share_{role}"] for row in found[:2] for role in result_keys.SHARE} == {""}
    assert found[2]["share_idle"] != ""


def test_a_row_for_each_moment(run: Run) -> None:
    line = run.summary["timeline"]
    del line["roles"]["iowait"]
    found = rows(csv_results.timeline_csv(run))
    assert [float(row["seconds"]) for row in found] == line["seconds"]
    assert [row["variant"] for row in found] == line["variant"]
    assert [float(row["server"]) for row in found] == line["roles"]["server"]
    assert {row["iowait"] for row in found} == {""}


def test_a_row_for_each_process(run: Run) -> None:
    found = rows(csv_results.top_csv(run))
    assert len(found) == sum(len(variant.top["processes"]) for variant in run.variants.all())
    assert found[0]["label"] == "libpq · socket"
    assert (found[0]["role"], found[0]["pid"], found[0]["host_load5"]) == ("client", "4100", "0.94")


def test_a_host_without_processes_keeps_its_line(run: Run) -> None:
    variant = run.variants.all()[0]
    variant.top = {"seconds": 1.0, "host": {"us": 3.0}, "processes": []}
    variant.save()
    first = rows(csv_results.top_csv(run))[0]
    assert (first["host_us"], first["host_sy"], first["pid"]) == ("3.0", "", "")


def test_the_server_s_host_has_a_line_too_where_it_is_another(run: Run) -> None:
    variant = run.variants.all()[0]
    variant.top["server_host"] = {"host": {"us": 41.0, "load1": 2.5}}
    variant.save()
    found = rows(csv_results.top_csv(run))
    near, far = found[0], found[-1]
    assert (near["server_host_us"], near["server_host_load1"], near["server_host_sy"]) == ("41.0", "2.5", "")
    assert near["host_load5"] == "0.94"
    assert far["server_host_us"] == ""


def test_the_rest_stands_beside_the_variants(run: Run) -> None:
    first = rows(variants_csv(run))[0]
    variant = run.variants.all()[0]
    assert float(first["cpu_account_share_idle"]) == variant.cpu_account["share"]["idle"]
    assert (
        float(first["cpu_account_wait_us_per_op_server"]) == variant.cpu_account["wait_us_per_op"]["server"]
    )
    assert float(first["diagnostics_wait_events_Client"]) == 0.61
    assert first["diagnostics_pooler_queries"] == first["time_us_per_op_unseen"] == ""
    assert float(first["time_us_per_op_server"]) == variant.cpu_us_per_op["server"]
    verdict = variant.record.verdict
    assert verdict
    assert first["verdict_evidence"] == evidence(verdict)


def test_a_run_without_a_cpu_account_has_empty_cells_and_files_with_a_header(plain: Run) -> None:
    first = rows(variants_csv(plain))[0]
    assert {
        value for name, value in first.items() if name.startswith(("cpu_account_", "diagnostics_", "time_us"))
    } == {""}
    for make in (csv_results.scaling_csv, csv_results.timeline_csv, csv_results.top_csv):
        assert rows(make(plain)) == []
        assert make(plain).startswith("run_id,benchmark,database,")


def test_a_program_that_is_named_like_a_formula(run: Run) -> None:
    variant = run.variants.all()[0]
    variant.top["processes"][0]["name"] = "=1+1"
    variant.save()
    assert rows(csv_results.top_csv(run))[0]["name"] == "'=1+1"


def test_every_share_has_a_column(run: Run) -> None:
    assert set(run.variants.all()[0].cpu_account["share"]) == set(result_keys.SHARE)


def test_scaling_has_the_promised_columns(run: Run) -> None:
    point = {
        "clients",
        "ops_per_s",
        "low",
        "high",
        "p50_us",
        "p99_us",
        "efficiency",
        "efficiency_low",
        "efficiency_high",
    }
    header = csv_results.scaling_csv(run).splitlines()[0].split(",")
    assert set(header) == {
        "run_id", "benchmark", "database", "workload", "layer", "mode", "route", *point,
        *(f"share_{role}" for role in result_keys.SHARE), "connect", "workers", "environment", "rate",
        "hosts",
    }  # fmt: skip
