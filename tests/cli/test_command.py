"""`manage.py pgperf` as people type it: what it prints, how it exits, and that no traceback reaches
them.
"""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import DatabaseError, connection
from django.test import Client
from django.urls import clear_url_caches
from django.utils import timezone

from benchmarks.twin import twin
from pgperf.access import fixtures, guardrails, readonly_role
from pgperf.catalog import BENCHMARKS, FIXTURES
from pgperf.cli import build, doctor
from pgperf.cli import run as run_command
from pgperf.cli.progress_bar import Bar
from pgperf.core.layers import LAYERS
from pgperf.core.records import Route
from pgperf.install.c_client import BuildResult
from pgperf.install.drivers import DriversResult
from pgperf.install.launch import C_CLIENT
from pgperf.models import Benchmark, Database, Run, Target, Worker, Workload
from pgperf.reports.labels import layer_title
from pgperf.runner import machine_look, site_connection
from pgperf.runner.server import version
from pgperf.runs import state
from pgperf.runs.definitions import freeze
from pgperf.worker.execution import perform
from tests import short_runs
from tests.client_environments import with_other_pgperf
from tests.clients.web_server import WebServer
from tests.factories import make_benchmark, make_database, make_results, make_run, make_worker, new_benchmark
from tests.kept_connections import kept
from tests.machine_looks import look

#: How the statements begin that doctor prints.
SQL = ("CREATE ", "GRANT ", "REVOKE ", "ALTER ")
CHECKOUT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


