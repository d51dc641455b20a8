"""A worker's look at its machine, and what a run stores of it."""

import json

import pytest

from pgperf.core.exceptions import LookFailed
from pgperf.core.records import PREDICTED, Prediction
from pgperf.models import MachineLook
from pgperf.runner import machine_look as runner_look
from pgperf.runs import machine_looks, state
from pgperf.worker import machine_look
from tests import factories
from tests.machine_looks import look
from tests.runner.test_prediction import plan

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_look, "look", look)


def asked() -> MachineLook:
    return MachineLook.objects.create(queue="pgperf", asked_at=machine_looks.Now())


def served(row: MachineLook, pool_refusal: str = "") -> MachineLook:
    machine_look.serve(row.pk, "w@h", pool_refusal)
    return MachineLook.objects.get(pk=row.pk)


def test_the_answer_is_stored_with_the_machine_and_the_worker() -> None:
    row = served(asked())
    assert (row.worker, row.host, row.refusal) == ("w@h", state.this_machine(), "")
    assert row.findings == json.loads(json.dumps(look().to_json()))
    assert row.taken_at


def test_a_repeated_message_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = served(asked())
    monkeypatch.setattr(runner_look, "look", lambda: pytest.fail("looked again"))
    assert served(row) == row


@pytest.mark.parametrize("why", ["pool", "run", "failure"])
def test_why_there_is_no_look_is_stored(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise LookFailed("the look failed")

    if why == "run":
        factories.make_run("running", busy_host=state.this_machine())
    if why == "failure":
        monkeypatch.setattr(runner_look, "look", fail)
    row = served(asked(), "no green threads" if why == "pool" else "")
    expected = {"pool": "no green threads", "run": "a run of pgperf measures", "failure": "the look failed"}
    assert row.refusal.startswith(expected[why])
    assert (row.findings, machine_looks.valid_here()) == ({}, None)


def test_a_run_stores_what_the_look_on_its_machine_predicts() -> None:
    assert machine_look.predicted(plan()) == {}
    machine_look.look_and_keep()
    stored = machine_look.predicted(plan())[PREDICTED]
    found = Prediction.from_json(json.loads(json.dumps(stored)))
    assert found
    assert found.precision > 0
    assert 0 <= found.looked_s < machine_looks.VALID_S
    assert machine_look.predicted(plan(blocks=1)) == {}


def test_what_another_version_stored_predicts_nothing() -> None:
    machine_look.look_and_keep()
    MachineLook.objects.update(findings={"seconds": 5.0})
    assert machine_look.predicted(plan()) == {}
