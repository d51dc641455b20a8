"""pgperf in a third-party site that differs from the example site.

It has a custom user model, three databases with a router, SQLite for pgperf's tables, a custom
AdminSite, a strict policy, hashed static files, local times, and a Celery with task limits and late
acknowledgement.
"""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import sync_playwright

from example.stack.part import Part
from tests.browser.conftest import SWITCHES
from tests.installation.environments import Site, harbour_environment, overlay
from tests.installation.prepared import PreparedSite

HERE = Path(__file__).parent
EMAIL, PASSWORD = "boss@harbour.example", "secret"
#: A benchmark of a few seconds that executes every step.
SHORT = (
    "--rounds",
    "2",
    "--slice-ms",
    "20",
    "--placement",
    "scheduler",
    "--layers",
    "libpq,psycopg,django_orm",
)
#: Six management commands in one process.
SET_UP = f"""
import os, django
from django.core.management import call_command
os.environ["DJANGO_SETTINGS_MODULE"] = "harbour.settings"
django.setup()
for alias in ("default", "measurements", "warehouse"):
    call_command("migrate", database=alias, verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
call_command("createsuperuser", interactive=False, email={EMAIL!r})
"""
ZONE = ZoneInfo("Asia/Kathmandu")


def local_now() -> datetime:
    """The local time in the site's time zone."""
    return datetime.now(ZONE).replace(tzinfo=None)


def settle(folder: Path, python: Path, env: dict[str, str]) -> PreparedSite:
    """The project, copied and set up."""
    shutil.copytree(HERE / "harbour", folder / "harbour")
    for name in ("manage.py", "open_pages.py", "use_pages.py"):
        shutil.copy(HERE / name, folder)
    site = PreparedSite(folder, python, env)
    site.manage("makemigrations", "people", "freight", "--verbosity=0")
    site.run("-c", SET_UP)
    site.manage("pgperf", "build")
    site.manage("pgperf", "add", "warehouse", "--name=freight", "--allow-fixtures")
    return site