def pgperf(*words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    call_command("pgperf", *words, stdout=out, stderr=err)
    return out.getvalue()


def refusal(*words: str) -> str:
    with pytest.raises(CommandError) as caught:
        pgperf(*words)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def spin(monkeypatch: pytest.MonkeyPatch, one_heartbeat: None) -> Benchmark:
    """A benchmark of the fake layer on a database that is never connected to."""
    monkeypatch.setattr(state, "request", short_runs.request)
    make_database()
    workload = Workload.objects.create(name="spin", title="nothing", sql="SELECT 1")
    return new_benchmark(
        [workload], name="spin", title="Nothing at all", layers=["fake"], routes=["tcp"], modes=["simple"],
        clients=[1], placement="scheduler", blocks=2, rounds=1, slice_ms=10,
    )  # fmt: skip


class TestList:
    def test_tables(self) -> None:
        database = make_database()
        database.targets.create(route="web", url="https://site.example")
        make_benchmark()
        text = pgperf("list")
        assert "orm-overhead" in text
        assert "127.0.0.1:5432" in text
        assert "https://site.example" in text
        assert all(layer in text for layer in LAYERS)

    def test_json(self, settings: Any, tmp_path: Path) -> None:
        settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": tmp_path}
        make_database()
        make_benchmark("ours")
        found = json.loads(pgperf("list", "--json"))
        assert {row["name"]: row["catalog"] for row in found["benchmarks"]}["ours"] is False
        (own,) = (row for row in found["benchmarks"] if row["name"] == "ours")
        assert (own["precision"], own["budget_s"], own["may_lose_hosts"]) == (0.0, 0, False)
        assert not {"id", "description", "restricted"} & set(own)
        assert [target["route"] for target in found["databases"][0]["targets"]] == [
            "socket",
            "tcp",
            "pgbouncer",
        ]
        modes = {row["name"]: row["modes"] for row in found["layers"]}
        assert "pgperf build" in modes["libpq"]["simple"]
        assert modes["fake"] == {"simple": "", "extended": "", "prepared": ""}

    def test_a_new_site(self) -> None:
        Benchmark.objects.all().delete()
        text = pgperf("list")
        assert "manage.py migrate" in text
        assert "Add a database" in text

    def test_no_credential_is_shown(self) -> None:
        make_database(credential="env:PGPERF_SECRET_CANARY")
        assert "CANARY" not in pgperf("list") + pgperf("list", "--json")


class TestRun:
    def test_prints_what_was_measured(self, spin: Benchmark) -> None:
        text = pgperf("run", "spin")
        assert f"spin #{Run.objects.get().pk} on demo: done" in text
        assert f"{layer_title('fake')} · tcp" in text
        assert "Controls" in text
        assert "Cold phases" in text

    def test_ends_with_the_path_of_the_page(self, spin: Benchmark, client: Client) -> None:
        last = pgperf("run", "spin").strip().splitlines()[-1]
        assert last.startswith("The page of this run on your site: ")
        client.force_login(User.objects.create_superuser("boss"))
        assert client.get(last.split()[-1]).status_code == 200

    @pytest.mark.urls("tests.no_urls")
    def test_names_no_page_in_a_site_without_one(self, spin: Benchmark) -> None:
        assert "The page" not in pgperf("run", "spin")

    def test_json_is_one_object(self, spin: Benchmark) -> None:
        result = json.loads(pgperf("run", "spin", "--json"))
        assert (result["run"]["status"], result["run"]["benchmark"]) == ("done", "spin")
        assert len(result["variants"]) == 2

    def test_options_reach_the_definition(self, spin: Benchmark) -> None:
        Target.objects.update(host="127.0.0.1")
        words = "--quick --layers fake --routes tcp,socket --clients 1,2 --placement scheduler --slice-ms 12"
        more = "--idle system --rounds 2 --blocks 1 --diagnostic-ms 60"
        pgperf("run", "spin", *words.split(), *more.split())
        run = Run.objects.get()
        kept = {
            name: run.definition[name]
            for name in ("routes", "clients", "idle", "slice_ms", "rounds", "blocks", "diagnostic_ms")
        }
        assert kept == {
            "routes": ["tcp", "socket"],
            "clients": [1, 2],
            "idle": "system",
            "slice_ms": 12,
            "rounds": 2,
            "blocks": 1,
            "diagnostic_ms": 60,
        }
        assert run.quick

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (
                ["nope"],
                f"There is no benchmark 'nope'; there is {', '.join(sorted([*BENCHMARKS, 'spin']))}.",
            ),
            (["spin", "--database", "nope"], "There is no database 'nope'; there is demo."),
            (["spin", "--clients", "0"], "clients: "),
            (["spin", "--clients", "eight"], "is not a list of whole numbers"),
            (["spin", "--workloads", "nope"], "workloads: nope; choose from "),
            (["spin", "--workloads", ","], "workloads: none; choose from "),
            (["spin", "--layers", "oracle"], "layers: "),
            (["spin", "--layers", ","], "layers: "),
            (["spin", "--routes", "vpn"], "routes: database demo has no enabled target for vpn"),
            (["spin", "--blocks", "0"], "blocks: "),
            (["spin", "--slice-ms", "-1"], "slice_ms: "),
            (["spin", "--placement", "moon"], "invalid choice"),
            (["spin", "--idle", "asleep"], "invalid choice"),
            ([], "required: name"),
        ],
    )
    def test_refusals(self, spin: Benchmark, words: list[str], said: str) -> None:
        make_benchmark()
        assert said in refusal("run", *words)
        assert not Run.objects.exists()

    def test_which_database(self, spin: Benchmark) -> None:
        other = make_database("other")
        assert refusal("run", "spin") == "Say which database with --database; there is demo, other."
        spin.database = other
        spin.save()
        pgperf("run", "spin")
        assert Run.objects.get().database == other

    def test_no_database(self, spin: Benchmark) -> None:
        Database.objects.all().delete()
        assert "add one in the admin" in refusal("run", "spin")

    def test_a_run_that_fails(self, spin: Benchmark) -> None:
        Database.objects.update(credential="alias:gone")
        said = refusal("run", "spin")
        assert "failed. credential: DATABASES has no alias 'gone'" in said

    def test_a_run_that_fails_is_still_one_json_object(self, spin: Benchmark) -> None:
        Database.objects.update(credential="alias:gone")
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("pgperf", "run", "spin", "--json", stdout=out, stderr=io.StringIO())
        assert json.loads(out.getvalue())["run"]["status"] == "failed"

    def test_waits_for_its_turn(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        first = state.claim(
            make_run(Run.Status.QUEUED, busy_key=None, database=Database.objects.get()).pk, "w@h"
        )
        waited: list[float] = []

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            state.finish(first)

        monkeypatch.setattr(run_command, "sleep", sleep)
        err = io.StringIO()
        call_command("pgperf", "run", "spin", stdout=io.StringIO(), stderr=err)
        assert len(waited) == 1
        assert f"Waits for {first}" in err.getvalue()

    def test_ctrl_c_while_waiting(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        state.claim(make_run(Run.Status.QUEUED, busy_key=None, database=Database.objects.get()).pk, "w@h")
        monkeypatch.setattr(run_command, "sleep", _interrupt)
        assert "cancelled" in refusal("run", "spin")
        assert Run.objects.filter(benchmark_name="spin", status=Run.Status.CANCELLED).exists()

    def test_another_user_cancels_while_it_waits(
        self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        state.claim(make_run(Run.Status.QUEUED, busy_key=None, database=Database.objects.get()).pk, "w@h")
        monkeypatch.setattr(
            run_command, "sleep", lambda _: state.request_cancel(Run.objects.get(benchmark_name="spin"))
        )
        assert "cancelled" in refusal("run", "spin")

    def test_progress_goes_to_stderr(self, spin: Benchmark) -> None:
        err = io.StringIO()
        call_command("pgperf", "run", "spin", stdout=io.StringIO(), stderr=err)
        said = err.getvalue()
        assert re.match(r"spin #\d+ takes (about|at most) \d+", said), "before it starts"
        assert re.search(r"\n100 %  \w.+\n\Z", said), "what it did last"

    def test_goes_on_where_nobody_sees_the_progress(self, spin: Benchmark) -> None:
        class Closed(io.StringIO):
            def write(self, text: str) -> int:
                raise BrokenPipeError

        out = io.StringIO()
        call_command("pgperf", "run", "spin", stdout=out, stderr=Closed())
        assert Run.objects.get().status == Run.Status.DONE
        assert ": done" in out.getvalue()


class TestQueue:
    """Through Celery: a thread plays the worker at the first look."""

    @pytest.fixture(autouse=True)
    def no_broker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state.broker, "send", lambda run_id, queue: None)

    def test_waits_for_the_worker(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run_command, "sleep", lambda _: perform(Run.objects.get().pk, "w@h"))
        err = io.StringIO()
        call_command("pgperf", "run", "spin", "--queue", stdout=io.StringIO(), stderr=err)
        assert "No worker is online" in err.getvalue()
        assert Run.objects.get().queue == "pgperf"

    def test_ctrl_c_cancels(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run_command, "sleep", _interrupt)
        assert "cancelled" in refusal("run", "spin", "--queue")

    def test_a_second_ctrl_c_leaves_at_once(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run_command, "sleep", _interrupt)
        monkeypatch.setattr(state, "request_cancel", lambda run: None)
        assert refusal("run", "spin", "--queue") == "Interrupted."


class TestExport:
    def test_csv(self) -> None:
        run = make_results(make_run())
        rows = list(csv.DictReader(io.StringIO(pgperf("export", str(run.pk)))))
        assert [row["label"] for row in rows] == [row.label for row in run.variants.all()]

    def test_comparisons(self) -> None:
        run = make_results(make_run())
        rows = list(csv.DictReader(io.StringIO(pgperf("export", str(run.pk), "--comparisons"))))
        assert len(rows) == run.comparisons.count()

    def test_json(self) -> None:
        run = make_results(make_run())
        assert json.loads(pgperf("export", str(run.pk), "--format", "json"))["run"]["id"] == run.pk

    def test_refusals(self) -> None:
        assert refusal("export", "12345") == "There is no run 12345."
        assert refusal("export", "x") == "There is no done run of a benchmark 'x'."
        assert "invalid choice" in refusal("export", "1", "--format", "exe")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "\udcc2\udc80"],
        ["run", "orm-overhead", "--layers", "libpq,caf\udce9"],
        ["run", "orm-overhead", "--database-name", "\udcff"],
        ["compare", "1", "--baseline", "kept-\udcc3.json"],
        ["tune", "d\udce9mo"],
    ],
)
def test_words_that_the_locale_cannot_read_are_refused(words: list[str]) -> None:
    """Bytes beyond ASCII under LC_ALL=C, or such as are no UTF-8: a database stores no such text."""
    with pytest.raises(CommandError, match=r"the locale cannot read '.*\\udc.*LC_ALL=C\.UTF-8"):
        call_command("pgperf", *words)


