"""The steps of a web site: charts, table, JSON and CSV."""

import csv
import io
import json
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.analysis.summary import summarise
from pgperf.cli.markdown import markdown
from pgperf.cli.result import report
from pgperf.models import Run
from pgperf.reports import cpu_accounting, staircases
from pgperf.reports.csv_results import steps_csv
from pgperf.reports.run_json import run_json
from pgperf.reports.run_page import result
from pgperf.reports.run_rows import read
from pgperf.runs import store
from tests import factories, site_steps
from tests.analysis.synthetic import blocks, definition, variant
from tests.cpu_accounts import add_cpu_accounts
from tests.site_steps import CLIENTS, STEPS

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return site_steps.make_run()


def test_the_table_has_each_step_with_its_own_effect(run: Run) -> None:
    (table,) = staircases.tables(read(run))
    assert [row[0].text for row in table.rows] == list(STEPS)
    shown = {row[0].text: [cell.text for cell in row] for row in table.shown().rows}
    assert shown["web_apache"] == [
        "web_apache", "–", "4.00", "5,000", "4,900 … 5,100", *["–"] * 5, *["unknown"] * 2
    ]  # fmt: skip
    assert shown["web_advised"][1:4] == ["web_pgbouncer", "11.7", "1,709"]
    assert shown["web_advised"][5:8] == ["×1.114", "1.082 … 1.149", "differs"]
    assert shown["web_advised"][8] == "×2.92"


def test_a_step_has_the_processes_and_the_cpus_of_its_servers(run: Run) -> None:
    """gunicorn's advice is 2n+1 processes for n CPUs."""
    cpus = {"clients": 1, "server": 3, "pooler": None}
    run.variants.filter(route="web_nginx").update(
        cpu_account={"web_workers": 7, "role_cpus": cpus, "cpus": 4}
    )
    run.variants.filter(route="web_tls").update(cpu_account={"web_workers": 9, "cpus": 4})
    (table,) = staircases.tables(read(run))
    heads = [column.head for column in table.columns[-2:]]
    assert heads == ["Web processes", "Servers’ CPUs"]
    sizes = {row[0].text: [cell.text for cell in row[-2:]] for row in table.rows}
    assert (sizes["web_nginx"], sizes["web_tls"]) == (["7", "3"], ["9", "4"])
    second = run_json(run)["staircases"][0]["steps"][1]
    assert (second["web_workers"], second["servers_cpus"]) == (7, 3)
    line = list(csv.DictReader(io.StringIO(steps_csv(run))))[1]
    assert (line["web_workers"], line["servers_cpus"]) == ("7", "3")


def test_a_step_far_away_is_told_over_the_first_step_there() -> None:
    """The run compares it with the step that it builds on, and with the run's first route."""
    near = {"a": "", "b": "a", "c": "b"}
    far = {f"{route}+45ms": base and f"{base}+45ms" for route, base in near.items()}
    asked = replace(definition(routes=(*near, *far)), layers=("http",), web_routes={**near, **far})
    us = {"a": 8_000.0, "b": 4_000.0, "c": 2_000.0}
    variants = [variant("http", route) for route in asked.routes]
    measured = blocks(variants, 6, 3, lambda of, _block, _round: us[of.route[0]])
    run = factories.make_run(definition=json.loads(json.dumps(asked.to_json())))
    store.save_summary(run, summarise(asked, variants, measured, "psycopg"))
    steps = [each["steps"][2] for each in run_json(run)["staircases"]]
    assert [each["step"] for each in steps] == ["c", "c+45ms"]
    for step in steps:
        assert (step["effect"]["ratio"], step["total"]["ratio"]) == pytest.approx((2.0, 4.0))
        assert step["effect"]["outcome"]
    assert steps[0]["total"]["outcome"]
    assert steps[1]["total"]["outcome"] is None
    for table in staircases.tables(read(run)):
        assert "×4.00" in [cell.text for cell in table.shown().rows[2]]


def test_headlines_are_the_steps_that_differ(run: Run) -> None:
    (found,) = staircases.found(read(run))
    assert staircases.headlines(found) == [
        "web_nginx: ×2.25 the requests per second of web_apache (2.18 … 2.32).",
        "web_pgbouncer: ×1.167 the requests per second of web_nginx (1.133 … 1.203).",
        "web_advised: ×1.114 the requests per second of web_pgbouncer (1.082 … 1.149).",
    ]


def test_charts_have_a_bar_for_each_step(run: Run) -> None:
    (found,) = staircases.found(read(run))
    throughput, time, effects = (
        make(found) for make in (staircases.throughput, staircases.response_time, staircases.effects)
    )
    assert throughput["rows"][:2] == [["web_apache", "first step"], ["web_nginx", "on web_apache"]]
    assert throughput["series"][0]["values"] == [ops for ops, _base in STEPS.values()]
    assert time["values"][0] == pytest.approx(5000)
    assert time["whiskers"][0] == pytest.approx([4900, 5100])
    assert [row[0] for row in effects["rows"]] == list(STEPS)[1:]
    assert effects["values"][0] == pytest.approx(2.25)
    assert all(
        low < value < high for value, (low, high) in zip(effects["values"], effects["whiskers"], strict=True)
    )


