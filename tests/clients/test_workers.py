"""Three workers in one process, for every program that can have them: threads or tasks."""

import asyncio
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from itertools import accumulate
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgperf.clients import workers
from pgperf.clients.async_loop import EventLoop
from pgperf.core import protocol
from pgperf.core.records import Route
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject, spec
from tests.clients.test_conformance import (
    FAKE,
    LIBPQ,
    NAMED,
    ON_UVLOOP,
    SITE,
    is_asyncpg,
    one_hour_slice,
    select,
    started,
)
from tests.waiting import until

WORKERS = 3
CONNECTED = (
    NAMED["psycopg2-simple"], NAMED["psycopg-simple"], NAMED["psycopg_async-simple"], NAMED["asyncpg-prepared"],
    *ON_UVLOOP, NAMED["django_cursor-simple"], NAMED["django_orm-simple"], NAMED["django_orm-without-psycopg"],
)  # fmt: skip
ASYNC_ORM = NAMED["django_orm_async-simple"]
PROGRAMS = (*CONNECTED, ASYNC_ORM, FAKE)
NAMES = ["three", "three.1", "three.2"]

every_program = pytest.mark.parametrize("subject", PROGRAMS, ids=str)
every_connected = pytest.mark.parametrize("subject", CONNECTED, ids=str)

Session = tuple[Driven, protocol.Ready]


@pytest.fixture(scope="module", params=PROGRAMS, ids=str)
def session(
    request: pytest.FixtureRequest, c_program: Path, tcp: Route, admin: psycopg.Connection
) -> Iterator[Session]:
    with Driven.fork(request.param, c_program) as client:
        client.send(three(request.param, tcp))
        yield client, client.read(protocol.Ready)
        client.send(protocol.Bye())
        assert client.wait() == protocol.EXIT_OK
        assert client.at_end()


@pytest.fixture
def superuser(superuser_login: dict[str, Any], tcp: Route) -> Iterator[psycopg.Connection]:
    with psycopg.connect(**superuser_login, dbname=tcp.dbname) as connection:
        yield connection


def three(subject: Subject, tcp: Route, **changes: object) -> protocol.Spec:
    return spec(subject, tcp, SITE)._replace(**{"workers": WORKERS, "application_name": "three", **changes})


def chains(reply: protocol.SliceReply, durations: "array[int]") -> list[list[int]]:
    """The times at which each worker's operations ended, its first one's begin before them."""
    assert len(reply.worker_ops) == len(reply.worker_first_ns) == WORKERS
    assert sum(reply.worker_ops) == reply.ops == reply.rows == len(durations)
    assert reply.first_ns == min(reply.worker_first_ns)
    ends = list(accumulate(reply.worker_ops, initial=0))
    return [
        list(accumulate(durations[begin:end], initial=first))
        for first, begin, end in zip(reply.worker_first_ns, ends[:-1], ends[1:], strict=True)
    ]


@every_connected
def test_each_worker_has_a_connection_with_its_name(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    own = "SELECT application_name, pid FROM pg_stat_activity WHERE application_name ~ '^own' ORDER BY 1"
    until(lambda: not admin.execute(own).fetchall(), 30, "the sessions of the one before are gone")
    client = start(subject)
    client.send(three(subject, tcp, application_name="own"))
    ready = client.read(protocol.Ready)
    found = admin.execute(own).fetchall()
    assert [name for name, _ in found] == ["own", "own.1", "own.2"]
    assert found[0][1] == ready.backend_pid
    assert ready.rows_per_op == 1


@every_connected
def test_the_workers_run_operations_at_the_same_time(subject: Subject, start: Start, tcp: Route) -> None:
    asleep_s = 0.2
    work = select(f"SELECT 1 AS id, 'd' AS domain, pg_sleep({asleep_s})::text AS name")
    client = started(start, subject, tcp, work, workers=WORKERS, cold=False)
    client.read(protocol.Ready)
    reply, durations = client.slice(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=2))
    ends = chains(reply, durations)
    together_s = (max(each[-1] for each in ends) - reply.first_ns) / 1e9
    assert together_s < WORKERS * 2 * asleep_s * 0.9


def test_tasks_of_the_asynchronous_orm_share_one_connection_and_wait_for_each_other(
    start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    asleep_s = 0.05
    work = select(f"SELECT 1 AS id, 'd' AS domain, pg_sleep({asleep_s})::text AS name")
    client = started(start, ASYNC_ORM, tcp, work, workers=WORKERS, application_name="single", cold=False)
    client.read(protocol.Ready)
    names = admin.execute(
        "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'single%'"
    ).fetchall()
    assert names == [("single",)]
    reply, durations = client.slice(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=2))
    ends = chains(reply, durations)
    assert (max(each[-1] for each in ends) - reply.first_ns) / 1e9 >= WORKERS * 2 * asleep_s


