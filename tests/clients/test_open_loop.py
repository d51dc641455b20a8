"""Slices at a given rate: every client through the same cases, in C and in Python."""

import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgperf.core import protocol, schedule
from pgperf.core.records import Route
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject, spec
from tests.clients.test_conformance import (
    FAKE,
    LIBPQ,
    NAMED,
    ON_UVLOOP,
    PROGRAMS,
    SITE,
    every_program,
    every_reader,
    select,
    started,
)
from tests.clients.test_workers import PROGRAMS as WITH_WORKERS

MS = 1_000_000
#: 20 operations at the rate of 1,000/s.
TWENTY = protocol.Slice(seq=1, lead_in_ns=0, count=20, rate=1000.0)
SCHEDULES = pytest.mark.parametrize("kind", protocol.SCHEDULES)

Session = tuple[Driven, Subject]


@pytest.fixture(scope="module", params=PROGRAMS, ids=str)
def session(
    request: pytest.FixtureRequest, c_program: Path, tcp: Route, admin: psycopg.Connection
) -> Iterator[Session]:
    with Driven.fork(request.param, c_program) as client:
        client.send(spec(request.param, tcp, SITE, cold=False))
        client.read(protocol.Ready)
        yield client, request.param
        client.send(protocol.Bye())
        assert client.wait() == protocol.EXIT_OK
        assert client.at_end()


def ask(client: Driven, request: protocol.Slice) -> tuple[protocol.SliceReply, "list[array[int]]"]:
    """The reply, and the durations and each phase of all operations, skipped ones included."""
    client.send(request)
    if request.start_ns:
        assert client.read(protocol.Armed).seq == request.seq
    reply = client.read(protocol.SliceReply)
    recorded = reply.ops + reply.skipped
    assert reply.nbytes == 8 * recorded * (1 + len(reply.phases))
    assert reply.phases[0] == protocol.LAG
    return reply, client.numbers(recorded, 1 + len(reply.phases))


@SCHEDULES
def test_every_client_keeps_to_the_schedule(session: Session, kind: str) -> None:
    begin_ns = time.monotonic_ns()
    reply, (durations, lags) = ask(session[0], TWENTY._replace(schedule=kind, seed=7))
    last_ns = schedule.due_in(TWENTY._replace(schedule=kind, seed=7), 20)[-1]
    assert (reply.ops, reply.rows, reply.skipped, reply.backlog) == (20, 20, 0, 0)
    assert (reply.lead_in_ops, reply.capped) == (0, False)
    assert not reply.worker_ops
    assert all(lag < duration for lag, duration in zip(lags, durations, strict=True))
    assert begin_ns <= reply.first_ns
    assert reply.first_ns + last_ns + durations[-1] <= time.monotonic_ns()


def test_an_offset_begins_the_schedule_later(session: Session) -> None:
    begin_ns = time.monotonic_ns()
    request = TWENTY._replace(count=1, offset_ns=30 * MS)
    reply, (durations, _) = ask(session[0], request)
    assert reply.first_ns + 30 * MS + durations[0] <= time.monotonic_ns()
    assert time.monotonic_ns() - begin_ns >= 30 * MS


def test_a_window_holds_what_is_due_in_it_and_lasts_to_its_end(session: Session) -> None:
    start = time.monotonic_ns() + 60 * MS
    request = TWENTY._replace(start_ns=start, lead_in_ns=10 * MS, window_ns=20 * MS, count=0)
    reply, _ = ask(session[0], request)
    assert time.monotonic_ns() >= start + 30 * MS
    assert reply.first_ns == start
    assert (reply.ops + reply.skipped + reply.backlog, reply.skipped) == (30, 0)


def test_a_window_that_has_passed_is_all_backlog(session: Session) -> None:
    request = TWENTY._replace(start_ns=1, window_ns=50 * MS, count=0)
    reply, _ = ask(session[0], request)
    assert (reply.ops, reply.skipped, reply.backlog) == (0, 0, 50)


def test_a_backlog_is_counted_up_to_what_can_be_recorded(session: Session) -> None:
    """The rest of ten million operations counts as one."""
    request = TWENTY._replace(start_ns=1, window_ns=10_000 * MS, count=0, rate=1e6)
    reply, _ = ask(session[0], request)
    assert (reply.ops, reply.backlog) == (0, protocol.MAX_PHASED_SAMPLES + 1)


def test_operations_beyond_the_limit_are_skipped(session: Session) -> None:
    """All are due long ago: by count, none of them may begin."""
    request = TWENTY._replace(start_ns=1, latency_limit_ns=MS)
    reply, (durations, lags) = ask(session[0], request)
    assert (reply.ops, reply.rows, reply.skipped) == (0, 0, 20)
    assert set(durations) == {0}
    assert all(lag > MS for lag in lags)


def test_a_closed_loop_follows_an_open_one(session: Session) -> None:
    ask(session[0], TWENTY)
    reply, durations = session[0].slice(protocol.Slice(seq=2, lead_in_ops=1, lead_in_ns=0, count=5))
    assert (reply.ops, len(durations), reply.phases, reply.skipped, reply.backlog) == (5, 5, [], 0, 0)


def test_waiting_takes_no_cpu_time(session: Session) -> None:
    """Five operations in half a second: a client that spins would use all of it, and not what they
    take one after the other.
    """
    alone, _ = session[0].slice(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=5))
    reply, _ = ask(session[0], TWENTY._replace(rate=10.0, count=5))
    assert reply.user_ns + reply.sys_ns < alone.user_ns + alone.sys_ns + 200 * MS


