"""Looks at machines: asked once, taken once, and valid for some minutes."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from pgperf.core.exceptions import BrokerUnreachable, RunConflict
from pgperf.models import MachineLook
from pgperf.runs import broker, machine_looks, pause, state
from tests import factories
from tests.machine_looks import QUIET

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    calls: list[tuple[int, str]] = []
    monkeypatch.setattr(broker, "send_look", lambda row_id, queue: calls.append((row_id, queue)))
    return calls


def answered(worker: str = "", **fields: object) -> MachineLook:
    row = machine_looks.begin_here()
    machine_looks.answer(row.pk, QUIET)
    MachineLook.objects.filter(pk=row.pk).update(worker=worker, **fields)
    return MachineLook.objects.get(pk=row.pk)


def test_a_request_that_waits_is_not_sent_again(sent: list[tuple[int, str]]) -> None:
    first = machine_looks.ask("pgperf")
    assert machine_looks.is_waiting()
    assert machine_looks.ask("pgperf") == first
    assert sent == [(first.pk, "pgperf")]


def aged(seconds: float, **fields: object) -> None:
    MachineLook.objects.update(asked_at=timezone.now() - timedelta(seconds=seconds), **fields)


def test_a_request_is_taken_once_and_not_when_it_is_old() -> None:
    row = machine_looks.ask("pgperf")
    assert machine_looks.claim(row.pk, "a@h")
    assert not machine_looks.claim(row.pk, "b@h")
    aged(60, host="")
    assert not machine_looks.claim(row.pk, "a@h")
    assert not machine_looks.is_waiting()
    assert machine_looks.ask("pgperf") != row


def test_a_slow_worker_has_more_time_for_its_answer_than_to_take_the_request() -> None:
    row = machine_looks.ask("pgperf")
    machine_looks.claim(row.pk, "a@h")
    aged(machine_looks.WAIT_S + 1)
    assert machine_looks.is_waiting()
    assert machine_looks.ask("pgperf") == row
    aged(machine_looks.WAIT_S + machine_looks.LATEST_S + 1)
    assert not machine_looks.is_waiting()
    assert machine_looks.newest_request() == row


def test_while_pgperf_is_paused_nothing_is_asked(sent: list[tuple[int, str]]) -> None:
    pause.begin("ada")
    with pytest.raises(RunConflict, match="paused"):
        machine_looks.ask("pgperf")
    assert (sent, MachineLook.objects.count()) == ([], 0)


def test_a_broker_that_is_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(row_id: int, queue: str) -> None:
        raise BrokerUnreachable("Celery's broker does not answer")

    monkeypatch.setattr(broker, "send_look", away)
    with pytest.raises(BrokerUnreachable):
        machine_looks.ask("pgperf")
    assert not machine_looks.is_waiting()


def test_the_newest_answer_of_this_machine_counts_until_it_is_old() -> None:
    answered()
    row = answered()
    answered(host="another machine")
    machine_looks.refuse(machine_looks.begin_here().pk, "no")
    assert machine_looks.valid_here() == row
    aged(machine_looks.VALID_S + 1)
    assert machine_looks.valid_here() is None


def test_pages_have_the_newest_answer_from_the_machines_of_workers_that_are_online() -> None:
    assert machine_looks.newest_of_workers() is None
    answered("gone@h", host="another machine")
    assert machine_looks.newest_of_workers() is None
    factories.make_worker("pgperf@localhost")
    of_worker = answered("pgperf@localhost")
    assert machine_looks.newest_of_workers() == of_worker


def test_the_answer_of_a_command_counts_for_the_worker_on_its_machine() -> None:
    factories.make_worker("pgperf@localhost")
    answered("pgperf@localhost")
    newest = answered()
    assert machine_looks.newest_of_workers() == newest
    machine_looks.refuse(machine_looks.ask("pgperf").pk, "no")
    assert machine_looks.newest_of_workers() == newest
    aged(machine_looks.VALID_S + 1)
    assert machine_looks.newest_of_workers() is None


@pytest.mark.parametrize("next_one", [lambda: machine_looks.ask("pgperf"), machine_looks.begin_here])
def test_the_next_request_deletes_the_old_rows(next_one: Callable[[], MachineLook]) -> None:
    answered()
    machine_looks.refuse(machine_looks.begin_here().pk, "no")
    aged(machine_looks.VALID_S + 1)
    assert [next_one()] == [*MachineLook.objects.all()]


def test_a_run_measures_on_this_machine_while_it_holds_it() -> None:
    assert state.busy_with(state.this_machine()) is None
    factories.make_run("running", busy_host=state.this_machine())
    assert state.busy_with(state.this_machine())
    assert state.busy_with("another machine") is None
