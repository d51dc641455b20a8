"""The web steps of the stack: each serves the site by its own processes, and starts anew."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from example.stack import apache, control, nginx, web_servers, web_steps
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.process import kill_group, stop
from example.stack.stack import SERVERS, Stack
from example.stack.web import CHECKOUT
from example.stack.web_steps import ADVISED, CLUSTERS, DEFAULT, STEPS
from pgperf.runner.cpu import placement
from tests.example.web_programs import HAS_NGINX, STARTED
from tests.process_ends import await_ends

needs_nginx = pytest.mark.skipif(not HAS_NGINX, reason="nginx is not installed: make nginx")


def test_steps_start_in_random_order_after_the_clusters_in_theirs() -> None:
    """A server that starts earlier may be slower: none may be the first in every block."""
    orders = {tuple(web_servers._in_random_order([*CLUSTERS, *STEPS])) for _ in range(50)}
    assert {order[: len(CLUSTERS)] for order in orders} == {CLUSTERS, CLUSTERS[::-1]}
    assert len({order[len(CLUSTERS) :] for order in orders}) > 1
    assert all(sorted(order[len(CLUSTERS) :]) == sorted(STEPS) for order in orders)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with a step of each kind."""
    with Stack(tmp_path_factory.mktemp("web") / "own", [*SERVERS, *STARTED], keep=False) as running:
        yield running


def get(stack: Stack, step: str, path: str = "/books/") -> bytes:
    context = None
    if STEPS[step].tls:
        context = ssl.create_default_context(cafile=str(stack.place.secrets() / "ca.crt"))
    url = stack.env[web_steps.variable(step)] + path
    with urllib.request.urlopen(url, timeout=60, context=context) as response:
        assert response.status == 200
        return response.read()


def processes(stack: Stack, step: str) -> set[int]:
    assert stack.web
    parts = [psutil.Process(part.process.pid) for part in stack.web.parts_of([step]) if part.process]
    return {each.pid for part in parts for each in (part, *part.children(recursive=True))}


def argv(pid: int) -> str:
    """Of a process; "" if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(psutil.Process(pid).cmdline())
    return ""


class TestSteps:
    def test_every_step_builds_on_an_earlier_one(self) -> None:
        """So a chart of them is a staircase. Only the first builds on nothing."""
        names = list(STEPS)
        assert not STEPS[names[0]].builds_on
        for at, name in enumerate(names[1:], start=1):
            assert STEPS[name].builds_on in names[:at]

    def test_a_step_changes_one_thing(self) -> None:
        for name, step in list(STEPS.items())[1:]:
            base = STEPS[step.builds_on]
            fields = ("server", "tls", "tls_sessions", "pooled", "database", "settings")
            changed = [field for field in fields if getattr(step, field) != getattr(base, field)]
            assert len(changed) == (0 if name == "web_nginx_twin" else 1), name

    def test_names_fit_a_target(self) -> None:
        assert all(len(name) <= 30 and name.isidentifier() for name in STEPS)

    def test_memory_grows_with_the_steps(self) -> None:
        each = [web_servers.memory_mib([name]) for name in STEPS]
        assert min(each) > 0
        assert web_servers.memory_mib(list(STEPS)) <= sum(each)


@pytest.mark.parametrize(("cores", "cpus"), [([0, 1], 1), ([0, 1, 2, 3], 3), ([0, 1, 0, 1], 2), ([0] * 4, 2)])
def test_a_run_gives_the_servers_the_cpus_that_their_workers_are_counted_for(
    cores: list[int], cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cores`: the core of each CPU."""
    here = set(range(len(cores)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: here)
    monkeypatch.setattr(placement, "_core", lambda cpu, _topology: cores[cpu])
    placed = placement.place("apart", here, "", pages=True)
    assert web_steps.servers_cpus() == placed.role_cpus(over_http=True)["server"] == cpus
    assert web_steps.workers() == 2 * cpus + 1


def test_on_one_cpu_there_are_the_workers_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    assert (web_steps.servers_cpus(), web_steps.workers()) == (1, 3)


class TestSettings:
    """The settings module of the steps, in a process of its own."""

    def read(self, variables: dict[str, str]) -> dict[str, object]:
        names = ("CONN_MAX_AGE", "ATOMIC_REQUESTS", "AUTOCOMMIT", "OPTIONS")
        code = (
            "import json; from example import web_settings as s; d = s.DATABASES['default'];"
            f"print(json.dumps([{{name: d[name] for name in {names}}}, s.MIDDLEWARE[0]]))"
        )
        env = {**os.environ, "DJANGO_SETTINGS_MODULE": "example.web_settings", **variables}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=CHECKOUT, capture_output=True, text=True, check=True
        )
        found, first = json.loads(done.stdout)
        return {**found, "pool": found["OPTIONS"].get("pool"), "commits": first.endswith(".commit")}

    def test_without_variables_they_are_djangos_own(self) -> None:
        found = self.read({})
        assert [found[name] for name in ("CONN_MAX_AGE", "ATOMIC_REQUESTS", "AUTOCOMMIT", "pool", "commits")] == [
            0, False, True, None, False,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("step", "name", "value"),
        [
            ("web_conn_kept", "CONN_MAX_AGE", None),
            ("web_pool", "pool", {"min_size": 1, "max_size": 1}),
            ("web_atomic", "ATOMIC_REQUESTS", True),
            ("web_no_autocommit", "AUTOCOMMIT", False),
            ("web_no_autocommit", "commits", True),
        ],
    )
    def test_a_step_changes_its_own(self, step: str, name: str, value: object) -> None:
        assert self.read(dict(STEPS[step].settings))[name] == value


