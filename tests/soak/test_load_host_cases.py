"""The faults of load hosts: a case that fails counts as one, and leaves the lane to the others."""

from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pgperf.core.exceptions import RunConflict
from pgperf.models import Run
from pgperf.runs import state
from soak import load_host_cases, small_runs
from soak.load_host_cases import KINDS, Kind, Performer
from soak.site import NotReached

RUN = SimpleNamespace(pk=7, status=Run.Status.FAILED, error="load host b: no sign of life")


@pytest.fixture
def performer(monkeypatch: pytest.MonkeyPatch) -> Performer:
    """Its runs have ended, and so none can be cancelled."""

    def refuse(_run: object) -> None:
        raise RunConflict("run 7 is failed")

    monkeypatch.setattr(state, "request_cancel", refuse)
    monkeypatch.setattr(load_host_cases, "fresh", lambda run: run)
    monkeypatch.setattr(load_host_cases, "blocks_of", lambda _run: [("libpq", 0)])
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setattr(small_runs, "is_over", lambda _run: True)
    found = Performer.__new__(Performer)
    monkeypatch.setattr(found, "database", None, raising=False)
    monkeypatch.setattr(found, "ask", lambda *_: RUN)
    monkeypatch.setattr(found, "_recover", lambda result: result.took.append(0.0))
    return found


def performed(performer: Performer, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setitem(KINDS, "of the test", kind)
    return performer.perform({"kind": "of the test", "seed": 1, "count": 2})


def test_a_run_that_a_survivable_fault_ended_is_wrong_and_the_next_case_follows(
    performer: Performer, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = performed(performer, Kind(lambda _on, _draw: None, survives=True), monkeypatch)
    ended = "load host b: no sign of life"
    each = [f"the run ended before the fault: {ended}", f"a short fault ended the run: {ended}"]
    assert result["wrong"] == each * 2


@pytest.mark.parametrize("error", [IndexError("list index out of range"), NotReached("no pool child")])
def test_a_fault_that_cannot_be_caused_is_wrong_and_the_site_recovers(
    error: Exception, performer: Performer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_on: object, _draw: object) -> None:
        raise error

    result = performed(performer, Kind(fail), monkeypatch)
    said = f"{type(error).__name__}: {error}"
    assert [each for each in result["wrong"] if "before the fault" not in each] == [said] * 2
    assert len(result["took"]) == 2, "it recovers each time"


def test_a_site_that_does_not_recover_is_wrong(performer: Performer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_result: object) -> None:
        raise TimeoutError("Redis does not answer")

    monkeypatch.setattr(performer, "_recover", fail)
    result = performed(performer, Kind(lambda _on, _draw: None), monkeypatch)
    assert result["wrong"].count("TimeoutError: Redis does not answer") == 2


def test_a_worker_that_is_gone_is_named(performer: Performer, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = SimpleNamespace(children=list)
    monkeypatch.setattr(psutil, "Process", lambda _pid: gone)
    performer.hosts = {"b": SimpleNamespace(process=SimpleNamespace(pid=1))}  # type: ignore[dict-item]
    performer.network = SimpleNamespace()  # type: ignore[assignment]
    with pytest.raises(NotReached, match="no worker behind the program"):
        performer.doomed()
    performer.network = None
    with pytest.raises(NotReached, match="no pool child"):
        load_host_cases.kill_the_pool_child(performer, None)  # type: ignore[arg-type]
