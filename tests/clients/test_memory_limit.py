"""Every layer against results that exceed its memory limit: an error that is typed, and in time."""

import errno
import mmap
import os
import resource
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pgperf.clients import memory_limit
from pgperf.core import layers, protocol
from pgperf.core.exceptions import ClientFailed, OutOfMemory, ServerError
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.runner.client_process import ClientProcess
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject
from tests.clients.test_conformance import LOGINS, NAMED, is_asyncpg, select
from tests.clients.test_conformance import started as started_with

_SHARE = 8 << 20
_SOON_S = 20.0
#: Results of 40 MB or more in the shapes that drivers read differently. The largest limit here is
#: 34 MB: 16 MiB, and as much again for the times that a client has not recorded yet.
RESULTS = {
    "many rows": "SELECT 1 AS id, repeat('x', 1000) AS domain, 'n' AS name FROM generate_series(1, 40000)",
    "one wide row": "SELECT 1 AS id, repeat('x', 40000000) AS domain, 'n' AS name",
    "few long arrays": "SELECT 1 AS id, array(SELECT x FROM generate_series(1, 500000) x) AS domain, 'n' AS name"
    " FROM generate_series(1, 12)",
    "few long documents": "SELECT 1 AS id, (SELECT json_agg(x) FROM generate_series(1, 500000) x) AS domain,"
    " 'n' AS name FROM generate_series(1, 12)",
}
#: Every layer that connects, each program and driver in one mode. psycopg_c is compiled where it is
#: installed: test_psycopg_c.py tries it.
SUBJECTS = [
    *LOGINS,
    *[
        Subject(layer.name, "simple", layer.program)
        for layer in layers.LAYERS.values()
        if layer.connects and (layer.tool or layer.requests_pages)
    ],
]
every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=str)


def started(start: Start, subject: Subject, route: Route, work: WorkloadDefinition, **changes: Any) -> Driven:
    """A client with its spec. A page of the tests' site reads the rows of the SELECT."""
    if not layers.requests_pages(subject.layer):
        return started_with(start, subject, route, work, **changes)
    own = {name: value for name, value in os.environ.items() if name.startswith(("PGPERF_", "DJANGO_"))}
    site = {**own, "DJANGO_SETTINGS_MODULE": "tests.page_settings"}
    page = protocol.Page(f"/tests/reading/?sql={quote(work.sql)}")
    none = WorkloadDefinition("page", "")
    return started_with(
        lambda each: start(each, **site), subject, route, none, page=page, site=True, **changes
    )


@pytest.fixture
def start(start_plain: Start) -> Start:
    return start_plain


@pytest.mark.parametrize("result", RESULTS)
@every_subject
def test_a_result_beyond_the_limit_is_an_out_of_memory_error(
    start: Start, subject: Subject, tcp: Route, result: str
) -> None:
    assert_runs_out_of_memory(started(start, subject, tcp, select(RESULTS[result]), **limited(_SHARE)))


@pytest.mark.parametrize("megabytes", [1, 4, 16])
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("subject", [each for each in LOGINS if is_asyncpg(each)], ids=str)
def test_asyncpg_reports_it_wherever_it_is_refused_memory(
    start: Start, tcp: Route, subject: Subject, result: str, megabytes: int
) -> None:
    """After some refusals it waits for messages that it has lost: without a limit on its time."""
    assert_runs_out_of_memory(
        started(start, subject, tcp, select(RESULTS[result]), **limited(megabytes << 20))
    )


def limited(memory_bytes: int) -> dict[str, Any]:
    return {"cold": False, "memory_bytes": memory_bytes}


def assert_runs_out_of_memory(client: Driven) -> None:
    """Long before a deadline of the runner."""
    error = client.read(protocol.Error, _SOON_S)
    assert (error.stage, error.sqlstate, error.message) == ("ready", "", protocol.OUT_OF_MEMORY)
    assert client.wait() == protocol.EXIT_FAILED


@every_subject
def test_a_result_within_the_limit_is_read(start: Start, subject: Subject, tcp: Route) -> None:
    rows = "SELECT x AS id, repeat('x', 1000) AS domain, 'n' AS name FROM generate_series(1, 2000) x"
    client = started(start, subject, tcp, select(rows), cold=False, memory_bytes=_SHARE)
    ready = client.read(protocol.Ready)
    layer = layers.LAYERS[subject.layer]
    assert ready.rows_per_op == (None if layer.tool or layer.requests_pages else 2000)
    assert ready.memory_bytes == resource.prlimit(ready.pid, resource.RLIMIT_DATA)[0] > _SHARE


@every_subject
def test_without_a_limit_the_client_says_so(start: Start, subject: Subject, tcp: Route) -> None:
    client = started(start, subject, tcp, select("SELECT 1 AS id, 'd' AS domain, 'n' AS name"), cold=False)
    assert client.read(protocol.Ready).memory_bytes == 0


def test_the_servers_own_lack_of_memory_is_another_error() -> None:
    class FromServer(Exception):
        sqlstate = "53200"

    wrapped = ValueError("out of memory")
    wrapped.__cause__ = FromServer("out of memory")
    for error in (FromServer("out of memory"), wrapped, ServerError("out of memory")):
        assert not memory_limit.is_reached(error)