@pytest.fixture(scope="module")
def sites(
    wheel: Path,
    stack: dict[str, str],
    new_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Site, Site]]:
    """The site with USE_TZ, and a copy without USE_TZ that has its own broker."""
    folder, local = tmp_path_factory.mktemp("harbour"), tmp_path_factory.mktemp("local") / "harbour"
    warehouse = {**stack, "PGPERF_DB_NAME": new_database("harbour")}
    env = harbour_environment(warehouse, folder / "build")
    env["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
    python = overlay(folder / "venv", wheel)
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    site = settle(folder, python, env)
    shutil.copytree(folder, local, ignore=shutil.ignore_patterns("venv"))
    other = env["HARBOUR_REDIS"].rpartition("/")[0] + "/1"
    second = PreparedSite(local, python, {**env, "HARBOUR_USE_TZ": "0", "HARBOUR_REDIS": other})
    yield site, second
    for each in (site, second):
        each.changed()


@pytest.fixture(scope="module")
def site(sites: tuple[Site, Site]) -> Site:
    return sites[0]


@contextmanager
def working(site: Site) -> Iterator[Part]:
    """A worker of the site."""
    command = "-m celery -A harbour worker -Q pgperf -c 1 --loglevel INFO --without-gossip --without-mingle"
    part = Part(
        name="worker of the harbour",
        argv=[str(site.python), *command.split()],
        log=site.folder / "worker.log",
        answers=lambda part: " ready." in part.log_since_start(),
        polite=signal.SIGQUIT,
        cwd=site.folder,
        env=site.env,
    )
    try:
        part.start()
        yield part
    finally:
        part.stop()


@pytest.fixture(scope="module")
def worker(site: Site) -> Iterator[Part]:
    with working(site) as part:
        yield part


def perform(site: Site, *words: str) -> dict[str, Any]:
    """The output of a run through the worker."""
    found: dict[str, Any] = json.loads(
        site.manage("pgperf", "run", "orm-overhead", "--queue", "--json", *SHORT, *words)
    )
    assert (found["run"]["status"], found["run"]["error"], found["run"]["skipped"]) == ("done", "", [])
    return found


@pytest.fixture(scope="module")
def finished(site: Site, worker: Part) -> dict[str, Any]:
    """A run longer than the site's time limit for tasks."""
    return perform(site, "--blocks", "6")


def test_the_site_uses_the_wheel(site: Site) -> None:
    where = site.run("-c", "import pgperf; print(pgperf.__file__)").strip()
    assert Path(where).is_relative_to(site.folder)


def test_system_checks_report_nothing(site: Site, worker: Part) -> None:
    every = [f"--database={alias}" for alias in ("default", "measurements", "warehouse")]
    assert "no issues" in site.run("manage.py", "check", "--fail-level=WARNING", *every)


def test_no_migration_is_missing_under_another_default_key(site: Site) -> None:
    site.manage("makemigrations", "pgperf", "--check", "--dry-run")


def test_a_run_through_the_worker_is_done(finished: dict[str, Any]) -> None:
    layers = {variant["layer"] for variant in finished["variants"]}
    assert layers == {"libpq", "psycopg", "django_orm"}
    began, ended = (datetime.fromisoformat(finished["run"][name]) for name in ("started", "finished"))
    assert ended - began > timedelta(seconds=4), "shorter than the site's own time limit: it proves nothing"


def test_times_are_in_the_time_zone_of_the_site(finished: dict[str, Any]) -> None:
    for moment in moments(finished):
        assert moment.tzinfo
        assert abs(local_now() - moment.astimezone(ZONE).replace(tzinfo=None)) < timedelta(minutes=10)


def test_without_use_tz_times_are_naive_local_times(sites: tuple[Site, Site]) -> None:
    site = sites[1]
    with working(site):
        found = perform(site, "--blocks", "1")
        assert site.run("open_pages.py", str(found["run"]["id"])) == ""
    for moment in moments(found):
        assert moment.tzinfo is None
        assert abs(local_now() - moment) < timedelta(minutes=10)
    assert "no issues" in site.manage("check", "--fail-level=WARNING")


def moments(found: dict[str, Any]) -> list[datetime]:
    """The times of the request, the start and the end of the run."""
    told = [datetime.fromisoformat(found["run"][name]) for name in ("requested", "started", "finished")]
    assert told == sorted(told)
    return told


def test_every_page_opens(site: Site, finished: dict[str, Any]) -> None:
    assert site.run("open_pages.py", str(finished["run"]["id"])) == ""


def test_the_router_decides_the_database_of_the_tables(site: Site) -> None:
    code = (
        "from django.db import connections as c;"
        "print([a for a in c if any(t.startswith('pgperf') for t in c[a].introspection.table_names())])"
    )
    assert site.manage("shell", "--verbosity=0", "-c", code).strip() == "['measurements']"


@pytest.fixture
def url(site: Site) -> Iterator[str]:
    log = site.folder / "site.log"
    part = Part(
        name="harbour",
        argv=[str(site.python), "-u", "manage.py", "runserver", "--noreload", "--nostatic", "127.0.0.1:0"],
        log=log,
        answers=lambda part: "Quit the server" in part.log_since_start(),
        polite=signal.SIGTERM,
        cwd=site.folder,
        env=site.env,
    )
    try:
        part.start()
        yield "http://" + part.log_since_start().partition("server at http://")[2].split("/")[0]
    finally:
        part.stop()


@pytest.mark.browser
def test_pages_load_under_a_strict_policy(site: Site, finished: dict[str, Any], url: str) -> None:
    run_id = finished["run"]["id"]
    with sync_playwright() as tools:
        chromium = tools.chromium.launch(executable_path=shutil.which("chromium"), args=list(SWITCHES))
        page = chromium.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(f"{page.url}: {message.type} {message.text}"))
        page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
        page.goto(f"{url}/ops/")
        page.fill("#id_username", EMAIL)
        page.fill("#id_password", PASSWORD)
        page.click("[type=submit]")
        for model in ("benchmark", "database", "workload", "worker", "run"):
            page.goto(f"{url}/ops/pgperf/{model}/")
        page.click(f"a[href*='/run/{run_id}/change/']")
        page.wait_for_selector("#run-answer canvas")
        page.wait_for_function(
            "[...document.querySelectorAll('#run-answer canvas')].every((canvas) => Chart.getChart(canvas))"
        )
        page.get_by_role("link", name="Run again", exact=True).click()
        page.wait_for_selector("text=Preview")
        chromium.close()
    assert said == []


def test_users_and_groups_in_another_database(site: Site, finished: dict[str, Any]) -> None:
    """It deletes the database, so it is the last test."""
    site.run("use_pages.py")
