"""CPU time by role, and the time breakdown of an operation."""

import pytest
from django.utils.text import capfirst

from pgperf.analysis import verdict_kinds
from pgperf.models import VariantResult
from pgperf.reports import cpu_accounting
from tests import factories
from tests.cpu_accounts import add_cpu_accounts, verdict
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db


@pytest.fixture
def variants() -> list[VariantResult]:
    return list(add_cpu_accounts(factories.make_results(factories.make_run())).variants.all())


def test_the_segments_of_a_bar_add_up_to_the_time_of_an_operation(variants: list[VariantResult]) -> None:
    ((clients, chart),) = cpu_accounting.spent(variants)
    assert clients == "1 client"
    assert chart["rows"][0] == ["libpq (C)", "socket"]
    assert [series["name"] for series in chart["series"]] == [
        "client", "pooler", "server", "run queue", "waiting for a pool connection", "locks in the server",
        "network and wake-up", "waiting",
    ]  # fmt: skip
    for at, variant in enumerate(variant for variant in variants if not variant.control):
        parts = [series["values"][at] for series in chart["series"]]
        assert sum(us for us in parts if us is not None) == pytest.approx(variant.us_per_op)


def test_the_waits_in_the_server_are_those_of_the_verdict_under_its_names(
    variants: list[VariantResult],
) -> None:
    orm = next(row for row in variants if (row.layer, row.route) == ("django_orm", "tcp"))
    orm.diagnostics["wait_events"] = {"CPU": 0.4, "Lock": 0.05, "IO": 0.03, "Timeout": 0.02}
    orm.verdict = verdict(orm)
    chart = cpu_accounting.spent_of([orm])
    assert chart
    parts = {series["name"]: series["values"][0] for series in chart["series"]}
    said = verdict_kinds.evidence(orm.record.verdict)
    for name, share in (
        ("locks in the server", 0.05),
        ("server I/O", 0.03),
        ("other waits in the server", 0.02),
    ):
        assert parts[name] == pytest.approx(share * orm.us_per_op)
        assert f"{name} {parts[name]:.2g}" in said
    assert sum(parts.values()) == pytest.approx(orm.us_per_op)
    table = cpu_accounting.spent_table([orm])
    assert [head.removesuffix(", µs") for head in table.heads[2:]] == list(map(capfirst, parts))


def test_a_chart_for_each_number_of_clients() -> None:
    run = add_cpu_accounts(factories.make_results(factories.make_run(), routes=("tcp",), clients=(1, 8)))
    charts = dict(cpu_accounting.spent(list(run.variants.all())))
    assert list(charts) == ["1 client", "8 clients"]
    assert charts["8 clients"]["rows"][0] == ["libpq (C)", "tcp"]
    assert len({chart["series"][-1]["name"] for chart in charts.values()}) == 1


def test_the_workers_of_a_client_are_connections(variants: list[VariantResult]) -> None:
    for variant in variants:
        variant.workers = 10
    assert [title for title, _chart in cpu_accounting.spent(variants)] == ["10 connections"]


def test_unobserved_time_is_not_labelled_waiting(variants: list[VariantResult]) -> None:
    hidden = variants[0]
    hidden.cpu_us_per_op["server"] = None
    hidden.verdict = verdict(hidden)
    table = cpu_accounting.spent_table(variants)
    assert table.heads[-2:] == ("Waiting, µs", "Unattributed, µs")
    own, other = texts(table)[:2]
    assert (own[4], own[-2]) == ("unknown", "–")
    assert other[-2:] == ["–", "–"]
    ((_clients, chart),) = cpu_accounting.spent(variants)
    values = {series["name"]: series["values"] for series in chart["series"]}
    assert values["unattributed"][0] > values["network and wake-up"][1] > 0
    assert (values["network and wake-up"][0], values["waiting"][0]) == (None, None)


def test_an_unknown_server_has_its_reason(variants: list[VariantResult]) -> None:
    assert cpu_accounting.unknown_servers(variants) == []
    for variant in variants[:2]:
        variant.cpu_account["server_unknown"] = "it has no control group"
    titles = [cpu_accounting.spent_table(variants).rows[at][0].text for at in (0, 1)]
    assert cpu_accounting.unknown_servers(variants) == [
        f"The server's CPU time is not known for {', '.join(titles)}: it has no control group."
    ]


def test_shares_include_the_host_and_the_unattributed_time(variants: list[VariantResult]) -> None:
    for variant in variants:
        variant.cpu_account["share"]["steal"] = None
    table = cpu_accounting.share_table(variants)
    assert table.caption == (
        "Shares of the host's CPUs (2); read from: cgroup; not known here: steal"
    )  # fmt: skip
    assert table.heads[-1] == "Idle"
    assert table.rows[0][-1].value == variants[0].cpu_account["share"]["idle"]


def test_a_server_on_another_host_has_its_own_account(variants: list[VariantResult]) -> None:
    assert cpu_accounting.server_share_table(variants).rows == []
    far = {"cpus": 8, "elapsed_s": 6.0, "share": {"server": 0.25, "idle": 0.7, "clients": None}}
    variants[0].cpu_account["server_host"] = far
    table = cpu_accounting.server_share_table(variants)
    assert table.caption.startswith(
        "Shares of the CPUs of the server's host (8); read from: agent; not known"
    )
    assert [cell.text for cell in table.rows[0]] == ["libpq (C) · socket", "25.0 %", "70.0 %"]


def test_uncounted_waits_and_switches_have_no_column(variants: list[VariantResult]) -> None:
    for variant in variants:
        variant.cpu_account["switches_per_op"] = {}
    table = cpu_accounting.queue_table(variants)
    assert table.heads == (
        "Variant", "Client in the run queue, µs", "Pooler in the run queue, µs", "Server in the run queue, µs",
        "Client in the kernel", "Pooler in the kernel", "Server in the kernel", "Busiest client",
        "Busiest pooler", "Busiest server",
    )  # fmt: skip
    assert texts(table)[0][1:4] == ["1.40", "–", "1.10"]


def test_a_direct_route_has_a_dash_for_the_pooler(variants: list[VariantResult]) -> None:
    tables = [cpu_accounting.spent_table(variants), cpu_accounting.cpu_table(variants)]
    for table in tables:
        at = table.heads.index("Pooler, µs")
        shown = {row.route: cells[at].text for row, cells in zip(variants, table.rows, strict=True)}
        assert shown["socket"] == "–"
        assert shown["pgbouncer"] not in ("–", "0.00")


def test_a_direct_route_has_a_dash_for_the_queue_of_the_pool(variants: list[VariantResult]) -> None:
    table = cpu_accounting.spent_table(variants)
    at = table.heads.index("Waiting for a pool connection, µs")
    shown = {row.route: cells[at].text for row, cells in zip(variants, table.rows, strict=True)}
    assert shown["socket"] == "–"
    assert shown["pgbouncer"] == "2.40"


def test_roles_of_an_operation_are_drawn_and_others_are_in_the_table(
    variants: list[VariantResult],
) -> None:
    chart = cpu_accounting.cpu(variants)
    assert [series["name"] for series in chart["series"]] == [
        "client, user", "client, system", "pooler", "server", "server auxiliaries",
    ]  # fmt: skip
    assert chart["ends"][0] == "35.2 µs"
    assert cpu_accounting.cpu_table(variants).heads[-2:] == ("Other processes, µs", "Unattributed, µs")


def test_a_run_without_cpu_accounts_has_no_cpu_chart() -> None:
    run = factories.make_results(factories.make_run())
    assert cpu_accounting.spent(list(run.variants.all())) == []
