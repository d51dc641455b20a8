"""A password nobody should ever see again: real runs through the real worker, good ones and failing ones, and then
every place is searched where something could have kept it.
"""

import io
import json
import os
import re
import resource
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import psutil
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from playwright.sync_api import sync_playwright
from psycopg import sql
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from example.stack import web
from example.stack.part import Part
from pgperf import runs
from pgperf.definitions import Overrides
from pgperf.models import Benchmark, Database, Run, Target, Workload
from pgperf.reports.run import run_json
from tests.browser.conftest import SWITCHES

pytestmark = pytest.mark.django_db(transaction=True)

#: Its middle is searched for; around it is what is quoted in connection strings, JSON, URLs, and SQL.
CANARY = "nightjar7Q4x9Zk"
PASSWORD = f"a'b\\ {CANARY} \"%27=&ü"
WRONG = f"wrong-{CANARY}-password"
ROLE = "canary_role"
LAYERS = ["libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"]


@pytest.fixture
def secrets_dir(tmp_path: Path, superuser_login: dict[str, Any]) -> Iterator[Path]:
    """Two files, one with the password of a role that there is."""
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    (folder / "right").write_text(PASSWORD)
    (folder / "wrong").write_text(WRONG)
    database = str(connection.settings_dict["NAME"])
    with psycopg.connect(**superuser_login, dbname=database) as admin:
        admin.execute("DROP SCHEMA IF EXISTS pgperf CASCADE")  # another test's, and another owner's
        admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(ROLE)))
        admin.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(ROLE), sql.Literal(PASSWORD))
        )
        admin.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
                sql.Identifier(database), sql.Identifier(ROLE)
            )
        )
        admin.execute(sql.SQL("ALTER ROLE {} SET log_statement = 'all'").format(sql.Identifier(ROLE)))
        yield folder
        admin.execute("DROP SCHEMA IF EXISTS pgperf CASCADE")
        admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(ROLE)))
        admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(ROLE)))


@pytest.fixture
def own_worker(secrets_dir: Path, tmp_path: Path, c_client: Path) -> Iterator[Part]:
    environment = {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings_secrets",
        "PGPERF_TEST_SECRETS": str(secrets_dir),
        "PGPERF_TEST_BUILD": str(c_client.parent),
    }
    part = web.worker(tmp_path, environment)
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))  # as on a machine that keeps core files
    part.start()
    try:
        yield part
    finally:
        part.stop()
        resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.fixture
def server_log(own_worker: Part, superuser_login: dict[str, Any]) -> Iterator[BinaryIO]:
    """What PostgreSQL writes to its log from here on; it writes every statement of the role."""
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        server = psutil.Process(admin.info.backend_pid).parent()
    assert server
    with Path(os.readlink(f"/proc/{server.pid}/fd/2")).open("rb") as log:
        log.seek(0, os.SEEK_END)
        yield log


class Watcher(threading.Thread):
    """Looks at argv, environment and core limit of every process below the worker, again and again."""

    def __init__(self, worker: int) -> None:
        super().__init__(daemon=True)
        self.worker, self.over = worker, threading.Event()
        self.seen: set[int] = set()
        self.hits: list[str] = []
        self.cores: set[tuple[int, int]] = set()

    def run(self) -> None:
        while not self.over.wait(0.005):
            for process in psutil.Process(self.worker).children(recursive=True):
                try:
                    self._look(process.pid)
                except (OSError, psutil.Error):
                    continue

    def _look(self, pid: int) -> None:
        for name in ("cmdline", "environ", "comm"):
            if CANARY.encode() in Path(f"/proc/{pid}/{name}").read_bytes():
                self.hits.append(f"{name} of {pid}")
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"pgperf.clients" in argv or b"pgperf-libpq" in argv:
            self.seen.add(pid)
            if any(os.readlink(link).startswith("socket:") for link in Path(f"/proc/{pid}/fd").iterdir()):
                self.cores.add(
                    resource.prlimit(pid, resource.RLIMIT_CORE)
                )  # it connects: it knows the secret


