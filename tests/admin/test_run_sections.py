"""Sections of the run page besides times: verdicts, CPU accounts, curves, host and server."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from pgperf.analysis.verdict import Confirmation, MeasuredChange
from pgperf.models import Run
from tests import factories, site_steps
from tests.admin.test_csp import inline_parts
from tests.admin.test_run_page import AGAINST_EARLIER, PAGE_QUERIES
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import CLIENTS, add_cpu_accounts
from tests.phases import add_phases


def page(run: Run) -> str:
    """With all topics, also of a large run."""
    return f"{address(run)}?topics=all"


def address(run: Run) -> str:
    return reverse("admin:pgperf_run_change", args=[run.pk])


@pytest.fixture
def told(run: Run) -> Run:
    return add_cpu_accounts(run)


@pytest.fixture
def many(db: None) -> Run:
    """Six client counts: the longest page that a benchmark of the catalog gives."""
    return add_cpu_accounts(
        factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=CLIENTS)
    )


def test_a_link_leads_to_each_topic_in_order(admin_page: Client, told: Run) -> None:
    text = admin_page.get(page(told)).content.decode()
    linked = re.findall(r'<li><a href="#(topic-\w+)"', text)
    topics = re.findall(r'<div class="pgperf-topic[ \w]*" id="(topic-\w+)"', text)
    assert linked == [*topics, "topic-all"]
    assert topics[:3] == ["topic-answer", "topic-layers", "topic-time"]
    assert text.count('aria-current="true"') == 1


def test_every_anchor_of_the_page_is_there(admin_page: Client, told: Run, many: Run) -> None:
    for run in (
        told,
        many,
        make_catalog_run("driver-suite-published"),
        add_cpu_accounts(site_steps.make_run()),
    ):
        text = admin_page.get(page(run)).content.decode()
        linked = set(re.findall(r'href="#([\w-]+)"', text.split('id="content-main"')[1]))
        assert linked <= set(re.findall(r'id="([\w-]+)"', text))
        assert {"run-verdicts", "topic-all"} < linked


def test_without_scripts_every_fold_of_a_result_is_open(admin_page: Client, many: Run) -> None:
    text = admin_page.get(page(many)).content.decode()
    result = text.split('id="topic-all"')[1]
    assert re.findall(r"<details(?! class=\"[\w -]+\" open data-fold)[^>]*>", result) == []


def test_every_chart_says_its_finding(admin_page: Client, many: Run) -> None:
    text = admin_page.get(page(many)).content.decode()
    labels = re.findall(r'<canvas [^>]*aria-label="([^"]+)"', text)
    found = re.findall(r"<figcaption[^>]*>([^<]+)<", text)
    assert len(labels) == len(found) == text.count("<canvas ")
    assert all(said.strip() and said.strip() in label for said, label in zip(found, labels, strict=True))


def test_a_run_without_details_has_no_empty_section(admin_page: Client, run: Run) -> None:
    text = admin_page.get(page(run)).content.decode()
    for name in ("verdicts", "spent", "scaling", "host", "server"):
        assert f'id="run-{name}"' not in text
    assert "Shares of the host" not in text


def test_a_run_with_several_client_counts_shows_curves(admin_page: Client, many: Run) -> None:
    text = admin_page.get(page(many)).content.decode()
    for expected in ("chart-scaling-1", "chart-scaling-cpu-6", "chart-spent-6", "chart-timeline", "chart-waits",
                     "chart-ladder-6-3"):  # fmt: skip
        assert f'data-chart="{expected}"' in text
    assert text.count("<canvas ") == text.count('type="application/json"')
    assert inline_parts(text) == []


def test_how_to_read_the_bars_names_no_unit(admin_page: Client, run: Run) -> None:
    """Their axis has it: ms for long times."""
    text = admin_page.get(page(run)).content.decode()
    assert "the time that one client spends on one operation. Shorter is better." in text


def test_the_sections_add_no_queries(
    admin_page: Client, told: Run, many: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    admin_page.get(page(told))
    # Of the second, one more: the benchmarks that its next steps name.
    for run, queries in ((told, PAGE_QUERIES), (many, AGAINST_EARLIER + 1)):
        with django_assert_num_queries(queries):
            admin_page.get(page(run))


def test_download_links_require_the_export_permission(many: Run, client_of: Callable[[str], Client]) -> None:
    names = ("scaling.csv", "timeline.csv", "top.csv")
    shown = client_of("exporter").get(page(many)).content.decode()
    hidden = client_of("viewer").get(page(many)).content.decode()
    for name in names:
        assert f"download/{name}" in shown
        assert f"download/{name}" not in hidden


def test_the_confirm_button_requires_the_start_permission(
    told: Run, client_of: Callable[[str], Client]
) -> None:
    action = reverse("admin:pgperf_run_confirm", args=[told.pk])
    shown = client_of("runner").get(page(told)).content.decode()
    assert shown.count(f'action="{action}"') == sum(
        bool(row.verdict["intervention"]) for row in told.variants.filter(control=0)
    )
    assert 'name="variant" value="django_orm · socket"' in shown
    assert action not in client_of("viewer").get(page(told)).content.decode()


def test_a_test_run_links_to_the_tested_run(admin_page: Client, told: Run) -> None:
    run = factories.make_results(
        factories.make_run(confirms=told, confirms_variant="django_orm · tcp", intervention="lower_layer")
    )
    text = admin_page.get(page(run)).content.decode()
    said = (
        f"This run tests the verdict on Django ORM · tcp of run {told.pk}: the same statements through libpq."
    )
    assert said in text
    assert f'href="{address(told)}"' in text


def test_cautions_are_shown_with_the_headline(admin_page: Client, told: Run) -> None:
    said = "This run does not show how much the server could do: the clients&#x27; CPUs were 97\u00a0% busy"
    for row in told.variants.all():
        row.verdict["capacity"] = {"withheld": row.layer != "libpq", "busy": "clients", "share": 0.97}
        row.save()
    text = admin_page.get(page(told)).content.decode()
    headlines, _rest = text.split("All verdicts and their evidence")
    assert (headlines.count(said), text.count("This run does not show")) == (1, 1)


def test_what_the_run_of_a_suite_does_not_show_stands_with_the_verdicts(
    admin_page: Client, told: Run
) -> None:
    """Its answer has the sentences of several workloads, and no room."""
    run = make_catalog_run("driver-suite-published")
    factories.make_results(run)
    for row in run.variants.all():
        row.verdict = factories.stored_verdict()
        row.verdict["capacity"] = {"withheld": True, "busy": "clients", "share": 0.97}
        row.save()
    text = admin_page.get(page(run)).content.decode()
    answer, _heading, rest = text.partition('id="run-verdicts"')
    assert (answer.count("This run does not show"), rest.count("This run does not show")) == (0, 1)


def test_the_outcome_of_a_test_is_shown_beside_the_verdict(admin_page: Client, told: Run) -> None:
    row = told.variants.get(label="django_orm · tcp")
    other = factories.make_run()
    change = MeasuredChange(211.0, 205.0, 165.0, 10.0)
    tested = Confirmation("lower_layer", "withdrawn", None, change, other.pk)
    row.verdict = factories.stored_verdict(certainty="withdrawn", confirmation=tested)
    row.save()
    text = admin_page.get(page(told)).content.decode()
    assert (
        f'<a href="{address(other)}">Run {other.pk}</a>: withdrawn; the same statements through libpq' in text
    )
    assert "and the time fell by 6.0\u00a0µs" in text


def test_hostile_names_are_escaped(admin_page: Client, told: Run) -> None:
    evil = "</script><script>alert(1)</script>"
    row = told.variants.all()[0]
    row.top["processes"][0]["name"] = row.verdict["word"] = evil
    row.diagnostics["events"] = {evil: 0.9}
    row.diagnostics["notes"] = {evil: evil}
    row.save()
    told.summary["timeline"]["variant"][0] = evil
    told.save()
    text = admin_page.get(page(told)).content.decode()
    assert "<script>alert" not in text
    assert inline_parts(text) == []


def test_phases_of_connections_are_shown_in_their_own_section(admin_page: Client, run: Run) -> None:
    before = admin_page.get(page(run)).content.decode()
    after = admin_page.get(page(add_phases(run))).content.decode()
    for part in ('id="run-connections"', 'data-chart="chart-connections"', "Connect, operate and close",
                 "Throughput with and without connecting"):  # fmt: skip
        assert part not in before
        assert part in after
    assert inline_parts(after) == []


def test_the_section_of_connections_adds_no_query(
    admin_page: Client, told: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    admin_page.get(page(add_phases(told)))
    with django_assert_num_queries(PAGE_QUERIES + 1):  # the benchmarks that the next step may name
        admin_page.get(page(told))


def test_the_page_says_what_stolen_time_is_beside_cpu_times_and_steal(admin_page: Client, told: Run) -> None:
    machine = {**told.environment["machine"], "steal_in_cpu_times": False}
    told.environment = {**told.environment, "machine": machine}
    told.save()
    text = admin_page.get(page(told)).content.decode()
    assert text.count("(steal) is not part of CPU times here") == 3