def test_an_armed_slice_has_one_window(session: Session) -> None:
    start, lead_in, window = time.monotonic_ns() + 60_000_000, 20_000_000, 60_000_000
    reply, durations = session[0].slice(
        protocol.Slice(seq=2, start_ns=start, lead_in_ops=2, lead_in_ns=lead_in, window_ns=window)
    )
    assert reply.lead_in_ops >= 2 * WORKERS
    for ends in chains(reply, durations):
        assert ends[0] >= start + lead_in
        assert len(ends) == 1 or ends[-2] < start + lead_in + window <= ends[-1]
    assert not reply.capped
    elapsed_ns = time.monotonic_ns() - start
    assert 0 < reply.user_ns + reply.sys_ns <= elapsed_ns * len(os.sched_getaffinity(0))


def test_a_slice_by_count_counts_for_each_worker(session: Session) -> None:
    reply, durations = session[0].slice(protocol.Slice(seq=3, lead_in_ops=3, lead_in_ns=0, count=17))
    assert reply.worker_ops == [17] * WORKERS
    assert (reply.ops, reply.lead_in_ops, reply.capped) == (17 * WORKERS, 3 * WORKERS, False)
    assert all(len(ends) == 18 for ends in chains(reply, durations))


def test_a_slice_by_time_that_starts_at_once(session: Session) -> None:
    reply, durations = session[0].slice(
        protocol.Slice(seq=4, lead_in_ops=1, lead_in_ns=5_000_000, window_ns=30_000_000)
    )
    for ends in chains(reply, durations):
        assert ends[-1] - ends[0] >= 30_000_000 > ends[-2] - ends[0]


def test_a_window_that_is_over_before_the_lead_in_stays_empty(session: Session) -> None:
    reply, durations = session[0].slice(
        protocol.Slice(seq=5, start_ns=1, lead_in_ops=2, lead_in_ns=0, window_ns=1)
    )
    assert (reply.ops, reply.worker_ops, reply.lead_in_ops, len(durations)) == (0, [0] * 3, 2 * WORKERS, 0)


def test_the_workers_share_the_space_for_durations(start: Start, tcp: Route) -> None:
    client, most = start(FAKE), protocol.MAX_SAMPLES // WORKERS
    client.send(three(FAKE, tcp, cold=False))
    client.read(protocol.Ready)
    for count, capped in ((most, False), (most + 1, True)):
        reply, durations = client.slice(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=count))
        assert (reply.worker_ops, reply.capped) == ([most] * WORKERS, capped)
        assert len(durations) == most * WORKERS


@every_connected
@pytest.mark.parametrize("name", [NAMES[0], NAMES[2]])
def test_the_error_of_one_worker_ends_the_slice_for_all(
    subject: Subject, name: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = start(subject)
    client.send(three(subject, tcp, cold=False))
    client.read(protocol.Ready)
    client.send(one_hour_slice())
    client.read(protocol.Armed)
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [name]
    )
    error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert error.sqlstate in ("57P01", "", *(["08003"] if is_asyncpg(subject) else []))
    assert error.message
    assert client.wait() == protocol.EXIT_FAILED
    assert client.at_end()


@every_connected
def test_a_worker_that_cannot_connect_is_an_error_of_the_connection(
    subject: Subject, start: Start, tcp: Route, superuser: psycopg.Connection
) -> None:
    role = "pgperf_two_connections"
    superuser.execute(f"DROP ROLE IF EXISTS {role}")
    superuser.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'limited secret' CONNECTION LIMIT 2")
    try:
        client = start(subject)
        client.send(three(subject, tcp, user=role, password="limited secret"))
        error = client.read(protocol.Error)
        assert error.stage == "connect"
        assert "too many connections for role" in error.message
        assert client.wait() == protocol.EXIT_FAILED
    finally:
        client.process.kill()
        client.process.wait()
        superuser.execute(f"DROP ROLE {role}")


@every_program
def test_a_whole_conversation_in_one_write(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    at_once = protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=1)
    client.send(b"".join(map(protocol.encode, (three(subject, tcp), at_once, protocol.Bye()))))
    client.read(protocol.Ready)
    assert len(client.samples(client.read(protocol.SliceReply))) == WORKERS
    assert client.wait() == protocol.EXIT_OK


