"""Passwords do not leak: successful and failing runs on a real worker, then a search of every sink."""

import io
import json
import os
import re
import resource
import shutil
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

import psutil
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from playwright.sync_api import sync_playwright
from psycopg import sql
from pytest_django.live_server_helper import LiveServer
from redis import Redis

from example.stack import web
from example.stack.part import Part
from pgperf.admin import downloads, several
from pgperf.core import layers
from pgperf.core.delayed_routes import lengthened
from pgperf.core.records import Definition
from pgperf.delay.relay import is_relay
from pgperf.models import Benchmark, BlockResult, Database, Run, Target, Workload
from pgperf.reports.run_json import run_json
from pgperf.runs import state
from pgperf.runs.definitions import Overrides
from pgperf.transfer.files import FORMATS
from tests.browser.conftest import SWITCHES
from tests.factories import label_to_test, new_benchmark
from tests.security import pooler
from tests.short_runs import request

pytestmark = pytest.mark.django_db(transaction=True)

#: The search is for its middle part; the rest needs quoting in connection strings, JSON, URLs and
#: SQL.
CANARY = "nightjar7Q4x9Zk"
PASSWORD = f"a'b\\ {CANARY} \"%27=&ü"
WRONG = f"wrong-{CANARY}-password"
ROLE = "canary_role"
#: One program each with psycopg, in another build; and one without a database.
SAME = ("pgbench_one_thread", "psycopg_c", "psycopg_binary", "psycopg_python", "fake")
#: A page's layers log in as the site does, or not at all.
LAYERS = [name for name, layer in layers.LAYERS.items() if name not in SAME and not layer.requests_pages]
MODES = ["simple", "extended"]
ROUTES = ["tcp", "pgbouncer"]
#: Models whose rows are exported and imported.
TRAVELLING = ("benchmark", "database", "workload")
#: All layers over all routes, in the modes of each layer.
VARIANTS = {
    (layer, mode, route)
    for layer, mode, route in product(LAYERS, MODES, ROUTES)
    if mode in layers.LAYERS[layer].modes
}


@pytest.fixture
def secrets_dir(tmp_path: Path, superuser_login: dict[str, Any]) -> Iterator[Path]:
    """Two secret files, one with the password of an existing role."""
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
def pooler_port(secrets_dir: Path, superuser_login: dict[str, Any], tmp_path: Path) -> Iterator[int]:
    """A PgBouncer that grants the role its console; its log is beside the other logs."""
    server = superuser_login["host"], superuser_login["port"]
    settings = {"pool_mode": "session", "default_pool_size": "60", "stats_users": ROLE}
    port, part = pooler.part(server, {ROLE: PASSWORD}, settings)
    part.log = tmp_path / "pgbouncer.log"
    try:
        part.start()
        yield port
    finally:
        part.stop()


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
    """PostgreSQL's log from now on, with every statement of the role."""
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        server = psutil.Process(admin.info.backend_pid).parent()
    assert server
    with Path(os.readlink(f"/proc/{server.pid}/fd/2")).open("rb") as log:
        log.seek(0, os.SEEK_END)
        yield log


class Watcher(threading.Thread):
    """Polls argv, environment and core limit of every child process of the worker."""

    def __init__(self, worker: int) -> None:
        super().__init__(daemon=True)
        self.worker, self.over = worker, threading.Event()
        self.seen: set[int] = set()
        self.relays: set[int] = set()
        self.hits: list[str] = []
        self.cores: set[tuple[int, int]] = set()

    def run(self) -> None:
        while not self.over.wait(0.005):
            for pid in descendants(self.worker):
                try:
                    self._look(pid)
                except OSError:
                    continue

    def _look(self, pid: int) -> None:
        for name in ("cmdline", "environ", "comm"):
            if CANARY.encode() in Path(f"/proc/{pid}/{name}").read_bytes():
                self.hits.append(f"{name} of {pid}")
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
        if is_relay(pid):
            self.relays.add(pid)
        if b"pgperf.clients" in argv or b"pgperf-libpq" in argv:
            self.seen.add(pid)
            if any(os.readlink(link).startswith("socket:") for link in Path(f"/proc/{pid}/fd").iterdir()):
                self.cores.add(
                    resource.prlimit(pid, resource.RLIMIT_CORE)
                )  # it connects: it knows the secret