@pytest.mark.parametrize(
    "subject", [LIBPQ, NAMED["psycopg-simple"], NAMED["asyncpg-prepared"], *ON_UVLOOP], ids=str
)
def test_a_stall_delays_every_operation_that_is_due_during_it(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    """The first operation waits for a lock that is held while ten more fall due: all of them wait."""
    work = select("SELECT 1 AS id, 'd' AS domain, pg_advisory_lock_shared(1717)::text AS name")
    client = started(start, subject, tcp, work, cold=False)
    client.read(protocol.Ready)
    admin.execute("SELECT pg_advisory_lock(1718)")
    client.send(protocol.Query("SELECT pg_advisory_unlock_all()::text"))
    client.read(protocol.Rows)
    admin.execute("SELECT pg_advisory_lock(1717)")
    request = protocol.Slice(seq=1, lead_in_ns=0, count=12, rate=100.0)
    client.send(request)
    time.sleep(0.2)
    released_ns = time.monotonic_ns()
    admin.execute("SELECT pg_advisory_unlock(1717)")
    reply = client.read(protocol.SliceReply)
    durations, lags = client.numbers(12, 2)
    waited_ns = [released_ns - reply.first_ns - number * 10 * MS for number in range(12)]
    assert all(duration >= waited for duration, waited in zip(durations, waited_ns, strict=True))
    assert durations[0] - lags[0] >= waited_ns[0] - lags[0]
    assert all(lag >= waited for lag, waited in list(zip(lags, waited_ns, strict=True))[1:])


@pytest.mark.parametrize("subject", WITH_WORKERS, ids=str)
@SCHEDULES
def test_workers_share_one_schedule(subject: Subject, start: Start, tcp: Route, kind: str) -> None:
    client = started(start, subject, tcp, workers=3, cold=False)
    client.read(protocol.Ready)
    reply, (durations, lags) = ask(client, TWENTY._replace(schedule=kind))
    assert (reply.ops, reply.rows, reply.skipped, reply.backlog) == (20, 20, 0, 0)
    assert not reply.worker_ops
    assert all(lag < duration for lag, duration in zip(lags, durations, strict=True))


@pytest.mark.parametrize("subject", [NAMED["psycopg-simple"], NAMED["asyncpg-prepared"], *ON_UVLOOP], ids=str)
def test_three_workers_hold_a_rate_that_one_cannot(subject: Subject, start: Start, tcp: Route) -> None:
    """Each operation takes 50 ms, and one is due every 20 ms: one worker falls behind by 30 ms more
    with each, three never do.
    """
    work = select("SELECT 1 AS id, 'd' AS domain, pg_sleep(0.05)::text AS name")
    request = protocol.Slice(seq=1, lead_in_ns=0, count=10, rate=50.0)
    last_lag_ns = {}
    for workers in (1, 3):
        client = started(start, subject, tcp, work, workers=workers, cold=False)
        client.read(protocol.Ready)
        last_lag_ns[workers] = ask(client, request)[1][1][-1]
    assert last_lag_ns[1] >= 9 * 30 * MS
    assert last_lag_ns[3] < last_lag_ns[1] / 2


RECONNECTING = [
    LIBPQ, FAKE, NAMED["psycopg2-simple"], NAMED["psycopg-simple"], NAMED["psycopg_async-simple"],
    NAMED["asyncpg-extended"], *ON_UVLOOP, NAMED["django_orm-simple"],
]  # fmt: skip


@pytest.mark.parametrize("subject", RECONNECTING, ids=str)
def test_connecting_and_closing_lie_within_the_service_time(
    subject: Subject, start: Start, tcp: Route
) -> None:
    client = started(start, subject, tcp, connection_mode="per_operation", cold=False, nominal_us=100.0)
    client.read(protocol.Ready)
    reply, (durations, *parts) = ask(client, TWENTY._replace(count=5, rate=20.0))
    assert reply.phases == ["lag", "connect", "close"]
    assert all(sum(own) < duration for *own, duration in zip(*parts, durations, strict=True))
    skipped, numbers = ask(client, TWENTY._replace(start_ns=1, count=5, latency_limit_ns=1))
    assert skipped.skipped == 5
    assert [sum(row) for row in (numbers[0], *numbers[2:])] == [0, 0, 0]


@every_reader
@pytest.mark.parametrize(
    "field",
    [
        b'"rate":-1', b'"rate":0.0001', b'"rate":1000001', b'"rate":"1"', b'"rate":null',
        b'"schedule":"poisson"', b'"schedule":1', b'"seed":-1', b'"offset_ns":-1', b'"latency_limit_ns":-1',
    ],
)  # fmt: skip
def test_a_rate_that_cannot_be_is_refused(subject: Subject, start: Start, tcp: Route, field: bytes) -> None:
    client = started(start, subject, tcp, cold=False)
    client.read(protocol.Ready)
    client.send(b'{"type":"slice","seq":1,"count":1,' + field + b"}\n")
    assert client.read(protocol.Error).stage == "slice"
    assert client.wait() == protocol.EXIT_PROTOCOL


@every_program
def test_a_closed_reply_pipe_ends_an_open_loop(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, cold=False)
    client.read(protocol.Ready)
    client.close_stdout()
    client.send(TWENTY)
    assert client.wait() == protocol.EXIT_OK
