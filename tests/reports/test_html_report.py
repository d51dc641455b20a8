"""The report of a run: one file with all that the run's page shows, and nothing that acts or asks."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.utils import translation

from pgperf.analysis.grade import Disturbance, Grade, GradeWord, Source
from pgperf.analysis.verdict import Basis, Finding
from pgperf.models import Run, VariantResult
from pgperf.reports.html_report import comparison_html, run_html
from pgperf.reports.run_page import result
from pgperf.reports.several_runs import compare_several
from tests import factories, site_steps
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import CLIENTS, add_cpu_accounts

pytestmark = pytest.mark.django_db

#: Bytes of the largest report.
MOST = 1_000_000


@pytest.fixture
def run() -> Run:
    return add_cpu_accounts(factories.make_results(factories.make_run()))


def test_the_answer_is_first_and_every_section_follows_open(run: Run) -> None:
    html = run_html(run)
    sections = re.findall(r'<section [^>]*id="run-(\w+)"', html)
    assert sections == [section.name for section in result(run).sections]
    assert sections[0] == "answer"
    assert len(re.findall("<details[^>]* open", html)) == html.count("<details")
    assert html.count("<svg") == html.count("<figure") > 5


def test_the_link_of_each_topic_is_marked_by_a_rule_of_its_own(run: Run) -> None:
    """The file has no script that could move aria-current."""
    html = run_html(run)
    topics = re.findall(r'<div class="pgperf-topic[^"]*" id="(topic-\w+)"', html)
    assert len(topics) > 5
    for each in (*topics, "topic-all"):
        assert html.count(f'a[href="#{each}"]') == 1
    assert "aria-current=" not in html.partition("<body")[2]


def test_outcomes_that_ask_for_more_than_the_intervals_show_say_so(run: Run) -> None:
    """Where the outcomes are, and where their words are explained."""
    assert run_html(run).count("of two similar intervals one may differ and the other be inconclusive") == 2


def test_what_was_skipped_is_open(run: Run) -> None:
    run.summary["skipped"] = [{"layer": "asyncpg", "reason": "not installed"}]
    html = run_html(run)
    assert "Skipped: 1 part" in html
    assert len(re.findall("<details[^>]* open", html)) == html.count("<details")


def test_a_run_without_cpu_figures_has_no_empty_chart(run: Run) -> None:
    assert 'id="chart-cpu"' in run_html(run)
    run.variants.update(cpu_us_per_op={})
    html = run_html(run)
    assert 'id="run-speed"' in html
    assert 'id="chart-cpu"' not in html


def test_the_file_allows_itself_styles_only(run: Run) -> None:
    html = run_html(run)
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'" in html
    for absent in ("<script", "<link", "<img", "<form", "<canvas", "url(", "@import", "http:", "https:"):
        assert absent not in html
    assert set(re.findall(r'href="(.)', html)) == {"#"}


def test_a_site_without_pages_makes_the_same_file(run: Run) -> None:
    html = run_html(run)
    with override_settings(ROOT_URLCONF="tests.no_urls"):
        assert run_html(run) == html


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (Run.Status.CANCELLED, "Ended because ada.lovelace paused pgperf."),
        (Run.Status.LOST, "No sign of life from pgperf@secret-host for 30 s: it was killed."),
    ],
)
def test_the_reason_of_an_end_names_nobody(run: Run, status: str, error: str) -> None:
    run.status, run.error, run.worker = status, error, "pgperf@secret-host"
    run.save()
    html = run_html(run)
    assert not re.search("lovelace|secret-host", html)
    assert re.search(r"because … paused pgperf|No sign of life from … for 30 s", html)
    run.status = Run.Status.FAILED
    assert error in run_html(run)


def test_names_of_people_and_hosts_stay_out(run: Run) -> None:
    run.requested_by = User.objects.create_user("ada.lovelace")
    run.worker = "pgperf@secret-host"
    run.notes = "After <b>the</b> upgrade"
    run.environment = run.environment | {
        "access": {
            "tcp": "role_ada: this role can write (may become the superuser x_ada); read-only session"
        },
        "can_write": "role_ada",
        "server_host": {"agent": "agent@secret-host", "kernel": "6.1.9-db"},
        "load_hosts": {
            "hosts": {"app1": {"worker": "load@secret-host", "kernel": "6.1.9-app"}},
            "lost": {"app2": "load@secret-host: no sign of life"},
        },
    }
    rows = list(run.variants.all())
    for row in rows:
        for each in row.top["processes"]:
            each["user"] = "os_ada"
        row.verdict = _with_names()
    VariantResult.objects.bulk_update(rows, ["top", "verdict"])
    html = run_html(run)
    assert "_ada" not in html
    assert "The role of this run can write." in html
    assert '<td class="words">this role can write; read-only session' in html
    assert run.environment["can_write"] == "role_ada"
    assert "backup (pid 4711)" in html
    assert "GRANT pg_read_all_stats TO …" in html
    assert "secret-host" not in html
    assert "lovelace" not in html
    assert "6.1.9-db" in html
    assert "6.1.9-app" in html
    assert "…: no sign of life" in html
    assert run.environment["server_host"]["agent"] == "agent@secret-host"
    assert "After &lt;b&gt;the&lt;/b&gt; upgrade" in html


def _with_names() -> dict[str, Any]:
    """A verdict that names who disturbed it, and the role that lacks a grant."""
    queue = Disturbance(
        Source.RUN_QUEUE, "host", 90.0, 0.4, 1.2, programs=("backup (pid 4711, user os_ada)",)
    )
    finding = Finding(
        Basis.INPUTS, missing=("server CPU",), grant='GRANT pg_read_all_stats TO role_ada; GRANT a TO "b_ada"'
    )
    grade = Grade(GradeWord.POOR, 0.4, (queue,))
    return factories.stored_verdict("unknown", certainty="unknown", finding=finding, grade=grade)


def test_a_comparison_of_runs_names_no_role(run: Run) -> None:
    other = factories.make_results(factories.make_run())
    access = {"access": {"tcp": "role_ada: cannot write, proved"}, "can_write": "role_ada"}
    other.environment = other.environment | access | {"python": "3.99"}
    other.save()
    found = compare_several([run, other])
    assert "role_ada" in str(found.differences)
    html = comparison_html(found)
    assert "3.99" in html
    assert "role_ada" not in html


def test_a_comparison_of_runs_names_no_worker_and_no_user_of_the_site(run: Run) -> None:
    """Whose names the page in the admin has, or not even that."""
    other = factories.make_results(factories.make_run())
    for each, name in ((run, "one"), (other, "two")):
        page = {"path": "/", "method": "GET", "user": f"ada-{name}", "one_capture": False}
        each.definition = each.definition | {"workloads": [{"name": "page", "sql": "", "page": page}]}
        agent = {"agent": f"agent@host-{name}", "kernel": f"6.1.9-{name}"}
        hosts = {"app1": {"worker": f"load@host-{name}"}}
        each.environment = each.environment | {"server_host": agent, "load_hosts": {"hosts": hosts}}
        each.save()
    found = compare_several([run, other])
    assert "agent@host-two" in str(found.differences)
    assert "ada-two" not in str(found.differences)
    html = comparison_html(found)
    assert "6.1.9-two" in html
    for absent in ("@host", "host-one", "host-two", "ada-"):
        assert absent not in html
    assert f"#{run.pk} (baseline)" in html


@pytest.mark.parametrize("status", [Run.Status.FAILED, Run.Status.CANCELLED])
def test_a_run_without_results_says_so(status: str) -> None:
    html = run_html(factories.make_run(status, error="no <route>"))
    assert "This run has no results." in html
    assert "no &lt;route&gt;" in html


@pytest.mark.parametrize("status", [Run.Status.QUEUED, Run.Status.RUNNING])
def test_a_run_under_way_has_not_ended(status: str) -> None:
    html = run_html(factories.make_run(status))
    assert "This run has no results yet." in html
    assert "The run has not ended." in html
    assert "The run ended" not in html


def test_coordinates_are_the_same_in_every_language(run: Run) -> None:
    with translation.override("de"):
        german = run_html(run)
    assert '<html lang="de"' in german
    assert set(re.findall(r'viewBox="([^"]*)"', german)) == set(
        re.findall(r'viewBox="([^"]*)"', run_html(run))
    )


@pytest.mark.parametrize("name", ["driver-suite-published", "connection-cost", "site", "client-scaling"])
def test_the_largest_reports_are_small(name: str) -> None:
    assert len(run_html(make_large(name)).encode()) < MOST


def test_the_report_of_92_variants_is_small() -> None:
    run = add_cpu_accounts(factories.make_results(factories.make_run(), clients=CLIENTS))
    assert run.variants.count() == 92
    assert len(run_html(run).encode()) < MOST


def test_the_comparison_of_eight_runs_of_92_variants_is_small() -> None:
    runs = [factories.make_results(factories.make_run(), clients=CLIENTS) for _ in range(8)]
    assert len(comparison_html(compare_several(runs)).encode()) < MOST


def make_large(name: str) -> Run:
    """A run of the catalog with many variants."""
    if name == "site":
        return add_cpu_accounts(site_steps.make_run())
    if name == "client-scaling":
        run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=CLIENTS)
        return add_cpu_accounts(run)
    return make_catalog_run(name)