def descendants(pid: int) -> Iterator[int]:
    """As the kernel lists them; psutil would read every process of the machine each time."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield child
                yield from descendants(child)


class Eavesdropper(threading.Thread):
    """Every command that Redis receives."""

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


def ask(database: Database, name: str = "good", **overrides: Any) -> Run:
    wanted = {"quick": True, "slice_ms": 10, "diagnostic_ms": 50, "rounds": 1, "blocks": 1, **overrides}
    return request(Benchmark.objects.get(name=name), database, Overrides(**wanted))


def ask_far(database: Database) -> Run:
    """A run that includes a relay, as a test of a latency verdict has."""
    with transaction.atomic():
        run = ask(database, layers=["libpq", "asyncpg"], routes=["tcp"])
        longer = replace(Definition.from_json(run.definition), routes=("tcp", lengthened("tcp", 1)))
        Run.objects.filter(pk=run.pk).update(definition=longer.to_json())
    return run


def ended(run: Run, seconds: float = 300) -> Run:
    deadline = time.monotonic() + seconds
    while run.status in state.ACTIVE:
        assert time.monotonic() < deadline, f"{run} is still {run.status}: {run.message}"
        time.sleep(0.05)
        run.refresh_from_db()
    return run


def database(name: str, credential: str, port: int, pooler_port: int, **fields: Any) -> Database:
    row = Database.objects.create(
        name=name, dbname=str(connection.settings_dict["NAME"]), user=ROLE, credential=credential,
        allow_fixtures=True, **fields,
    )  # fmt: skip
    for route, at, pooling in (("tcp", port, ""), ("pgbouncer", pooler_port, "session")):
        Target.objects.create(
            database=row, route=route, host="127.0.0.1", port=at, pooler=pooling, sslmode="disable"
        )
    return row


@pytest.mark.browser
def test_the_password_appears_nowhere(
    own_worker: Part,
    pooler_port: int,
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
    asked = every_kind(routes["tcp"].port, pooler_port)
    results = {name: ended(run) for name, run in asked.items()}
    watcher.over.set()
    watcher.join()

    wanted = {name: "done" if name in ("good", "far") else "failed" for name in asked}
    assert {name: run.status for name, run in results.items()} == wanted, {
        n: r.error for n, r in results.items()
    }
    check_all_took_part(results["good"])
    assert {row.route for row in results["far"].variants.all()} == {"tcp", "tcp+1ms"}
    assert watcher.relays
    assert "wrong password, or the user has none [28P01]" in results["wrong"].error
    assert "[28P01]" in results["astray"].error
    assert results["broken"].error.startswith("Unexpected RuntimeError: no such password=<password>")
    assert len(watcher.seen) >= len(VARIANTS)
    assert watcher.cores == {(0, 0)}
    assert watcher.hits == []

    client, shown = logged_in(), addresses(results)
    sinks = {
        **{name: read(client.get(address)) for name, address in shown.items()}, **exports(client),
        **texts(results, caplog), **files(tmp_path, stack), **tables(), **blocks(),
        **redis(stack["PGPERF_REDIS_URL"], eavesdropper), "PostgreSQL's log": server_log.read(),
    }  # fmt: skip
    looked_at = ["/admin/", shown["comparison of far"], shown["test of good"]]
    looked_at += [address for address in shown.values() if address.endswith("/change/")]
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's event loop runs in this thread
    sinks |= browser(live_server.url, looked_at, tmp_path / "profile")
    assert all(
        sinks[name]
        for name in ("top.csv of good", "worker.log", "redis commands", "redis keys", "blocks of good")
    )
    assert b"<h2>Changes</h2>" in sinks["comparison of far"]
    assert b"Start the test run" in sinks["test of good"]
    assert ROLE.encode() in sinks["pgbouncer.log"]
    assert f'password authentication failed for user "{ROLE}"'.encode() in sinks["PostgreSQL's log"]
    assert b"LOG:  statement: " in sinks["PostgreSQL's log"]
    assert "sessionid" in sinks["browser's cookies"]
    assert sum(name.startswith("browser's file") for name in sinks) > 10
    found = [name for name, content in sinks.items() if is_in(content)]
    assert found == []


def test_the_search_finds_a_planted_password() -> None:
    """The search must be able to fail."""
    for text in (CANARY, repr(PASSWORD), json.dumps(PASSWORD), PASSWORD.encode(), CANARY.encode().hex()):
        assert is_in(text)
    assert not is_in("a night of jars")


def every_kind(port: int, pooler_port: int) -> dict[str, Run]:
    """Successful runs, and each failure that could put a password in a message."""
    right = database("right", "file:right", port, pooler_port)
    wrong = database("wrong", "file:wrong", port, pooler_port)
    Workload.objects.create(name="bad", title="Bad", sql="SELECT broken FROM nowhere")
    for name, workload in (("good", "site-by-domain"), ("broken", "site-by-domain"), ("bad", "bad")):
        new_benchmark(
            [Workload.objects.get(name=workload)], name=name, title=name, layers=LAYERS, routes=ROUTES,
            modes=MODES, clients=[1],
        )  # fmt: skip
    return {
        "good": ask(right),
        "far": ask_far(right),
        "wrong": ask(wrong),
        "astray": ask(wrong, routes=["pgbouncer"]),
        "gone": ask(database("gone", "file:right", 1, 1)),
        "bad": ask(database("reader", "file:right", port, pooler_port, production=False), "bad"),
        "broken": ask(right, "broken"),
        "writer": ask(right, "bad"),
    }


def check_all_took_part(run: Run) -> None:
    """The search must cover every sink, including the pooler's console."""
    rows = run.variants.filter(control=0)
    assert {(row.layer, row.mode, row.route) for row in rows} == VARIANTS
    assert all(row.ops for row in rows)
    assert {row.route for row in rows if row.diagnostics["pooler"]} == {"pgbouncer"}


