"""The row between owner and agent: one agent gets it, orders and answers keep their numbers, one attempt counts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from pgperf.agent import rows
from pgperf.core.exceptions import AgentFailed
from pgperf.models import Run, Sampling
from tests.factories import make_run

pytestmark = pytest.mark.django_db
QUEUE = "pgperf-agent-db1"


@pytest.fixture
def run() -> Run:
    return make_run(Run.Status.RUNNING, attempt=1)


@pytest.fixture
def row(run: Run) -> int:
    return rows.open_for(run, QUEUE)


@pytest.fixture
def taken(row: int) -> int:
    assert rows.claim(row, "a@db")
    return row


class TestClaim:
    def test_of_several_messages_one_wins(self, row: int) -> None:
        assert [rows.claim(row, agent) for agent in ("a@db", "b@db", "a@db")] == [True, False, False]
        assert rows.taken_by(row) == "a@db"

    def test_nobody_has_it_yet(self, row: int) -> None:
        assert rows.taken_by(row) == ""

    @pytest.mark.parametrize("status", [Run.Status.DONE, Run.Status.LOST, Run.Status.QUEUED])
    def test_not_for_a_run_that_is_not_running(self, run: Run, row: int, status: str) -> None:
        Run.objects.update(status=status)
        assert not rows.claim(row, "a@db")

    def test_not_for_another_attempt(self, run: Run, row: int) -> None:
        Run.objects.update(attempt=2)
        assert not rows.claim(row, "a@db")

    def test_not_for_a_run_that_gives_no_sign_of_life(self, run: Run, row: int) -> None:
        Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=31))
        assert not rows.claim(row, "a@db")

    def test_not_when_it_is_gone(self, row: int) -> None:
        rows.close(row)
        assert not rows.claim(row, "a@db")


class TestOpen:
    def test_what_ended_runs_left_behind_is_cleared_away(self, run: Run) -> None:
        dead, other = make_run(Run.Status.LOST), make_run(Run.Status.RUNNING, busy_key="other")
        for each in (dead, other):
            Sampling.objects.create(run=each, attempt=1, queue=QUEUE)
        mine = rows.open_for(run, QUEUE)
        assert set(Sampling.objects.values_list("run_id", flat=True)) == {run.pk, other.pk}
        assert Sampling.objects.get(run=run).pk == mine

    def test_a_second_attempt_has_a_row_of_its_own(self, run: Run, row: int) -> None:
        run.attempt = 2
        again = rows.open_for(run, QUEUE)
        assert again != row
        assert [s.attempt for s in Sampling.objects.filter(run=run)] == [2]

    def test_it_goes_with_the_run(self, run: Run, row: int) -> None:
        run.delete()
        assert not Sampling.objects.exists()


class TestOrders:
    def test_an_order_and_its_answer(self, taken: int) -> None:
        assert rows.poll(taken, "a@db") == (0, {})
        number = rows.order(taken, {"watch": 1})
        assert rows.poll(taken, "a@db") == (number, {"watch": 1})
        assert rows.answered(taken, number) is None
        rows.answer(taken, "a@db", number, {"said": 1}, b"bytes")
        assert rows.answered(taken, number) == rows.Answer({"said": 1}, b"bytes", "a@db", "")

    def test_an_answer_to_an_earlier_order_counts_for_nothing(self, taken: int) -> None:
        first, second = rows.order(taken, {"n": 1}), rows.order(taken, {"n": 2})
        rows.answer(taken, "a@db", first, {"late": True})
        assert rows.answered(taken, second) is None
        assert second == first + 1

    def test_nor_does_that_of_another_agent(self, taken: int) -> None:
        number = rows.order(taken, {})
        rows.answer(taken, "b@db", number, {"stranger": True})
        assert rows.answered(taken, number) is None
        assert rows.poll(taken, "b@db") is None

    def test_a_new_order_forgets_what_was_handed_over(self, taken: int) -> None:
        rows.answer(taken, "a@db", rows.order(taken, {}), {}, b"bytes")
        rows.order(taken, {})
        assert bytes(Sampling.objects.get().readings) == b""

    def test_a_refusal_answers_every_order(self, row: int) -> None:
        assert rows.claim(row, "a@db", "no green threads")
        found = rows.answered(row, rows.order(row, {}))
        assert found
        assert (found.refusal, found.agent) == ("no green threads", "a@db")

    @pytest.mark.parametrize("status", [Run.Status.DONE, Run.Status.CANCELLED, Run.Status.LOST])
    def test_the_agent_is_told_that_the_run_is_over(self, taken: int, status: str) -> None:
        Run.objects.update(status=status)
        assert rows.poll(taken, "a@db") is None

    def test_and_that_the_run_gives_no_sign_of_life(self, taken: int) -> None:
        Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=31))
        assert rows.poll(taken, "a@db") is None

    def test_and_that_the_row_is_gone(self, taken: int) -> None:
        rows.close(taken)
        assert rows.poll(taken, "a@db") is None
        with pytest.raises(AgentFailed, match="cleared away"):
            rows.order(taken, {})