def test_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(state.broker, "send", lambda run_id, queue: sent.append(run_id))
    run = make_run(Run.Status.QUEUED, queue="pgperf", busy_key=None)
    assert pgperf("reconcile") == f"Lost: none. Sent: {run.pk}. Summarised: none.\n"
    assert sent == [run.pk]


def test_build(settings: Any, tmp_path: Path) -> None:
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": tmp_path}
    assert pgperf("build").startswith(f"{tmp_path / C_CLIENT} (libpq ")
    settings.PGPERF = {**settings.PGPERF, "CC": "no-such-compiler"}
    assert "no-such-compiler" in refusal("build")


def test_build_speaks_of_no_driver_that_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """psycopg_c may be missing."""
    monkeypatch.setattr(build, "build_drivers", lambda folder: DriversResult("", ()))
    monkeypatch.setattr(build, "build", lambda *_: BuildResult(Path("client"), "18", ""))
    said = "The site has every driver that needs no compiler. Nothing was installed."
    assert pgperf("build", "--drivers").startswith(said)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a made-up machine, which takes no time."""
    monkeypatch.setattr(machine_look, "look", look)


@pytest.fixture
def demo(seen: None, routes: dict[str, Any]) -> Database:
    """The tests' database over each route."""
    row = Database.objects.create(
        name="demo", dbname=connection.settings_dict["NAME"], credential="alias:default", allow_fixtures=True
    )
    for route in routes.values():
        Target.objects.create(
            database=row, route=route.name, host=route.host, port=route.port, sslmode="disable",
            pooler=route.pooler,
        )  # fmt: skip
    return row


