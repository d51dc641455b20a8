"""From a schedule to an e-mail about a change, with a real worker, and from the e-mail to the page."""

import email
import email.policy
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connection
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from example.stack import web
from example.stack.part import Part
from pgperf import schedules
from pgperf.catalog.sync import copy_catalog
from pgperf.models import Benchmark, ChangePoint, ComparisonResult, Database, Run, Schedule
from pgperf.runs import state
from tests import factories
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Long enough for a loaded machine; what happens at once ends the wait at once.
WAIT_S = 120
#: Runs before the change, which take a fifth of the time, and those after it.
FASTER, SLOWER = 20, 19


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the worker's e-mail goes."""
    return tmp_path_factory.mktemp("mail")


@pytest.fixture(scope="module")
def mailing_worker(
    mail: Path, live_server: LiveServer, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Part]:
    environment = {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings_mail",
        "PGPERF_TEST_MAIL": str(mail),
        "PGPERF_TEST_SITE": live_server.url,
    }
    part = web.worker(tmp_path_factory.mktemp("worker"), environment)
    try:
        part.start()
        yield part
    finally:
        part.stop()


@pytest.fixture
def benchmark() -> Benchmark:
    """The shortest run with a step: Django's cursor on its driver, over one route."""
    copy_catalog(apps=apps, using=DEFAULT_DB_ALIAS)
    workload = Benchmark.objects.get(name="orm-overhead").workloads
    return factories.new_benchmark(
        workload, name="one-step", title="One step", layers=["psycopg", "django_cursor"], routes=["socket"],
        modes=["simple"], clients=[1], blocks=2, rounds=4, slice_ms=50, diagnostic_ms=0,
    )  # fmt: skip


def done(run: Run) -> Run:
    until(
        lambda: not Run.objects.filter(pk=run.pk, status__in=state.ACTIVE).exists(),
        WAIT_S,
        "the run has ended",
    )
    run.refresh_from_db()
    assert (run.status, run.error) == (Run.Status.DONE, "")
    return run


def like(measured: Run, share: float, ago: timedelta) -> Run:
    """A run that ended that long ago and took that share of the time, with narrow intervals."""
    run = factories.make_run(
        benchmark=measured.benchmark, database=measured.database, definition_hash=measured.definition_hash,
        finished_at=timezone.now() - ago,
    )  # fmt: skip
    copies = {}
    for row in measured.variants.filter(control=0):
        number, us = row.pk, row.us_per_op * share
        row.pk, row.run, row.us_per_op, row.us_per_op_low, row.us_per_op_high = (
            None,
            run,
            us,
            us * 0.99,
            us * 1.01,
        )
        row.save()
        copies[number] = row
    for pair in ComparisonResult.objects.filter(run=measured, variant__in=copies, baseline__in=copies):
        pair.pk, pair.run = None, run
        pair.variant, pair.baseline = copies[pair.variant_id], copies[pair.baseline_id]
        delta_us, reach = pair.delta_us * share, pair.variant.us_per_op * 0.01
        pair.delta_us, pair.delta_low_us, pair.delta_high_us = delta_us, delta_us - reach, delta_us + reach
        pair.save()
    return run


def make_history(measured: Run) -> Run:
    """Fast runs, then slow ones; the first of these. The measured one is not of them."""
    shares = [0.2] * FASTER + [1.0] * SLOWER
    noise = (0.0, 0.006, -0.008, 0.004, -0.001, 0.01, -0.005, 0.002, -0.009, 0.007, -0.004)
    runs = [
        like(measured, share * (1 + noise[at % len(noise)]), timedelta(hours=8) * (len(shares) - at))
        for at, share in enumerate(shares)
    ]
    measured.delete()
    return runs[FASTER]


def start_due(schedule: Schedule) -> Run:
    """The run that the command starts."""
    call_command("pgperf", "due")
    return Run.objects.get(schedule=schedule)


def read(folder: Path) -> EmailMessage:
    """The only message; the backend ends it with a line of hyphens."""
    until(lambda: any(b"\n-----" in path.read_bytes() for path in folder.iterdir()), WAIT_S, "an e-mail")
    [path] = folder.iterdir()
    found = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    return found


def test_a_schedule_alarms_by_an_e_mail_that_leads_to_the_history(
    page: Page, mailing_worker: Part, database: Database, benchmark: Benchmark, mail: Path
) -> None:
    User.objects.filter(username="boss").update(email="boss@example.com")
    slower = make_history(done(state.request(benchmark, database)))
    at = (timezone.now() - timedelta(minutes=5)).astimezone(schedules.zone())

    page.goto("/admin/pgperf/schedule/add/")
    page.select_option("[name=benchmark]", label="one-step")
    page.select_option("[name=database]", label="demo")
    page.fill("[name=at]", f"{at:%H:%M}")
    page.click("[name=_save]")
    expect(page.locator(".messagelist .success")).to_be_visible()
    schedule = Schedule.objects.get()
    Schedule.objects.update(due_at=at.replace(second=0, microsecond=0))  # as if saved before that time
    run = done(start_due(schedule))

    message = read(mail)
    assert message["To"] == "boss@example.com"
    assert message["Subject"].endswith("in one-step on demo")
    text = message.get_content()
    headline = ChangePoint.objects.get(layers__isnull=False)
    assert (headline.run_id, headline.found_by) == (slower.pk, run.pk)
    assert "Django cursor · socket: " in text
    assert f" slower since run {slower.pk}, " in text
    assert "  - psycopg 3 · socket: time per operation: " in text
    assert "add up to +" in text or "explains +" in text

    [link] = re.findall(r"http://\S+", text)
    page.goto(link)
    expect(page.locator("h1")).to_contain_text("Results over runs: one-step")
    expect(page.locator(".pgperf-headlines")).to_contain_text(f"slower since run {slower.pk}, ")
    expect(page.locator(".pgperf-layer-change").first).to_be_visible()
    page.goto("/admin/pgperf/")
    concern = page.get_by_role("link", name="one-step on demo got slower")
    concern.click()
    expect(page.locator("h1")).to_contain_text("Results over runs: one-step")