@every_subject
def test_what_the_server_says_of_memory_is_another_error(start: Start, subject: Subject, tcp: Route) -> None:
    """Its message quotes a value that reads like a lack of memory."""
    said = select("SELECT 'out of memory'::int AS id, 'd' AS domain, 'n' AS name")
    error = started(start, subject, tcp, said, **limited(_SHARE)).read(protocol.Error)
    assert error.message != protocol.OUT_OF_MEMORY
    assert "integer" in error.message
    assert error.sqlstate == ("" if layers.runs_tool(subject.layer) else "22P02")


@pytest.mark.parametrize("permission", [0, mmap.PROT_READ], ids=["none", "read"])
def test_address_space_that_is_only_reserved_does_not_count(
    start: Start, tcp: Route, permission: int
) -> None:
    client = started(start, NAMED["django_orm-simple"], tcp, mapping(8, permission), **limited(_SHARE))
    assert client.read(protocol.Ready).memory_bytes < 1 << 30
    reply, _ = client.slice(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=3))
    assert reply.rows == 3


def test_writable_memory_counts_before_it_is_used(start: Start, tcp: Route) -> None:
    work = mapping(8, mmap.PROT_READ | mmap.PROT_WRITE)
    assert_runs_out_of_memory(started(start, NAMED["django_orm-simple"], tcp, work, **limited(_SHARE)))


def mapping(gigabytes: int, permission: int) -> WorkloadDefinition:
    return WorkloadDefinition("mapping", "SELECT %s, %s", (gigabytes, permission), orm="tests.mapping")


@pytest.mark.parametrize(
    "cause",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "in words of the site's language"),
        RuntimeError("consuming input failed: out of memory"),
    ],
)
def test_a_wrapped_lack_of_memory_is_found(cause: Exception) -> None:
    error = ValueError("Django's own words")
    error.__cause__ = cause
    assert memory_limit.is_reached(error)


@pytest.mark.parametrize(
    "script",
    [
        'printf \'%s\\n\' \'{"type":"error","stage":"slice","sqlstate":"","message":"out of memory"}\'',
        "echo 'pgperf-libpq: no memory' >&2; exit 3",
        "echo 'Fatal Python error: Cannot recover from MemoryErrors' >&2; kill -ABRT $$",
        "echo \"terminate called after throwing an instance of 'std::bad_alloc'\" >&2; kill -ABRT $$",
    ],
)
def test_the_runner_names_the_limit_and_the_remedy(script: str) -> None:
    with ClientProcess("psycopg", ["sh", "-c", f"read line; {script}"]) as client:
        client.send(protocol.Spec(memory_bytes=64 << 20))
        with pytest.raises(OutOfMemory, match=r"psycopg: .* 64 MiB .*LIMIT.*RUN_MEMORY_MB"):
            client.expect(protocol.Ready, 20)


def test_a_client_that_hangs_with_its_memory_used_up_ran_out_of_memory() -> None:
    hang = (
        "import sys, resource; from pgperf.clients import memory_limit; sys.stdin.readline();"
        " resource.setrlimit(resource.RLIMIT_DATA, (memory_limit._data_bytes() + (40 << 20),) * 2);"
        " held = bytearray(30 << 20); print('it holds them', flush=True); sys.stdin.readline()"
    )
    with ClientProcess("asyncpg", [sys.executable, "-c", hang]) as client:
        client.send(protocol.Spec(memory_bytes=40 << 20))
        client._read_line(_SOON_S)
        with pytest.raises(OutOfMemory, match=r"no answer within its deadline of 0\.01 s, and little memory"):
            client.expect(protocol.Ready, 0.01)


def test_a_client_that_hangs_with_memory_left_is_late() -> None:
    with ClientProcess("asyncpg", ["sh", "-c", "read spec; read bye"]) as client:
        client.send(protocol.Spec(memory_bytes=40 << 20))
        with pytest.raises(ClientFailed, match="no answer") as late:
            client.expect(protocol.Ready, 0.1)
        assert not isinstance(late.value, OutOfMemory)


def test_a_client_that_the_kernel_ended_ran_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with ClientProcess("psycopg", ["sh", "-c", "read line; kill -KILL $$"]) as client:
        monkeypatch.setattr("pgperf.runner.client_process.oom_kills", lambda: 1 << 30)
        client.send(protocol.Spec())
        with pytest.raises(OutOfMemory, match="the kernel ended it"):
            client.expect(protocol.Ready, 20)


def test_the_kernel_ends_clients_before_the_worker() -> None:
    with ClientProcess("psycopg", ["sh", "-c", "read bye"]) as client:
        assert client.ends_first
        assert Path(f"/proc/{client.pid}/oom_score_adj").read_text().strip() == "1000"


def test_every_layer_with_a_connection_is_tried() -> None:
    assert {subject.layer for subject in SUBJECTS} | {"psycopg_c"} == {
        layer.name for layer in layers.LAYERS.values() if layer.connects
    }