def test_doctor_finds_all_well(demo: Database, c_client: Path, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    text = pgperf("doctor")
    assert "problem" not in text
    assert all(f"demo · {route}: PostgreSQL 18" in text for route in ("socket", "tcp"))
    assert "broker: answers" in text
    assert all(f"demo · fixture {name}: " in text for name in FIXTURES)
    assert "ok       precision of orm-overhead: quick about ±" in text


@pytest.fixture(scope="class")
def open_connections() -> Iterator[None]:
    """A site's client that has connected once with the same settings is not started again."""
    asking = (doctor, fixtures, guardrails, readonly_role)
    check, succeeded = site_connection.check, set()

    def checked(route: Route, workload: Any, name: str) -> None:
        words = route, str(workload), os.environ.get("PGPERF_TEST_OPTIONS")
        if words not in succeeded:
            check(route, workload, name)
        succeeded.add(words)

    with pytest.MonkeyPatch.context() as patch, kept(*(module.__name__ for module in asking)):
        patch.setattr(site_connection, "check", checked)
        yield


@pytest.mark.usefixtures("open_connections")
class TestDoctor:
    """With one benchmark, over connections that stay open from test to test."""

    @pytest.fixture(autouse=True)
    def one_benchmark(self, seen: None) -> None:
        Benchmark.objects.exclude(name="orm-overhead").delete()

    def test_workers_with_other_versions(self) -> None:
        make_worker("pgperf@same")
        make_worker("pgperf@other")
        Worker.objects.filter(hostname="pgperf@other").update(versions={"pgperf": "0.0.9", "django": "4.2"})
        other, same = doctor.workers()
        assert (same.mark, other.mark) == ("ok", "problem")
        assert "pgperf 0.0.9, here" in other.text
        assert "django 4.2, here" in other.text

    def test_load_hosts_that_are_online_and_one_that_a_benchmark_lacks(self) -> None:
        Worker.objects.create(hostname="load@app1", queue="pgperf-load-app1", last_seen=timezone.now())
        make_benchmark("fleet", load_host_names=["app1", "app2"])
        there, lacking = doctor.load_hosts()
        assert (there.mark, there.subject) == ("ok", "load host app1")
        assert there.text == "load@app1, queue pgperf-load-app1"
        assert (lacking.mark, lacking.subject) == ("note", "load host app2")
        assert "the benchmark fleet names it" in lacking.text
        assert "--queues pgperf-load-app2" in lacking.hint

    def test_environments(self, settings: Any, tmp_path: Path) -> None:
        stub = with_other_pgperf(tmp_path, "0.0.9")
        settings.PGPERF = {
            **settings.PGPERF,
            "ENVIRONMENTS": {"twin": twin(tmp_path).python, "stub": stub.python},
        }
        good, bad = doctor.client_pythons()
        assert (good.mark, good.subject) == ("ok", "environment twin")
        assert f"Django {django.get_version()}" in good.text
        assert good.text.endswith(f"in {tmp_path}/twin/bin/python")
        assert (bad.mark, bad.subject) == ("problem", "environment stub")
        assert "pgperf 0.0.9" in bad.text
        assert bad.hint

    def test_the_machine_now_and_the_precision_of_each_benchmark(
        self, demo: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_benchmark("small", layers=["psycopg", "django_orm"], precision=2.0)
        text = pgperf("doctor")
        assert (
            "ok       this machine now: The machine is quiet: other programs use at most 3 % of a CPU" in text
        )
        assert re.search(r"ok +precision of small: quick about ±.* in .*; full about ±.* in ", text)
        monkeypatch.setattr(machine_look, "look", lambda: look(others={1: 0.4}))
        assert "note     this machine now: Now is a bad moment: other programs use 40 % of CPU 1." in pgperf(
            "doctor"
        )

    def test_workers_elsewhere_are_named_beside_the_look(
        self, demo: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(doctor.socket, "gethostname", lambda: "web1")
        make_worker("pgperf@web1")
        assert not any("elsewhere" in each.text for each in doctor.outlook())
        make_worker("pgperf@db1")
        (note,) = (each for each in doctor.outlook() if "elsewhere" in each.text)
        assert (note.mark, note.subject) == ("note", "this machine now")
        assert note.text == (
            "the check is of web1; by their names, these workers measure elsewhere: pgperf@db1"
        )
        assert note.hint.startswith("run pgperf doctor on the worker's machine")

    def test_while_a_run_measures_here_it_does_not_look(self, demo: Database) -> None:
        make_run(Run.Status.RUNNING, database=demo, busy_host=state.this_machine())
        assert "note     this machine now: a run of pgperf measures on this machine now" in pgperf("doctor")

    def test_it_connects_as_an_own_workload_does(
        self, demo: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the site's OPTIONS: one that pgperf overrides, and one that lets no client connect."""
        subject = "demo · own workloads of alias 'default': "
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings_options")
        monkeypatch.setenv("PGPERF_DB_NAME", demo.dbname)
        monkeypatch.setenv("PGPERF_TEST_OPTIONS", '{"target_session_attrs": "read-write"}')
        assert f"ok       {subject}connect over socket" in pgperf("doctor")
        monkeypatch.setenv("PGPERF_TEST_OPTIONS", '{"replication": "database"}')
        out = io.StringIO()
        with pytest.raises(CommandError, match="1 problem found"):
            call_command("pgperf", "doctor", stdout=out)
        assert f"problem  {subject}" in out.getvalue()
        assert "OPTIONS['replication'] of the alias 'default': Django cannot" in out.getvalue()
        assert "docs/your-queries.md lists" in out.getvalue()

    def test_a_web_server_is_asked_once(self, demo: Database, settings: Any) -> None:
        """And is not taken for a database."""
        with WebServer() as site:
            url = f"http://127.0.0.1:{site.port}"
            settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [url]}
            demo.targets.create(route="web", url=url)
            told = pgperf("doctor")
        if find_spec("pycurl"):
            assert f"ok       demo · web: {url} is at 127.0.0.1 and answers HEAD /\n" in told
            assert [asked.split("\r\n")[0] for asked in site.requests] == ["HEAD / HTTP/1.1"]
        else:
            assert f"note     demo · web: {url} is at 127.0.0.1; no request was sent: " in told
            assert site.requests == []
        settings.PGPERF = {**settings.PGPERF, "WEB_URLS": []}
        with pytest.raises(CommandError, match="1 problem found"):
            pgperf("doctor")

    def test_psycopg_in_pure_python_is_named(self, demo: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "pure Python" not in pgperf("doctor")
        monkeypatch.setattr(doctor, "find_spec", lambda name: name == "psycopg")
        text = pgperf("doctor")
        assert "note     psycopg: runs in pure Python here" in text
        assert 'run pip install "psycopg[binary]"' in text

    def test_an_agent_is_looked_for(self, demo: Database) -> None:
        Database.objects.update(agent="db1")
        missing = pgperf("doctor")
        assert "demo · agent db1: is not online" in missing
        assert "--queues pgperf-agent-db1" in missing
        make_worker("agent@db1")
        Worker.objects.update(queue="pgperf-agent-db1")
        assert "demo · agent db1: agent@db1" in pgperf("doctor")

    def test_everything_is_wrong(
        self, demo: Database, settings: Any, monkeypatch: pytest.MonkeyPatch, closed_port: int
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": "/nonexistent"}
        Target.objects.filter(route="tcp").update(port=closed_port)
        Target.objects.filter(route="socket").update(host="evil.example")
        Target.objects.filter(route="pgbouncer").update(enabled=False)
        out = io.StringIO()
        with pytest.raises(CommandError, match="3 problems found"):
            call_command("pgperf", "doctor", stdout=out)
        text = out.getvalue()
        assert "pgperf.E003" in text
        port = Target.objects.get(route="socket").port
        assert f"add 'evil.example:{port}' to PGPERF['ALLOWED_HOSTS']" in text
        assert connection.settings_dict["PASSWORD"] not in text

    def test_the_login_that_can_write_and_the_sql_for_one_that_cannot(self, demo: Database) -> None:
        text = pgperf("doctor")
        assert "demo · login: pgperf can write (may create databases; " in text
        reader = f"pgperf_reader_{demo.dbname}"
        assert f'CREATE ROLE "{reader}" LOGIN NOSUPERUSER' in text
        assert f'GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "{reader}";' in text
        assert f"ALTER ROLE \"{reader}\" SET default_transaction_read_only = 'on';" in text
        assert connection.settings_dict["PASSWORD"] not in text

    @pytest.fixture
    def reader(self, demo: Database, superuser_login: dict[str, Any]) -> Iterator[psycopg.Connection]:
        """doctor's SQL has been run. The superuser's connection."""
        sql = [line.strip() for line in pgperf("doctor").splitlines()]
        with psycopg.connect(**superuser_login, dbname=demo.dbname) as admin:
            for statement in sql:
                if statement.startswith(SQL):
                    admin.execute(statement)  # type: ignore[arg-type]
            yield admin
            admin.execute(f"DROP OWNED BY pgperf_reader_{demo.dbname}; DROP ROLE pgperf_reader_{demo.dbname}")

    def test_a_role_that_lacks_nothing_is_one_line(self, demo: Database, reader: psycopg.Connection) -> None:
        name = f"pgperf_reader_{demo.dbname}"
        text = pgperf("doctor")
        said = f"for your own SQL and poolers, {name} lacks nothing: name it as a target's user"
        assert f"ok       demo · login: pgperf can write; {said}" in text
        assert not [line for line in text.splitlines() if line.strip().startswith(SQL)]
        reader.execute(f"ALTER ROLE {name} RESET lock_timeout")
        text = pgperf("doctor")
        assert "note     demo · login: pgperf can write (" in text
        (missing,) = [line.strip() for line in text.splitlines() if line.strip().startswith(SQL)]
        assert missing == f"ALTER ROLE \"{name}\" SET lock_timeout = '1000ms';"

    def test_the_login_of_another_target_that_reads_is_one_line(
        self, demo: Database, stack: dict[str, str], settings: Any
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": stack["PGPERF_CREDENTIAL_DIR"]}
        Target.objects.filter(route="tcp").update(user="demo_reader", credential="file:demo_reader")
        text = pgperf("doctor")
        said = "for your own SQL and poolers, demo_reader, the login of tcp, cannot"
        assert f"ok       demo · login: pgperf can write; {said}\n" in text
        assert not [line for line in text.splitlines() if line.strip().startswith(SQL)]

    @pytest.mark.parametrize(
        "option", ['{"cursor_factory": "no.Class"}', '{"row_factory": "import:builtins.tuple"}']
    )
    def test_an_option_with_which_no_query_works_is_named(
        self, demo: Database, monkeypatch: pytest.MonkeyPatch, option: str
    ) -> None:
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings_options")
        monkeypatch.setenv("PGPERF_DB_NAME", demo.dbname)
        monkeypatch.setenv("PGPERF_TEST_OPTIONS", option)
        out = io.StringIO()
        with pytest.raises(CommandError, match="1 problem found"):
            call_command("pgperf", "doctor", stdout=out)
        (line,) = [line for line in out.getvalue().splitlines() if line.startswith("problem")]
        (key,) = json.loads(option)
        assert line.startswith("problem  demo · own workloads of alias 'default': ")
        assert f"OPTIONS['{key}'], " in line
        assert " of the alias 'default': no query works with it (" in line
        assert "no.Class" not in line

    def test_an_option_with_which_the_site_s_own_database_answers_no_query_is_named(self) -> None:
        """In a process of its own, as people start it."""
        options = {
            "DJANGO_SETTINGS_MODULE": "tests.settings_options",
            "PGPERF_TEST_OPTIONS": '{"row_factory": 1}',
        }
        done = subprocess.run(
            [sys.executable, "manage.py", "pgperf", "doctor"], env={**os.environ, **options}, cwd=CHECKOUT,
            text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert "1 problem found" in done.stderr
        said = (
            "OPTIONS['row_factory'], of type int, of the alias 'default': no query works with it (TypeError)"
        )
        assert f"problem  tables: {said}" in done.stdout
        assert "broker: answers" in done.stdout

    def test_without_a_direct_route_it_asks_over_the_pooler(self, demo: Database) -> None:
        Target.objects.exclude(route="pgbouncer").update(enabled=False)
        text = pgperf("doctor")
        assert "note     demo · routes: no direct one answers" in text
        assert "checked over pgbouncer, a pooler" in text
        assert "demo · fixture " in text
        assert "demo · login: pgperf can write (may create databases; " in text
        assert f'CREATE ROLE "pgperf_reader_{demo.dbname}"' in text
        own = "note     demo · own workloads of alias 'default': access: this run needs a login that cannot write"
        assert own in text

    def test_a_login_that_cannot_write_runs_own_workloads_over_the_pooler(
        self, demo: Database, stack: dict[str, str], settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = int(stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"])
        settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": stack["PGPERF_CREDENTIAL_DIR"]}
        Target.objects.exclude(route="pgbouncer").update(enabled=False)
        Target.objects.filter(route="pgbouncer").update(
            port=port, pooler="transaction", user="demo_reader", credential="file:demo_reader"
        )
        Database.objects.update(dbname=stack["PGPERF_DB_NAME"])
        text = pgperf("doctor")
        assert "ok       demo · login: demo_reader cannot write" in text
        assert "ok       demo · own workloads of alias 'default': connect over pgbouncer" in text

    def test_the_first_pooler_looks_for_the_sessions_behind_another(
        self, demo: Database, stack: dict[str, str], settings: Any
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": stack["PGPERF_CREDENTIAL_DIR"]}
        Target.objects.exclude(route="pgbouncer").update(enabled=False)
        Database.objects.update(dbname=stack["PGPERF_DB_NAME"])
        first = Target.objects.get(route="pgbouncer")
        demo.targets.create(
            route="second", host=first.host, port=first.port, sslmode="disable", pooler="session"
        )
        trusting = int(stack["PGPERF_PGBOUNCER_TRUST_PORT"])
        demo.targets.filter(pk=first.pk).update(
            port=trusting, user="demo_trusted", credential="file:demo_reader"
        )
        out = io.StringIO()
        with suppress(CommandError):
            call_command("pgperf", "doctor", stdout=out)
        assert "note     demo · second: demo_trusted may not see the pooler's sessions" in out.getvalue()
        assert 'GRANT "pgperf" TO "demo_trusted";' in out.getvalue()

    def test_a_server_that_is_too_old_is_named(self, demo: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing else is asked of it."""
        monkeypatch.setattr(version, "LEAST", 99)
        out = io.StringIO()
        with pytest.raises(CommandError, match="3 problems found"):
            call_command("pgperf", "doctor", stdout=out)
        text = out.getvalue()
        for route in ("socket", "tcp", "pgbouncer"):
            assert f"problem  demo · {route}: database: the server is PostgreSQL 18." in text
        assert "pgperf measures PostgreSQL 99 or newer; upgrade the server" in text
        assert "demo · login" not in text

    def test_a_fixture_that_may_not_be_made(self, demo: Database, routes: dict[str, Any]) -> None:
        fixtures.drop(demo, replace(routes["tcp"], dbname=demo.dbname))  # an earlier test may have left it
        Database.objects.update(allow_fixtures=False)
        assert "tick 'allow fixtures'" in pgperf("doctor")

    def test_tables_are_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            doctor.MigrationExecutor,
            "migration_plan",
            lambda self, targets: [("pgperf", "0001_first_release")],
        )
        with pytest.raises(CommandError, match="1 problem found"):
            pgperf("doctor")
        [found] = doctor.tables()
        assert found.text == "1 migration is not applied"


class TestErrors:
    def test_the_sites_database_is_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_: Any) -> None:
            raise DatabaseError("connection refused\nmore lines")

        monkeypatch.setattr("pgperf.reports.listing.benchmarks", away)
        assert refusal("list").startswith("The site's database reports: connection refused. ")

    def test_settings_are_wrong(self, settings: Any) -> None:
        settings.PGPERF = {"TYPO": 1}
        assert "PGPERF['TYPO'] is not a setting" in refusal("list")

    @pytest.mark.parametrize(
        ("words", "error"),
        [
            ([], "required: COMMAND"),
            (["nothing"], "invalid choice: 'nothing'"),
            (["list", "--nothing"], "unrecognized arguments: --nothing"),
        ],
    )
    def test_unknown_words_are_refused(self, words: list[str], error: str) -> None:
        assert error in refusal(*words)

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_reader_that_went_away(self, unbuffered: str) -> None:
        """`manage.py pgperf list | true`"""
        shell = f"{sys.executable} manage.py pgperf list | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", shell],
            cwd=CHECKOUT,
            env={**_environment(), "PYTHONUNBUFFERED": unbuffered},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels(spin: Benchmark, stop: signal.Signals) -> None:
    """A real process, stopped in the middle of a run: cancelled, exit code 1, no client left, no
    traceback.
    """
    process = subprocess.Popen(
        [sys.executable, "manage.py", "pgperf", "run", "spin", "--blocks", "100", "--rounds", "20"],
        cwd=CHECKOUT, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(stop, signal.SIG_DFL),  # a suite in the background has SIGINT ignored
    )  # fmt: skip
    killer = threading.Timer(60, process.kill)
    killer.start()
    try:
        assert process.stderr
        assert re.fullmatch(r"spin #\d+ takes at most .* s\.\n", process.stderr.readline())
        assert process.stderr.readline().startswith("0 %  ")
        process.send_signal(stop)
        _, err = process.communicate(timeout=60)
    finally:
        killer.cancel()
        process.kill()
    assert process.returncode == 1
    assert "Traceback" not in err
    run = Run.objects.get()
    assert (run.status, run.busy_key) == (Run.Status.CANCELLED, None)
    assert err.rstrip().endswith(f"{run}: cancelled. Cancelled: interrupted.")


def _environment() -> dict[str, str]:
    """The tests' own database for a process of its own."""
    return {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }


def _interrupt(_: float) -> None:
    raise KeyboardInterrupt


@pytest.fixture(params=["missing", "broken"])
def unusable_urls(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    """A site without ROOT_URLCONF, or with one that cannot be imported."""
    if request.param == "missing":
        del settings.ROOT_URLCONF
    else:
        settings.ROOT_URLCONF = "tests.no_such_urls"
    clear_url_caches()
    yield
    clear_url_caches()


@pytest.mark.usefixtures("unusable_urls")
class TestUnusableUrls:
    def test_a_run_that_is_done_is_printed(self, spin: Benchmark) -> None:
        text = pgperf("run", "spin")
        assert ": done" in text
        assert "The page of this run" not in text

    def test_doctor_goes_on(self) -> None:
        found = list(doctor.installation())
        assert all(isinstance(each, doctor.CheckResult) for each in found)
        assert found


def test_doctor_tells_of_checks_that_fail(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.no_such_urls"
    clear_url_caches()
    [found] = doctor.installation()
    assert (found.mark, found.subject) == ("problem", "system checks")
    assert found.text == "cannot be made: ModuleNotFoundError: No module named 'tests.no_such_urls'"


class TestDeleted:
    """In the admin, while a command waits."""

    def test_a_run_that_is_awaited(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state.broker, "send", lambda run_id, queue: None)
        monkeypatch.setattr(run_command, "sleep", lambda _: Run.objects.all().delete())
        said = refusal("run", "spin", "--queue")
        assert re.fullmatch(r"spin #\d+ was deleted before it had ended\. Start it again\.", said)

    def test_a_run_that_waits_for_its_turn(self, spin: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
        state.claim(make_run(Run.Status.QUEUED, busy_key=None, database=Database.objects.get()).pk, "w@h")
        mine = Run.objects.filter(benchmark_name="spin")
        monkeypatch.setattr(run_command, "sleep", lambda _: mine.delete())
        assert "was deleted before it had ended" in refusal("run", "spin")


def test_the_time_is_told_without_layers_that_no_worker_has() -> None:
    benchmark, database = make_benchmark(), make_database()
    asked = make_run(Run.Status.QUEUED, definition=freeze(benchmark, database).to_json())
    err = io.StringIO()
    for lacking in ({}, {"django_orm": "not installed"}):
        make_worker(**lacking)
        run_command._say_time(asked, Bar(OutputWrapper(err)))
    whole, without = err.getvalue().splitlines()
    assert whole.startswith(f"{asked} takes about ")
    assert whole != without
