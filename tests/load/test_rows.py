"""The row between a run's owner and a load host: signs of life, and one run at a time."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from pgperf.core.exceptions import OrdersLost
from pgperf.load import rows
from pgperf.models import LoadShare, Run, Worker
from pgperf.runs import state
from tests.factories import make_run, make_worker

pytestmark = pytest.mark.django_db
QUEUE, AGENT = "pgperf-load-a", "load@a"


@pytest.fixture
def run() -> Run:
    return make_run(Run.Status.RUNNING, attempt=1)


@pytest.fixture
def taken(run: Run) -> int:
    row = rows.open_for(run, "a", QUEUE)
    assert row
    assert rows.claim(row, AGENT)
    return row


def test_a_host_works_for_one_run_at_a_time(run: Run) -> None:
    other = make_run(Run.Status.RUNNING, attempt=1, busy_key="other", busy_host="other")
    first = rows.open_for(run, "a", QUEUE)
    assert first
    assert rows.open_for(other, "a", QUEUE) is None
    rows.ROWS.close(first)
    assert rows.open_for(other, "a", QUEUE)


def test_rows_of_ended_runs_keep_no_host(run: Run, taken: int) -> None:
    Run.objects.filter(pk=run.pk).update(status=Run.Status.LOST, busy_key=None, busy_host=None)
    rows.ROWS.clear(make_run(Run.Status.RUNNING, attempt=1))
    assert not LoadShare.objects.exists()


def test_a_sign_of_life_is_also_that_of_the_worker(taken: int) -> None:
    """Its own heartbeat pauses while it works, and the next run has to find it."""
    make_worker(AGENT)
    Worker.objects.update(queue=QUEUE, last_seen=timezone.now() - timedelta(minutes=5))
    assert state.live_load_hosts() == []
    assert rows.touch(taken, AGENT)
    assert state.live_load_hosts() == ["a"]


def test_there_is_no_sign_of_life_without_a_run(run: Run, taken: int) -> None:
    assert not rows.touch(taken, "stranger@b")
    Run.objects.filter(pk=run.pk).update(attempt=2)
    assert not rows.touch(taken, AGENT)


def test_silence_is_told_by_the_clock_of_the_database(taken: int) -> None:
    assert rows.trouble([taken]) is None, "it has come just now"
    rows.touch(taken, AGENT)
    assert rows.trouble([taken]) is None
    LoadShare.objects.update(seen_at=timezone.now() - timedelta(minutes=5))
    assert rows.trouble([taken]) == (taken, rows._SILENT)


def test_a_host_that_has_not_come_yet_is_not_silent(run: Run) -> None:
    row = rows.open_for(run, "a", QUEUE)
    assert row
    assert rows.trouble([row]) is None


def test_a_host_that_dies_before_its_first_order_is_silent_soon(run: Run) -> None:
    row = rows.open_for(run, "a", QUEUE)
    assert row
    assert rows.claim(row, AGENT)
    LoadShare.objects.update(seen_at=F("seen_at") - timedelta(minutes=5))
    assert rows.trouble([row]) == (row, rows._SILENT)


def test_a_host_says_why_it_cannot_go_on(taken: int) -> None:
    rows.ROWS.refuse(taken, AGENT, "no layer")
    assert rows.trouble([taken]) == (taken, "no layer")


def test_all_hosts_are_asked_after_in_one_query(
    run: Run, taken: int, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    others = [rows.open_for(run, name, f"{QUEUE}-{name}") for name in ("b", "c")]
    every = [taken, *filter(None, others)]
    rows.ROWS.claim(every[2], AGENT, "no memory")
    with django_assert_num_queries(1):
        assert rows.trouble(every) == (every[2], "no memory")
    assert rows.trouble(every[:2]) is None


def test_an_order_that_is_longer_than_any_is_not_loaded(taken: int) -> None:
    rows.ROWS.order(taken, {"end": True})
    assert rows.ROWS.poll(taken, AGENT) == (1, {"end": True})
    rows.ROWS.order(taken, {"end": "x" * (17 << 20)})
    assert rows.ROWS.poll(taken, AGENT) is None


def test_a_row_that_goes_with_its_order_is_said_to_be_lost(taken: int) -> None:
    """As where another process marks the run lost, and the next run clears its rows."""

    def cleared(execute: Any, sql: str, *given: Any) -> Any:
        found = execute(sql, *given)
        if sql.startswith("UPDATE"):
            LoadShare.objects.filter(pk=taken).delete()
        return found

    with connection.execute_wrapper(cleared), pytest.raises(OrdersLost, match="was deleted"):
        rows.ROWS.order(taken, {"end": True})


def test_a_host_knows_which_other_run_has_its_machine(taken: int) -> None:
    assert rows.other_run_here(taken) is None, "its own run makes load here"
    other = make_run(Run.Status.RUNNING, attempt=1, busy_key="other", busy_host=state.this_machine())
    assert rows.other_run_here(taken) == other
    Run.objects.filter(pk=other.pk).update(busy_host="elsewhere")
    assert rows.other_run_here(taken) is None
    second = rows.open_for(other, "b", "pgperf-load-b")
    assert second
    assert rows.claim(second, "load@b")
    assert rows.other_run_here(taken) == other, "its load host is on this machine"
