"""pgperf in a stranger's site: a user model of its own, three databases and a router, SQLite beneath pgperf, an
AdminSite of its own, a strict policy, hashed static files, local times, a Celery that hurries and acknowledges late.
"""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import sync_playwright

from example.stack.part import Part
from tests.browser.conftest import SWITCHES
from tests.stranger.place import Site, harbour_environment, overlay

HERE = Path(__file__).parent
EMAIL, PASSWORD = "boss@harbour.example", "secret"
#: A ladder in seconds: little of everything, but through every step.
SHORT = [
    "--blocks",
    "6",
    "--rounds",
    "2",
    "--slice-ms",
    "20",
    "--placement",
    "scheduler",
    "--layers",
    "libpq,psycopg,django_orm",
]


def local_now() -> datetime:
    """The wall clock in the site's zone."""
    return datetime.now(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None)


def settle(folder: Path, python: Path, env: dict[str, str]) -> Site:
    """The project in its directory, set up as its people would do it."""
    shutil.copytree(HERE / "harbour", folder / "harbour")
    for name in ("manage.py", "look.py", "change.py"):
        shutil.copy(HERE / name, folder)
    site = Site(folder, python, env)
    site.manage("makemigrations", "people", "freight", "--verbosity=0")
    for alias in ("default", "measurements", "warehouse"):
        site.manage("migrate", f"--database={alias}", "--verbosity=0")
    site.manage("collectstatic", "--noinput", "--verbosity=0")
    site.run("manage.py", "createsuperuser", "--noinput", f"--email={EMAIL}")
    site.manage("pgperf", "build")
    site.manage("pgperf", "add", "warehouse", "--name=freight", "--allow-fixtures")
    return site


@pytest.fixture(scope="module", params=[True, False], ids=["USE_TZ", "no USE_TZ"])
def site(
    request: pytest.FixtureRequest,
    wheel: Path,
    stack: dict[str, str],
    new_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    folder = tmp_path_factory.mktemp("harbour")
    warehouse = {**stack, "PGPERF_DB_NAME": new_database(f"harbour_{int(request.param)}")}
    env = harbour_environment(warehouse, folder / "build", request.param)
    env["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
    python = overlay(folder / "venv", wheel)
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    return settle(folder, python, env)


@pytest.fixture(scope="module")
def worker(site: Site) -> Iterator[Part]:
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
def finished(site: Site, worker: Part) -> dict[str, object]:
    """What a run through the worker printed; it took longer than the site's own limits allow a task."""
    words = ["pgperf", "run", "orm-overhead", "--queue", "--json", *SHORT]
    found: dict[str, object] = json.loads(site.manage(*words))
    return found


def test_it_is_the_wheel_that_runs(site: Site) -> None:
    where = site.run("-c", "import pgperf; print(pgperf.__file__)").strip()
    assert Path(where).is_relative_to(site.folder)


def test_no_check_has_anything_to_say(site: Site, worker: Part) -> None:
    every = [f"--database={alias}" for alias in ("default", "measurements", "warehouse")]
    assert "no issues" in site.manage("check", "--fail-level=WARNING", *every)


def test_no_migration_is_missing_under_another_default_key(site: Site) -> None:
    site.manage("makemigrations", "pgperf", "--check", "--dry-run")


def test_a_run_through_the_worker_is_done(finished: dict[str, object]) -> None:
    run = finished["run"]
    assert isinstance(run, dict)
    assert (run["status"], run["error"], run["skipped"]) == ("done", "", {})
    layers = {variant["layer"] for variant in finished["variants"]}  # type: ignore[attr-defined]
    assert layers == {"libpq", "psycopg", "django_orm"}
    began, ended = (datetime.fromisoformat(run[name]) for name in ("started", "finished"))
    assert ended - began > timedelta(seconds=4), "shorter than the site's own time limit: it proves nothing"


def test_times_are_the_sites_own(site: Site, finished: dict[str, object]) -> None:
    run = finished["run"]
    assert isinstance(run, dict)
    moments = [datetime.fromisoformat(run[name]) for name in ("requested", "started", "finished")]
    assert moments == sorted(moments)
    if moments[-1].tzinfo:
        moments = [moment.astimezone(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None) for moment in moments]
    for moment in moments:
        assert abs(local_now() - moment) < timedelta(minutes=10)


def test_every_page_opens(site: Site, finished: dict[str, object]) -> None:
    assert site.run("look.py", str(finished["run"]["id"])) == ""  # type: ignore[index]


def test_the_tables_are_where_the_router_sends_them(site: Site) -> None:
    code = (
        "from django.db import connections as c;"
        "print([a for a in c if any(t.startswith('pgperf') for t in c[a].introspection.table_names())])"
    )
    assert site.manage("shell", "--verbosity=0", "-c", code).strip() == "['measurements']"


def test_users_and_groups_of_another_database(site: Site, finished: dict[str, object]) -> None:
    site.run("change.py")


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
def test_in_a_browser_under_the_strict_policy(site: Site, finished: dict[str, object], url: str) -> None:
    run_id = finished["run"]["id"]  # type: ignore[index]
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
        page.wait_for_selector("canvas[data-chart]")
        drawn = page.evaluate(
            "() => [...document.querySelectorAll('canvas')].every((c) => Chart.getChart(c))"
        )
        assert drawn
        page.click("text=Run again")
        page.wait_for_selector("text=What will run")
        chromium.close()
    assert said == []