class TestServing:
    @pytest.mark.parametrize("step", STARTED)
    def test_a_step_serves_a_page_and_static_files(self, web: Stack, step: str) -> None:
        assert b"<table" in get(web, step)
        assert get(web, step, "/static/admin/css/base.css")

    def test_everything_listens_on_loopback(self, web: Stack) -> None:
        assert web.web
        pids = {pid for step in STARTED for pid in processes(web, step)}
        listening = [
            each.laddr.ip
            for each in psutil.net_connections("tcp")
            if each.pid in pids and each.status == "LISTEN"
        ]
        assert listening
        assert set(listening) == {"127.0.0.1"}

    @needs_nginx
    def test_the_certificate_is_the_stacks(self, web: Stack) -> None:
        with pytest.raises(urllib.error.URLError, match="certificate"):
            urllib.request.urlopen(web.env[web_steps.variable("web_tls")], timeout=60)

    @needs_nginx
    def test_the_pooled_steps_reach_their_cluster(self, web: Stack) -> None:
        """PgBouncer keeps the server connection of the page."""
        get(web, "web_advised")
        with psycopg.connect(**cluster_login(web, ADVISED)) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND pid <> pg_backend_pid()",
                [web.env["PGPERF_DB_USER"]],
            )
            assert found.fetchone() != (0,)

    def test_the_processes_have_their_programs_names(self, web: Stack) -> None:
        """So they are told from the stack that started them."""
        names = {psutil.Process(pid).name() for pid in processes(web, "web_gunicorn")}
        assert names == {"gunicorn"}

    def test_no_password_is_in_any_argv(self, web: Stack) -> None:
        commands = " ".join(argv(pid) for step in STARTED for pid in processes(web, step))
        passwords = [value for key, value in web.env.items() if "PASSWORD" in key or "SECRET" in key]
        assert passwords
        assert not [password for password in passwords if password in commands]


def cluster_login(stack: Stack, name: str) -> dict[str, object]:
    return {
        "host": "127.0.0.1", "port": stack.state.ports[name], "dbname": stack.env["PGPERF_DB_NAME"],
        "user": stack.env["PGPERF_DB_USER"], "password": stack.env["PGPERF_DB_PASSWORD"],
    }  # fmt: skip