def logged_in() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("all", password="x"))
    return client


def addresses(results: dict[str, Run]) -> dict[str, str]:
    """Every page and download by its name."""
    found = {f"list of {model}": of(f"{model}_changelist") for model in (*TRAVELLING, "run", "worker")}
    for model, action in product(TRAVELLING, ("import", "export")):
        found[f"{action} of {model}"] = of(f"{model}_{action}")
    benchmark = Benchmark.objects.get(name="good")
    for row in Database.objects.all():
        found |= {
            f"{each} of database {row}": of(f"database_{each}", row.pk) for each in ("change", "history")
        }
        found[f"start on {row}"] = f"{of('benchmark_run', benchmark.pk)}?database={row.pk}"
    for name, run in results.items():
        pages = ("change", "history", "progress")
        found |= {f"{each} of {name}": of(f"run_{each}", run.pk) for each in pages}
        kinds = downloads.FILES
        found |= {f"{each} of {name}": of("run_download", run.pk, each) for each in kinds}
        pair = several.link([results["good"].pk, run.pk])
        found[f"comparison page of {name}"] = f"{of('run_comparison')}{pair}"
        found[f"comparison of {name}"] = f"{of('run_compare', run.pk)}?with={results['good'].pk}"
    variant = urlencode({"variant": label_to_test(results["good"])})
    return {**found, "test of good": f"{of('run_confirm', results['good'].pk)}?{variant}"}


def of(name: str, *args: Any) -> str:
    return reverse(f"admin:pgperf_{name}", args=args)


def read(response: Any) -> bytes:
    """The content; for an archive, the content of its files."""
    assert response.status_code == 200, (response.request["PATH_INFO"], response.status_code)
    return unzipped(response.getvalue())


def exports(client: Client) -> dict[str, Any]:
    found = {}
    for model, kind in product(TRAVELLING, FORMATS):
        response = client.post(of(f"{model}_export"), {"format": kind, "chosen": ""})
        found[f"export of {model} as {kind}"] = read(response)
        assert response["Content-Disposition"].startswith("attachment")
    return found


def texts(results: dict[str, Run], caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    return {
        **{f"json {name}": json.dumps(run_json(run)) for name, run in results.items()},
        "the site's own log": caplog.text,
    }


def files(tmp_path: Path, stack: dict[str, str]) -> dict[str, Any]:
    """Logs, and all files in the directories of the worker and its clients."""
    found = {path.name: path.read_bytes() for path in tmp_path.glob("*.log")}
    cores = [
        path
        for folder in (Path("/"), tmp_path, Path.cwd())
        for path in folder.glob("core*")
        if path.is_file()
    ]
    return {**found, **{f"core file {path}": path.read_bytes() for path in cores}}


def browser(site: str, addresses: list[str], profile: Path) -> dict[str, Any]:
    """All that Chromium stores of a session: storage, cookies and files."""
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
    """Every column of every table of the site's database, including LogEntry and sessions."""
    with connection.cursor() as cursor:
        return {f"table {name}": rows(cursor, name) for name in connection.introspection.table_names(cursor)}


def rows(cursor: Any, table: str) -> str:
    cursor.execute(f'SELECT string_agg(t::text, chr(10)) FROM "{table}" t')
    return cursor.fetchone()[0] or ""


def blocks() -> dict[str, Any]:
    """What the tables hold compressed."""
    found: dict[str, str] = {}
    for row in BlockResult.objects.select_related("run"):
        name = f"blocks of {row.run.benchmark_name}"
        found[name] = found.get(name, "") + zlib.decompress(bytes(row.data)).decode()
    return found


def redis(url: str, eavesdropper: Eavesdropper) -> dict[str, Any]:
    with Redis.from_url(url) as store:
        kept = [key + b" " + repr(_value(store, key)).encode() for key in store.scan_iter()]
        return {"redis commands": "\n".join(eavesdropper.heard), "redis keys": b"\n".join(kept)}


def _value(store: Redis, key: bytes) -> object:
    """As commands return it: a dump may be compressed."""
    read = {
        b"string": store.get, b"hash": store.hgetall, b"set": store.smembers,
        b"list": lambda key: store.lrange(key, 0, -1), b"zset": lambda key: store.zrange(key, 0, -1, withscores=True),
    }  # fmt: skip
    return read[store.type(key)](key)


def unzipped(content: bytes) -> bytes:
    if not content.startswith(b"PK"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


def is_in(content: str | bytes) -> bool:
    """In plain text, hexadecimal, or base64 at any offset; case is ignored."""
    data = content.encode() if isinstance(content, str) else content
    return bool(
        re.search(
            rb"nightjar7|" + CANARY.encode().hex().encode() + rb"|bmlnaHRqYX|5pZ2h0amFy|uaWdodGphc",
            data,
            re.I,
        )
    )