@every_program
def test_end_of_input_ends_it_after_the_slice(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    client.send(three(subject, tcp, cold=False))
    client.read(protocol.Ready)
    client.send(
        protocol.Slice(seq=1, start_ns=time.monotonic_ns() + 20_000_000, lead_in_ops=0, lead_in_ns=0, count=3)
    )
    client.close_stdin()
    assert client.wait() == protocol.EXIT_OK


@pytest.mark.parametrize("count", [-1, 0])
def test_fewer_than_one_worker_are_refused(start: Start, tcp: Route, count: int) -> None:
    client = start(FAKE)
    client.send(spec(FAKE, tcp, SITE)._replace(workers=count))
    assert client.read(protocol.Error).message.startswith("workers: ")


def test_the_c_client_has_one_worker(start: Start, tcp: Route) -> None:
    client = start(LIBPQ)
    client.send(three(LIBPQ, tcp))
    error = client.read(protocol.Error)
    assert (error.stage, error.message.partition(":")[0]) == ("spec", "workers")
    assert client.wait() == protocol.EXIT_FAILED


class Numbered:
    """A client whose second copy fails in one step; each describes errors by its own number."""

    def __init__(self, fails_in: str, number: int = -1) -> None:
        self._fails_in, self._number, self._copies = fails_in, number, 0

    def another(self) -> "Numbered":
        copy = Numbered(self._fails_in, self._copies)
        self._copies += 1
        copy._step("another")
        return copy

    def connect(self, spec: protocol.Spec) -> None:
        self._step("connect")

    def operation(self, spec: protocol.Spec, other: bool = False) -> Callable[[], int]:
        self._step("operation")
        return lambda: self._step("first run")

    def describe(self, error: Exception) -> str:
        return f"worker {self._number}: {error}"

    def close(self) -> None: ...

    def _step(self, name: str) -> int:
        if name == self._fails_in and self._number == 1:
            raise ValueError(name)
        return 1


def begin(several: workers.Workers, asked: protocol.Spec) -> None:
    several.connect(asked)
    several.connect_others()
    several.operation(asked)
    several.run_others()


@pytest.mark.parametrize("kind", [workers.Threads, workers.Tasks])
@pytest.mark.parametrize(
    ("step", "number"), [("another", -1), ("connect", 1), ("operation", 1), ("first run", 1)]
)
def test_an_error_before_the_first_slice_is_in_the_words_of_its_worker(
    kind: type[workers.Workers], step: str, number: int
) -> None:
    asked = protocol.Spec(workers=WORKERS)
    several = kind(Numbered(step), asked)
    with pytest.raises(ValueError) as raised:
        begin(several, asked)
    assert several.describe(raised.value) == f"worker {number}: {step}"
    several.close()


class Racing:
    """Its worker 2 fails first; worker 0 fails when that has, before anybody has heard of either."""

    def __init__(self, number: int = -1) -> None:
        self.event_loop: Any = EventLoop() if number < 0 else None
        self.number, self.copies = number, 0
        self.has_failed: Any = None  # set as worker 2 fails
        self.other_ended: Callable[[], object] = lambda: None

    def another(self) -> "Racing":
        copy = Racing(self.copies)
        self.copies += 1
        copy.has_failed = self.has_failed
        copy.other_ended = lambda: self.other_ended()
        return copy

    def connect(self, spec: protocol.Spec) -> None: ...

    def operation(self, spec: protocol.Spec, other: bool = False) -> "Racing":
        return self

    def __call__(self) -> int:
        """In a thread."""
        if self.number == 0:
            self.has_failed.wait()
            self.other_ended()
        return self._end()

    async def run_chain(self, request: protocol.Slice, stamps: "array[int]") -> Any:
        """In an event loop, which runs worker 0 before who waits for all."""
        if self.number == 0:
            await self.has_failed.wait()
        self._end()

    def _end(self) -> int:
        if self.number == 1:
            return 1
        self.has_failed.set()
        raise ValueError("ends")

    def describe(self, error: Exception) -> str:
        return f"worker {self.number} {error}"

    def close(self) -> None: ...


@pytest.mark.parametrize("kind", [workers.Threads, workers.Tasks])
def test_of_two_workers_the_one_that_failed_first_describes_the_error(
    kind: type[workers.Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, asked = Racing(), protocol.Spec(workers=WORKERS)
    client.has_failed = (threading if kind is workers.Threads else asyncio).Event()
    several = kind(client, asked)
    several.connect(asked)
    several.connect_others()
    operation = several.operation(asked)
    assert operation is several
    if isinstance(several, workers.Threads):
        client.other_ended = lambda: several._there(2, lambda: None)  # behind its part of the slice
        monkeypatch.setattr(workers, "wait", lambda running, return_when: wait(running))  # woken late
    with pytest.raises(ValueError) as raised:
        several.run_slice(
            protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=1),
            [array("q", [0]) for _ in range(WORKERS)],
        )
    assert several.describe(raised.value) == "worker 2 ends"
    several.close()
    client.event_loop.close()


def test_an_error_that_nobody_heard_of_does_not_describe_a_later_one() -> None:
    """A client may lack a property, such as the pid of its backend."""
    asked = protocol.Spec(workers=WORKERS)
    several = workers.Threads(Numbered("first run"), asked)
    several.connect(asked)
    several.connect_others()
    assert not hasattr(several, "backend_pid")
    several.operation(asked)
    with pytest.raises(ValueError) as raised:
        several.run_others()
    assert several.describe(raised.value) == "worker 1: first run"
    several.close()