class TestStartingAnew:
    def test_a_step_gets_other_processes_and_the_others_keep_theirs(self, web: Stack) -> None:
        assert web.web
        before = {step: processes(web, step) for step in STARTED}
        web.web.start_anew(["web_gunicorn"], block=0)
        after = {step: processes(web, step) for step in STARTED}
        assert not before["web_gunicorn"] & after["web_gunicorn"]
        assert all(before[step] == after[step] for step in STARTED if step != "web_gunicorn")
        assert get(web, "web_gunicorn")

    @needs_nginx
    def test_the_advised_settings_change_their_data_directory_with_the_block(self, web: Stack) -> None:
        assert web.web
        seen = []
        for block in (1, 2, 3):
            web.web.start_anew(["web_advised"], block)
            facts = {}
            for name in (DEFAULT, ADVISED):
                with psycopg.connect(**cluster_login(web, name)) as connection:
                    facts[name] = connection.execute(
                        "SELECT current_setting('shared_buffers'), current_setting('data_directory')"
                    ).fetchone()
            assert {name: row[0] for name, row in facts.items()} == {DEFAULT: "128MB", ADVISED: "256MB"}
            seen.append(facts[ADVISED][1])
            assert facts[DEFAULT][1] != facts[ADVISED][1]
            assert get(web, "web_advised")
        assert seen[0] == seen[2] != seen[1]

    @needs_nginx
    def test_both_directories_have_the_same_data(self, web: Stack) -> None:
        rows = []
        for name in (DEFAULT, ADVISED):
            with psycopg.connect(**cluster_login(web, name)) as connection:
                rows.append(connection.execute("SELECT ctid::text, * FROM books_book ORDER BY id").fetchall())
        assert rows[0] == rows[1]
        assert len(rows[0]) > 100

    def test_an_unknown_step_is_refused(self, web: Stack) -> None:
        assert web.web
        with pytest.raises(StackError, match="no such step: web_caddy; choose from web_apache, "):
            web.web.start_anew(["web_caddy"])

    def test_a_step_that_does_not_answer_gives_its_log_and_leaves_no_process(
        self, web: Stack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert web.web
        before = processes(web, "web_gunicorn")
        with socket.socket() as taken, monkeypatch.context() as patch:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            patch.setitem(web.state.ports, "web_gunicorn", taken.getsockname()[1])
            with pytest.raises(StackError, match=r"gunicorn of web_gunicorn ended(?s:.*)in use"):
                web.web.start_anew(["web_gunicorn"])
        assert not [pid for pid in before if psutil.pid_exists(pid)]
        assert not [part for part in web.running if part.name == "gunicorn of web_gunicorn"]
        web.web.start_anew(["web_gunicorn"])
        assert get(web, "web_gunicorn")


@needs_nginx
def test_a_cluster_accepts_the_poolers_login_after_another_start(tmp_path: Path) -> None:
    """The site's server has another SCRAM verifier after each start, and PgBouncer has that one."""
    for keep in (True, False):
        with Stack(tmp_path / "own", [*SERVERS, "web_advised"], keep=keep) as running:
            assert get(running, "web_advised")


class TestAsking:
    """The control socket, by which a run asks for fresh servers."""

    def ask(self, web: Stack, names: list[str]) -> list[StackError]:
        """Ask from another thread, as another process would; the stack answers in this one."""
        errors: list[StackError] = []

        def client() -> None:
            try:
                control.start_anew(web.place.control(), names, 0)
            except StackError as error:
                errors.append(error)

        thread = threading.Thread(target=client)
        thread.start()
        assert web.control
        web.control.answer()
        thread.join()
        return errors

    def test_a_request_starts_a_step_anew(self, web: Stack) -> None:
        before = processes(web, "web_gunicorn")
        assert self.ask(web, ["web_gunicorn"]) == []
        assert not before & processes(web, "web_gunicorn")

    def test_a_refusal_comes_back(self, web: Stack) -> None:
        assert "no such step" in str(self.ask(web, ["web_caddy"])[0])

    @pytest.mark.parametrize(
        "line",
        [b"\n", b"no json\n", b"[]\n", b"null\n", b'{"start_anew": "x"}\n', b'{"start_anew": 1, "block": 0}\n',
         b'{"start_anew": [], "block": "two"}\n', b"\xff\n", b"[" * 70000],
    )  # fmt: skip
    def test_nonsense_is_answered(self, web: Stack, line: bytes) -> None:
        assert web.control
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(web.place.control()))
            client.sendall(line)
            web.control.answer()
            assert b"a request is" in client.recv(1000)

    def test_a_client_that_leaves_disturbs_nothing(self, web: Stack) -> None:
        assert web.control
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(web.place.control()))
        web.control.answer()

    def test_only_the_stacks_user_can_connect(self, web: Stack) -> None:
        assert web.place.control().stat().st_mode & 0o777 == 0o600

    def test_without_a_stack_the_error_names_the_remedy(self, tmp_path: Path) -> None:
        with pytest.raises(StackError, match="make up-web"):
            control.start_anew(tmp_path / "none", ["web_nginx"], 0)