class Eavesdropper(threading.Thread):
    """Every command that Redis is given."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.redis, self.heard, self.ready = Redis.from_url(url), [], threading.Event()  # type: ignore[var-annotated]

    def run(self) -> None:
        with self.redis.monitor() as monitor:
            self.ready.set()
            try:
                for command in monitor.listen():
                    self.heard.append(str(command))
            except Exception:
                return


def ask(database: Database, name: str = "orm-overhead", **overrides: Any) -> Run:
    wanted = {
        "quick": True,
        "layers": LAYERS,
        "routes": ["tcp"],
        "slice_ms": 10,
        "diagnostic_ms": 50,
        "rounds": 1,
        "blocks": 2,
        **overrides,
    }
    return runs.request(Benchmark.objects.get(name=name), database, Overrides(**wanted))


def ended(run: Run, seconds: float = 120) -> Run:
    deadline = time.monotonic() + seconds
    while run.status in runs.ACTIVE:
        assert time.monotonic() < deadline, f"{run} is still {run.status}: {run.message}"
        time.sleep(0.05)
        run.refresh_from_db()
    return run


def database(name: str, credential: str, port: int, host: str = "127.0.0.1", **fields: Any) -> Database:
    row = Database.objects.create(
        name=name, dbname=str(connection.settings_dict["NAME"]), user=ROLE, credential=credential,
        allow_fixtures=True, **fields,
    )  # fmt: skip
    Target.objects.create(database=row, route="tcp", host=host, port=port, sslmode="disable")
    return row


@pytest.mark.browser
def test_nobody_sees_it_again(
    own_worker: Part,
    server_log: BinaryIO,
    stack: dict[str, str],
    routes: dict[str, Any],
    live_server: LiveServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert own_worker.process
    watcher, eavesdropper = Watcher(own_worker.process.pid), Eavesdropper(stack["PGPERF_REDIS_URL"])
    watcher.start()
    eavesdropper.start()
    assert eavesdropper.ready.wait(10)
    asked = every_kind(routes["tcp"].port)
    results = {name: ended(run) for name, run in asked.items()}
    watcher.over.set()
    watcher.join()

    wanted = {
        "good": "done",
        "wrong": "failed",
        "gone": "failed",
        "bad": "failed",
        "broken": "failed",
        "writer": "failed",
    }
    assert {name: run.status for name, run in results.items()} == wanted, {
        n: r.error for n, r in results.items()
    }
    assert "password authentication failed" in results["wrong"].error
    assert results["broken"].error.startswith("Unexpected RuntimeError: no such password=<password>")
    assert len(watcher.seen) >= 2 * len(LAYERS)
    assert watcher.cores == {(0, 0)}
    assert watcher.hits == []

    sinks = {
        **pages(results), **texts(results, caplog), **files(tmp_path, stack), **tables(),
        **redis(stack["PGPERF_REDIS_URL"], eavesdropper), "PostgreSQL's log": server_log.read(),
    }  # fmt: skip
    addresses = ["/admin/", *(reverse("admin:pgperf_run_change", args=[run.pk]) for run in results.values())]
    addresses += [reverse("admin:pgperf_database_change", args=[row.pk]) for row in Database.objects.all()]
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's event loop runs in this thread
    sinks |= browser(live_server.url, addresses, tmp_path / "profile")
    assert len(sinks) >= 15
    assert all(sinks[name] for name in ("page run good", "variants.csv good", "worker.log", "redis commands"))
    assert f'password authentication failed for user "{ROLE}"'.encode() in sinks["PostgreSQL's log"]
    assert b"LOG:  statement: " in sinks["PostgreSQL's log"]
    assert "sessionid" in sinks["browser's cookies"]
    assert sum(name.startswith("browser's file") for name in sinks) > 10
    found = [name for name, content in sinks.items() if is_in(content)]
    assert found == []


def test_the_search_finds_what_it_should() -> None:
    """A check that cannot fail would be worth nothing."""
    for text in (CANARY, repr(PASSWORD), json.dumps(PASSWORD), PASSWORD.encode(), CANARY.encode().hex()):
        assert is_in(text)
    assert not is_in("a night of jars")


def every_kind(port: int) -> dict[str, Run]:
    """A good run, and each way to fail that could put a password in a message."""
    right = database("right", "file:right", port)
    Workload.objects.create(name="bad", title="Bad", sql="SELECT broken FROM nowhere")
    for name, workload in (("broken", "site-by-domain"), ("bad", "bad")):
        Benchmark.objects.create(
            name=name, title=name, workload=Workload.objects.get(name=workload), layers=LAYERS, routes=["tcp"],
            modes=["simple"], clients=[1],
        )  # fmt: skip
    return {
        "good": ask(right),
        "wrong": ask(database("wrong", "file:wrong", port)),
        "gone": ask(database("gone", "file:right", 1)),
        "bad": ask(database("reader", "file:right", port, production=False), "bad"),
        "broken": ask(right, "broken"),
        "writer": ask(right, "bad"),
    }


def pages(results: dict[str, Run]) -> dict[str, Any]:
    User.objects.create_superuser("all", password="x")
    client = Client()
    client.force_login(User.objects.get(username="all"))
    found: dict[str, Any] = {}
    for model in ("benchmark", "database", "workload", "run", "worker"):
        found[f"list of {model}"] = client.get(reverse(f"admin:pgperf_{model}_changelist")).content
    for row in Database.objects.all():
        for action in ("change", "history"):
            address = reverse(f"admin:pgperf_database_{action}", args=[row.pk])
            found[f"database {action} {row}"] = client.get(address).content
        address = reverse("admin:pgperf_benchmark_run", args=[Benchmark.objects.get(name="orm-overhead").pk])
        found[f"confirm {row}"] = client.get(address, {"database": row.pk}).content
    for name, run in results.items():
        for action in ("change", "history", "progress"):
            page = {"change": "page run", "history": "history", "progress": "progress"}[action]
            found[f"{page} {name}"] = client.get(reverse(f"admin:pgperf_run_{action}", args=[run.pk])).content
        for download in (
            "variants.csv",
            "variants.xlsx",
            "comparisons.csv",
            "comparisons.xlsx",
            "slices.csv",
        ):
            response = client.get(reverse("admin:pgperf_run_download", args=[run.pk, download]))
            content = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
            found[f"{download} {name}"] = unzipped(content)
    for model in ("benchmark", "database", "workload"):
        address = reverse(f"admin:pgperf_{model}_export")
        found[f"export of {model}"] = client.post(address, {"format": "json", "chosen": ""}).content
    return found


def texts(results: dict[str, Run], caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    return {
        **{f"json {name}": json.dumps(run_json(run)) for name, run in results.items()},
        "the site's own log": caplog.text,
    }


def files(tmp_path: Path, stack: dict[str, str]) -> dict[str, Any]:
    """Logs, and whatever lies about in the directories of the worker and of its clients."""
    found = {path.name: path.read_bytes() for path in tmp_path.glob("*.log")}
    cores = [
        path
        for folder in (Path("/"), tmp_path, Path.cwd())
        for path in folder.glob("core*")
        if path.is_file()
    ]
    return {**found, **{f"core file {path}": path.read_bytes() for path in cores}}


def browser(site: str, addresses: list[str], profile: Path) -> dict[str, Any]:
    """What Chromium keeps of a session that looks at the pages: storages of every kind, cookies, its files."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=shutil.which("chromium"), args=list(SWITCHES), base_url=site
        )
        page = context.new_page()
        page.goto("/admin/")
        page.fill("#id_username", "all")
        page.fill("#id_password", "x")
        page.click("[type=submit]")
        for address in addresses:
            answer = page.goto(address, wait_until="load")
            assert answer
            assert answer.status == 200
        storage = page.evaluate(STORAGES)
        page.evaluate("secret => sessionStorage.setItem('x', secret)", CANARY)
        assert is_in(page.evaluate(STORAGES))  # it would be seen
        page.evaluate("sessionStorage.clear()")
        cookies = json.dumps(context.storage_state())
        context.close()
    files = {f"browser's file {path}": path.read_bytes() for path in profile.rglob("*") if path.is_file()}
    return {"browser's storages": storage, "browser's cookies": cookies, **files}


