"""The row between controller and agent: claims, numbered orders and answers, attempts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from pgperf.agent import rows
from pgperf.core.exceptions import AgentFailed
from pgperf.models import Run, Sampling
from pgperf.runs.order_rows import Answer
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
    def test_one_of_several_claims_succeeds(self, row: int) -> None:
        assert [rows.claim(row, agent) for agent in ("a@db", "b@db", "a@db")] == [True, False, False]
        assert rows.taken_by(row) == "a@db"

    def test_an_unclaimed_row_has_no_agent(self, row: int) -> None:
        assert rows.taken_by(row) == ""

    @pytest.mark.parametrize("status", [Run.Status.DONE, Run.Status.LOST, Run.Status.QUEUED])
    def test_a_run_that_is_not_running_cannot_be_claimed(self, run: Run, row: int, status: str) -> None:
        Run.objects.update(status=status)
        assert not rows.claim(row, "a@db")

    def test_another_attempt_cannot_be_claimed(self, run: Run, row: int) -> None:
        Run.objects.update(attempt=2)
        assert not rows.claim(row, "a@db")

    def test_a_run_without_heartbeat_cannot_be_claimed(self, run: Run, row: int) -> None:
        Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=31))
        assert not rows.claim(row, "a@db")

    def test_a_deleted_row_cannot_be_claimed(self, row: int) -> None:
        rows.close(row)
        assert not rows.claim(row, "a@db")


class TestOpen:
    def test_rows_of_ended_runs_are_deleted(self, run: Run) -> None:
        dead, other = make_run(Run.Status.LOST), make_run(Run.Status.RUNNING, busy_key="other")
        for each in (dead, other):
            Sampling.objects.create(run=each, attempt=1, queue=QUEUE)
        mine = rows.open_for(run, QUEUE)
        assert set(Sampling.objects.values_list("run_id", flat=True)) == {run.pk, other.pk}
        assert Sampling.objects.get(run=run).pk == mine

    def test_a_second_attempt_has_its_own_row(self, run: Run, row: int) -> None:
        run.attempt = 2
        again = rows.open_for(run, QUEUE)
        assert again != row
        assert [s.attempt for s in Sampling.objects.filter(run=run)] == [2]

    def test_deleting_the_run_deletes_the_row(self, run: Run, row: int) -> None:
        run.delete()
        assert not Sampling.objects.exists()


class TestOrders:
    def test_an_order_and_its_answer(self, taken: int) -> None:
        assert rows.poll(taken, "a@db") == (0, {})
        number = rows.order(taken, {"watch": 1})
        assert rows.poll(taken, "a@db") == (number, {"watch": 1})
        assert rows.answered(taken, number) is None
        rows.answer(taken, "a@db", number, {"said": 1}, b"bytes")
        assert rows.answered(taken, number) == Answer({"said": 1}, b"bytes", "a@db", "")

    def test_an_answer_to_an_earlier_order_is_ignored(self, taken: int) -> None:
        first, second = rows.order(taken, {"n": 1}), rows.order(taken, {"n": 2})
        rows.answer(taken, "a@db", first, {"late": True})
        assert rows.answered(taken, second) is None
        assert second == first + 1

    def test_an_answer_of_another_agent_is_ignored(self, taken: int) -> None:
        number = rows.order(taken, {})
        rows.answer(taken, "b@db", number, {"stranger": True})
        assert rows.answered(taken, number) is None
        assert rows.poll(taken, "b@db") is None

    def test_a_new_order_clears_the_previous_answer(self, taken: int) -> None:
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

    def test_the_agent_is_told_that_the_run_has_no_heartbeat(self, taken: int) -> None:
        Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=31))
        assert rows.poll(taken, "a@db") is None

    def test_the_agent_is_told_that_the_row_is_deleted(self, taken: int) -> None:
        rows.close(taken)
        assert rows.poll(taken, "a@db") is None
        with pytest.raises(AgentFailed, match="was deleted"):
            rows.order(taken, {})