class TestMissing:
    def test_without_nginx_the_stack_names_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
        with pytest.raises(StackError, match="nginx is missing: apt install nginx"):
            web_servers.check(["web_nginx"])

    def test_without_gunicorn_the_stack_names_the_file_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(StackError, match=r"gunicorn is missing: pip install -r requirements\.txt"):
            web_servers.check(["web_gunicorn"])

    def test_without_apache_the_stack_names_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
        with pytest.raises(StackError, match="Apache is missing: apt install apache2-bin"):
            web_servers.check(["web_apache"])

    def test_without_mod_wsgi_the_stack_names_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/sbin/{name}")
        monkeypatch.setattr(apache, "find_spec", lambda name: None)
        with pytest.raises(
            StackError, match=r"mod_wsgi is missing: apt install apache2-dev.*requirements-web"
        ):
            web_servers.check(["web_apache"])

    def test_without_memory_the_stack_says_how_much_it_needs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web_servers, "free_bytes", lambda: 100 * 2**20)
        with pytest.raises(StackError, match=r"need about \d+ MiB; 100 MiB are free"):
            web_servers.check(["web_gunicorn"])

    def test_nothing_starts_before_the_check(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nginx, "program", lambda: (_ for _ in ()).throw(StackError("nginx is missing")))
        with (
            pytest.raises(StackError, match="nginx is missing"),
            Stack(tmp_path / "own", [*SERVERS, "web_nginx"]),
        ):
            pass
        assert not (tmp_path / "own").exists()


def test_children_that_outlive_their_parent_are_killed(tmp_path: Path) -> None:
    """As nginx's workers do when its master is killed: they would keep the port."""
    script = "sleep 600 & echo child $!; wait"
    part = Part(
        "parent", ["sh", "-c", script], tmp_path / "log", lambda part: "child" in part.log_since_start()
    )
    part.start()
    assert part.process
    child = os.pidfd_open(int(part.log_since_start().split()[1]))
    part.process.kill()
    assert await_ends([os.pidfd_open(part.process.pid)], seconds=10) == 0
    kill_group(part.process)
    assert await_ends([child], seconds=10) == 0


def test_a_number_that_another_process_may_have_is_not_killed(tmp_path: Path) -> None:
    """A process that was waited for has given its number back."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        ended = subprocess.Popen(["true"])
        ended.wait()
        ended.pid = other.pid
        kill_group(ended)
        stop(ended, signal.SIGTERM)
        assert other.poll() is None
        other.kill()
