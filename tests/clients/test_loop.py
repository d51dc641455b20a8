"""The conversation of the Python clients, held in this process; what needs a process is in
test_conformance.py.
"""

import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pytest

from pgperf.clients import loop
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol, sql_parameters
from tests.clients.driving import ROOT


class Scripted:
    """A client whose operation does what a test says."""

    backend_pid = 7
    server_version = "18"

    def __init__(self, operation: Operation = lambda: 1) -> None:
        self.run, self.closed = operation, False

    def load(self, spec: protocol.Spec) -> None: ...

    def connect(self, spec: protocol.Spec) -> None: ...

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        return self.run

    def query(self, sql: str) -> protocol.Rows:
        return protocol.Rows([[sql]])

    def versions(self) -> dict[str, str]:
        return {"driver": "scripted"}

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _unfreeze() -> object:
    yield
    gc.unfreeze()


def hold(client: Scripted, *asked: protocol.Message) -> tuple[int, list[protocol.Message]]:
    replies = io.BytesIO()
    code = loop.serve(client, io.BytesIO(b"".join(map(protocol.encode, asked))), replies)
    replies.seek(0)
    heard: list[protocol.Message] = []
    while message := protocol.read_message(replies):
        heard.append(message)
        replies.read(message.nbytes if isinstance(message, protocol.SliceReply) else 0)
    assert client.closed
    return code, heard


def failing(error: Exception) -> Operation:
    def operation() -> int:
        raise error

    return operation


def test_a_conversation_from_spec_to_bye() -> None:
    code, heard = hold(
        Scripted(),
        protocol.Spec(),
        protocol.Query("q"),
        protocol.Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=2),
        protocol.Slice(seq=2, start_ns=1, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=1),
        protocol.Bye(),
    )
    assert code == protocol.EXIT_OK
    assert [type(message) for message in heard] == [
        protocol.Ready, protocol.Rows, protocol.SliceReply, protocol.Armed, protocol.SliceReply,
    ]  # fmt: skip


def test_ready_comes_with_the_garbage_frozen_and_the_collector_on() -> None:
    gc.unfreeze()
    hold(Scripted(), protocol.Spec(), protocol.Bye())
    assert gc.get_freeze_count() > 0
    assert gc.isenabled()


OTHER = sql_parameters.statements("select 1", ())


def test_the_other_statement_is_run_only_if_there_is_one() -> None:
    for spec, has_other in (
        (protocol.Spec(layer="psycopg"), False),
        (protocol.Spec(layer="django_orm"), False),
        (protocol.Spec(layer="psycopg", other_statements=OTHER, other_orm=""), True),
        (protocol.Spec(layer="django_orm", other_orm="shop.other"), True),
    ):
        ready = hold(Scripted(), spec)[1][0]
        assert isinstance(ready, protocol.Ready)
        assert (ready.other_first_us is not None, ready.other_second_us is not None) == (has_other, has_other)


@pytest.mark.parametrize(("took_us", "runs"), [(1_000_000, 13), (1_000_001, 3)])
def test_ten_more_operations_are_timed_unless_they_are_slow(
    monkeypatch: pytest.MonkeyPatch, took_us: int, runs: int
) -> None:
    def took(step: Callable[[], object]) -> float:
        step()
        return took_us

    monkeypatch.setattr(loop, "_timed_us", took)
    ran = count()
    ready = hold(Scripted(lambda: next(ran)), protocol.Spec())[1][0]
    assert isinstance(ready, protocol.Ready)
    assert next(ran) == runs
    assert ready.second_us == took_us
    assert ready.next_ten_us == (took_us if runs > 3 else None)


def test_start_up_time_needs_the_spawn_time() -> None:
    ready = hold(Scripted(), protocol.Spec(spawned_ns=0))[1][0]
    assert isinstance(ready, protocol.Ready)
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
def test_the_servers_message_and_code_are_found_in_wrapped_errors(kind: type[Exception]) -> None:
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = kind("column x\nLINE 1: select 'a private value'")
    for error in (wrapped, wrapped.__cause__):
        assert isinstance(error, Exception)
        assert loop.describe(error) == 'column "x" does not exist'
        assert loop.sqlstate(error) == "42703"


def test_errors_of_other_types_name_their_type() -> None:
    assert loop.describe(KeyError("domain")) == "KeyError: 'domain'"
    assert loop.describe(ValueError()) == "ValueError"
    assert loop.describe(loop.PgperfError("mode: choose one")) == "mode: choose one"
    assert loop.sqlstate(KeyError()) == ""


def test_a_message_is_scrubbed_cut_and_always_text() -> None:
    text = "hunter2 \ud800 " + "x" * 5000
    code, heard = hold(Scripted(failing(ValueError(text))), protocol.Spec(password="hunter2"))
    assert code == protocol.EXIT_FAILED
    error = heard[-1]
    assert isinstance(error, protocol.Error)
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
    code = f"import sys, pgperf.clients.programs.{module}; print(*sys.modules)"
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
        "pgperf.core.records",
        "pgperf.core.layers",
    }
    assert not heavy & set(loaded)
    if module == "fake_client":
        assert not {"asyncio", "ctypes", "logging", "subprocess", "psycopg", "psycopg2"} & set(loaded)


@pytest.mark.parametrize(("count", "kept"), [(5_000, 5_000), (6_000, 0)])
def test_more_statements_than_a_message_holds_are_not_traced(count: int, kept: int) -> None:
    """Of a page that asks for each row: the run says how many it sends, not that its client failed."""
    statement = protocol.Statement(sql="x" * 700, args=[4711])
    found = loop.traced([statement] * count)
    assert len(found.statements) == kept
    assert len(protocol.encode(found)) <= protocol.MAX_LINE_BYTES
