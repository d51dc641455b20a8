"""The conversation of the Python clients, held in this process; what needs a process is in test_conformance.py."""

import gc
import io
import os
import subprocess
import sys

import pytest

from pgperf import sql, wire
from pgperf.clients import loop
from pgperf.clients.timing import Operation
from tests.clients.driving import ROOT


class Scripted:
    """A client whose operation does what a test says."""

    backend_pid = 7
    server_version = "18"

    def __init__(self, operation: Operation = lambda: 1) -> None:
        self.run, self.closed = operation, False

    def load(self, spec: wire.Spec) -> None: ...

    def connect(self, spec: wire.Spec) -> None: ...

    def operation(self, spec: wire.Spec, other: bool = False) -> Operation:
        return self.run

    def query(self, sql: str) -> wire.Rows:
        return wire.Rows([[sql]])

    def versions(self) -> dict[str, str]:
        return {"driver": "scripted"}

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _unfreeze() -> object:
    yield
    gc.unfreeze()


def hold(client: Scripted, *asked: wire.Message) -> tuple[int, list[wire.Message]]:
    replies = io.BytesIO()
    code = loop.serve(client, io.BytesIO(b"".join(map(wire.encode, asked))), replies)
    replies.seek(0)
    heard: list[wire.Message] = []
    while message := wire.read_message(replies):
        heard.append(message)
        replies.read(message.nbytes if isinstance(message, wire.SliceReply) else 0)
    assert client.closed
    return code, heard


def failing(error: Exception) -> Operation:
    def operation() -> int:
        raise error

    return operation


def test_a_conversation_from_spec_to_bye() -> None:
    code, heard = hold(
        Scripted(),
        wire.Spec(),
        wire.Query("q"),
        wire.Slice(1, 0, 0, 0, 0, 2),
        wire.Slice(2, 1, 0, 0, 0, 1),
        wire.Bye(),
    )
    assert code == wire.EXIT_OK
    assert [type(message) for message in heard] == [
        wire.Ready, wire.Rows, wire.SliceReply, wire.Armed, wire.SliceReply,
    ]  # fmt: skip


def test_ready_comes_with_the_garbage_frozen_and_the_collector_on() -> None:
    gc.unfreeze()
    hold(Scripted(), wire.Spec(), wire.Bye())
    assert gc.get_freeze_count() > 0
    assert gc.isenabled()


OTHER = sql.statements("select 1", ())


def test_the_other_statement_is_run_only_if_there_is_one() -> None:
    for spec, has_other in (
        (wire.Spec(layer="psycopg"), False),
        (wire.Spec(layer="psycopg", other_statements=OTHER, other_orm=""), True),
        (wire.Spec(layer="django_orm", other_statements=OTHER, other_orm=""), False),
        (wire.Spec(layer="django_orm", other_orm="shop.other"), True),
    ):
        ready = hold(Scripted(), spec)[1][0]
        assert isinstance(ready, wire.Ready)
        assert (ready.other_first_us is not None, ready.other_second_us is not None) == (has_other, has_other)


def test_start_up_counts_only_if_its_beginning_is_told() -> None:
    ready = hold(Scripted(), wire.Spec(spawned_ns=0))[1][0]
    assert isinstance(ready, wire.Ready)
    assert ready.startup_us is None
    assert ready.connect_us is not None


class Diagnostics:
    message_primary = 'column "x" does not exist'


class DriverError(Exception):
    sqlstate = "42703"
    diag = Diagnostics()


class OldDriverError(Exception):
    pgcode = "42703"
    sqlstate = None
    diag = Diagnostics()


@pytest.mark.parametrize("kind", [DriverError, OldDriverError])
def test_the_servers_own_words_and_code_are_found_behind_what_wraps_them(kind: type[Exception]) -> None:
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = kind("column x\nLINE 1: select 'a private value'")
    for error in (wrapped, wrapped.__cause__):
        assert isinstance(error, Exception)
        assert loop.describe(error) == 'column "x" does not exist'
        assert loop.sqlstate(error) == "42703"


def test_errors_that_are_not_the_drivers_say_what_they_are() -> None:
    assert loop.describe(KeyError("domain")) == "KeyError: 'domain'"
    assert loop.describe(ValueError()) == "ValueError"
    assert loop.describe(loop.PgperfError("mode: choose one")) == "mode: choose one"
    assert loop.sqlstate(KeyError()) == ""


def test_a_message_is_scrubbed_cut_and_always_text() -> None:
    text = "hunter2 \ud800 " + "x" * 5000
    code, heard = hold(Scripted(failing(ValueError(text))), wire.Spec(password="hunter2"))
    assert code == wire.EXIT_FAILED
    error = heard[-1]
    assert isinstance(error, wire.Error)
    assert error.message.startswith("ValueError: <password> ? xxx")
    assert len(error.message) == 2000


def test_the_environment_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    loop.clean_environment()
    assert {name: value for name, value in os.environ.items() if name.startswith("PG")} == {"PGTZ": "UTC"}


@pytest.mark.parametrize("module", ["fake_client", "psycopg2_client", "psycopg_client"])
def test_a_client_loads_little_besides_its_driver(module: str) -> None:
    code = f"import sys, pgperf.clients.{module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    heavy = {
        "django",
        "celery",
        "numpy",
        "psutil",
        "pgperf.runner",
        "pgperf.analysis",
        "pgperf.records",
        "pgperf.layers",
    }
    assert not heavy & set(loaded)
    if module == "fake_client":
        assert not {"asyncio", "ctypes", "logging", "subprocess", "psycopg", "psycopg2"} & set(loaded)
