"""The client of the layer django_view at a given rate. Whole runs have its closed loop."""

import os
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import psycopg
import pytest

from pgperf.core import protocol
from pgperf.core.records import Route
from pgperf.core.schedule import due_in
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject
from tests.clients.test_open_loop import MS, SCHEDULES, TWENTY, ask

VIEW = Subject("django_view", "simple", "pgperf.clients.programs.django_view_client")
#: The number of a lock with which the page fails.
FAULT = 1721
FAILING = f"SELECT 1 / (1 - count(*)) FROM pg_locks WHERE locktype = 'advisory' AND objid = {FAULT}"

Page = Callable[[str], Driven]


@pytest.fixture
def page(start: Start, tcp: Route) -> Page:
    """Starts a client for the page that runs this statement."""

    def ready(sql: str) -> Driven:
        client = start(VIEW, DJANGO_SETTINGS_MODULE="tests.page_settings")
        client.send(
            protocol.Spec(
                layer=VIEW.layer, mode=VIEW.mode, host=tcp.host, port=tcp.port, dbname=tcp.dbname, user=tcp.user,
                password=tcp.password, application_name="view", site=True, cold=False,
                page=protocol.Page(f"/tests/reading/?{urlencode({'sql': sql})}"),
                spawned_ns=time.monotonic_ns(), runner_pid=os.getpid(),
            )
        )  # fmt: skip
        client.read(protocol.Ready)
        return client

    return ready


@pytest.fixture
def locking(admin: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A connection whose locks are gone when the test ends."""
    yield admin
    admin.execute("SELECT pg_advisory_unlock_all()")


@SCHEDULES
def test_pages_at_a_rate_keep_to_the_schedule(page: Page, kind: str) -> None:
    client, begin_ns = page("SELECT 1"), time.monotonic_ns()
    request = TWENTY._replace(schedule=kind, seed=7)
    reply, (durations, lags) = ask(client, request)
    assert (reply.ops, reply.skipped, reply.backlog, reply.rows) == (20, 0, 0, None)
    assert reply.phases == [protocol.LAG]
    assert all(lag < duration for lag, duration in zip(lags, durations, strict=True))
    assert begin_ns <= reply.first_ns
    assert reply.first_ns + due_in(request, 20)[-1] + durations[-1] <= time.monotonic_ns()


def test_a_window_of_pages_holds_what_is_due_in_it(page: Page) -> None:
    client, start_ns = page("SELECT 1"), time.monotonic_ns() + 60 * MS
    request = TWENTY._replace(start_ns=start_ns, lead_in_ns=10 * MS, window_ns=20 * MS, count=0)
    reply, (durations, _) = ask(client, request)
    assert (reply.first_ns, len(durations) + reply.backlog) == (start_ns, 30)
    late, _ = ask(client, request._replace(start_ns=1))
    assert (late.ops, late.skipped, late.backlog) == (0, 0, 30)


@pytest.mark.parametrize(("limit_ms", "skipped"), [(0, 0), (50, 3)])
def test_a_slow_page_delays_those_behind_it_or_they_are_skipped(
    page: Page, limit_ms: int, skipped: int
) -> None:
    """It takes 100 ms, and one is due every 10 ms."""
    request = TWENTY._replace(count=4, rate=100.0, latency_limit_ns=limit_ms * MS)
    reply, (durations, lags) = ask(page("SELECT pg_sleep(0.1)"), request)
    assert (reply.ops, reply.skipped) == (4 - skipped, skipped)
    assert durations[0] - lags[0] >= 100 * MS
    assert all(lag >= 100 * MS - number * 10 * MS for number, lag in enumerate(lags) if number)
    assert [each > 0 for each in durations] == [True] + [not skipped] * 3


def test_a_page_that_fails_at_a_rate_ends_the_client(page: Page, locking: psycopg.Connection) -> None:
    client = page(FAILING)
    locking.execute(f"SELECT pg_advisory_lock({FAULT})")
    client.send(TWENTY)
    error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert "division by zero" in error.message
    assert client.wait() == protocol.EXIT_FAILED