def test_what_a_request_spends_has_a_bar_for_each_step(run: Run) -> None:
    assert cpu_accounting.spent_of(staircases.found(read(run))[0].shown) is None
    (found,) = staircases.found(read(add_cpu_accounts(run)))
    chart = cpu_accounting.spent_of(found.shown)
    assert chart is not None
    assert len(chart["rows"]) == len(STEPS)


def test_json_has_the_numbers_behind_it(run: Run) -> None:
    (found,) = run_json(run)["staircases"]
    assert {key: found[key] for key in ("workload", "layer", "clients")} == {
        "workload": "books", "layer": "http", "clients": CLIENTS,
    }  # fmt: skip
    first, second, *_others = found["steps"]
    assert (first["step"], first["builds_on"], first["effect"], first["total"]) == (
        "web_apache",
        None,
        None,
        None,
    )
    assert (second["step"], second["builds_on"], second["effect"]["outcome"]) == (
        "web_nginx", "web_apache", "differs",
    )  # fmt: skip
    assert second["effect"]["ratio"] == pytest.approx(2.25)
    assert second["total"] == second["effect"]


def test_csv_has_a_line_for_each_step(run: Run) -> None:
    lines = list(csv.DictReader(io.StringIO(steps_csv(run))))
    assert [line["step"] for line in lines] == list(STEPS)
    assert (lines[0]["effect"], lines[0]["builds_on"]) == ("", "")
    assert float(lines[1]["effect"]) == pytest.approx(2.25)
    assert float(lines[1]["us_per_op"]) == pytest.approx(1e6 * CLIENTS / 9)


def test_csv_of_a_run_without_steps_is_a_header() -> None:
    text = steps_csv(factories.make_results(factories.make_run()))
    assert len(text.splitlines()) == 1
    assert "effect_low" in text


def test_terminal_and_markdown_show_the_steps(run: Run) -> None:
    assert "Steps of the site, 20 clients" in report(read(run))
    assert "**Steps of the site, 20 clients**" in markdown(read(run))


@pytest.mark.parametrize("definition", [{}, {"web_routes": None}, {"web_routes": []}, {"web_routes": {}}])
def test_other_runs_have_no_steps(definition: dict[str, object]) -> None:
    run = factories.make_results(factories.make_run(definition=definition))
    assert staircases.found(read(run)) == []
    assert result(run).part("staircase") is None
    assert run_json(run)["staircases"] == []


class TestPublished:
    """The run of the benchmark that reproduces the publication."""

    @pytest.fixture
    def published(self) -> Run:
        return site_steps.make_run(benchmark=factories.make_benchmark("site-steps"))

    def test_the_chart_has_the_published_figures_as_marks(self, published: Run) -> None:
        chart = staircases.throughput(staircases.found(read(published))[0])
        assert chart["series"][0]["marks"] == [4.0, 9.0, 10.5, None, 11.7]
        assert chart["overlay"] == "published figures"

    def test_a_table_has_both_effects(self, published: Run) -> None:
        _steps, table = staircases.tables(read(published))
        shown = {row[0].text: [cell.text for cell in row[1:5]] for row in table.rows}
        assert shown == {
            "web_apache": ["4.00", "4.00", "–", "–"],
            "web_nginx": ["9.00", "9.00", "×2.25", "×2.25"],
            "web_pgbouncer": ["10.5", "10.5", "×1.167", "×1.167"],
            "web_advised": ["11.7", "11.7", "×1.114", "×1.114"],
        }

    def test_json_has_them(self, published: Run) -> None:
        steps = run_json(published)["staircases"][0]["steps"]
        assert [step["published_ops_per_s"] for step in steps] == [4.0, 9.0, 10.5, None, 11.7]

    def test_the_page_names_the_source(self, admin_client: Client, published: Run) -> None:
        text = admin_client.get(reverse("admin:pgperf_run_change", args=[published.pk])).content.decode()
        assert "Stein Magnus Jodal (2011)" in text
        assert "<caption>Published steps, 20 clients</caption>" in text

    def test_another_benchmark_has_none(self, run: Run) -> None:
        (found,) = staircases.found(read(run))
        assert staircases.throughput(found)["overlay"] == ""
        assert staircases.published_table(found, [found]).rows == []


def test_steps_without_figures_are_shown_as_unknown(run: Run) -> None:
    run.comparisons.all().delete()
    run.variants.update(ops_per_s=None, us_per_op=None, us_per_op_low=None, us_per_op_high=None)
    (table,) = staircases.tables(read(run))
    assert [cell.text for cell in table.shown().rows[1][2:6]] == ["unknown", "unknown", "none", "–"]
    assert staircases.effects(staircases.found(read(run))[0])["rows"] == []


def test_the_page_shows_charts_and_a_table_without_javascript(admin_client: Client, run: Run) -> None:
    text = admin_client.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert "The steps of the site" in text
    assert 'id="chart-steps-effects-1"' in text
    assert "<caption>Steps of the site, 20 clients</caption>" in text
    assert "steps.csv" in text