STORAGES = """async () => {
    const held = {local: {...localStorage}, session: {...sessionStorage}, name: window.name, cached: []};
    held.databases = (await indexedDB.databases()).map(each => each.name);
    for (const name of await caches.keys())
        for (const request of await (await caches.open(name)).keys())
            held.cached.push(request.url);
    return JSON.stringify(held);
}"""


def tables() -> dict[str, Any]:
    """Every column of every table of the site's database, LogEntry and sessions included."""
    with connection.cursor() as cursor:
        return {f"table {name}": rows(cursor, name) for name in connection.introspection.table_names(cursor)}


def rows(cursor: Any, table: str) -> str:
    cursor.execute(f'SELECT string_agg(t::text, chr(10)) FROM "{table}" t')
    return cursor.fetchone()[0] or ""


def redis(url: str, eavesdropper: Eavesdropper) -> dict[str, Any]:
    with Redis.from_url(url) as store:
        kept = [key + b" " + (store.dump(key) or b"") for key in store.scan_iter()]
        return {"redis commands": "\n".join(eavesdropper.heard), "redis keys": b"\n".join(kept)}


def unzipped(content: bytes) -> bytes:
    if not content.startswith(b"PK"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


def is_in(content: str | bytes) -> bool:
    """In clear, as hexadecimal, or in base64 at any of its three offsets; without regard to case."""
    data = content.encode() if isinstance(content, str) else content
    return bool(
        re.search(
            rb"nightjar7|" + CANARY.encode().hex().encode() + rb"|bmlnaHRqYX|5pZ2h0amFy|uaWdodGphc",
            data,
            re.I,
        )
    )
