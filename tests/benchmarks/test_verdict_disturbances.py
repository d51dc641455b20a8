"""What shows that a cell was disturbed as its column says; how a role gets into its group."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import verdict_disturbances
from benchmarks.quota_group import Throttled
from benchmarks.verdict_cells import COLUMNS, DESIGNS
from benchmarks.verdict_disturbances import (
    Proof,
    competed,
    disturbance,
    entering,
    quota_proof,
    rival_cpus,
    rival_proof,
    settings,
    steal_proof,
)
from pgperf.analysis.grade import Disturbance, Grade, Source
from pgperf.analysis.verdict import Verdict, VerdictNumbers

THROTTLING = Disturbance(Source.THROTTLING, "client", 300.0, 0.5)
STEAL = Disturbance(Source.STEAL, "host", 20.0, 0.05)
VERDICT = Verdict("client_cpu", numbers=VerdictNumbers(queue_us={"client": 310.0, "server": 2.0}))


def graded(*found: Disturbance) -> Verdict:
    return replace(VERDICT, grade=Grade("poor", 0.5, found))


@pytest.mark.parametrize(
    ("had", "wanted", "is_shown"), [(0.5, 1.0, True), (0.2, 0.5, True), (0.02, 0.5, False)]
)
def test_a_rival_without_its_cpu_does_not_show(had: float, wanted: float, is_shown: bool) -> None:
    assert (rival_proof(had, wanted, [1]).lacking == "") is is_shown


@pytest.mark.parametrize(
    ("column", "case", "cpus"),
    [
        ("rival-full", "ORM client", [2]),
        ("rival-own-half", "ORM client", [0, 1]),
        ("rival-own-full", "pool of 1", [0, 1]),
        ("rival-half", "heavy query", [0]),
        ("rival-own-full", "heavy query", [2, 3]),
    ],
)
def test_the_cpus_of_a_rival(
    column: str, case: str, cpus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bottleneck cannot move from its own CPUs to one without a rival."""
    monkeypatch.setattr(verdict_disturbances, "halves", lambda: ([0, 1], [2, 3]))
    assert rival_cpus(column, DESIGNS[case]) == cpus


def test_a_rival_on_its_own_cpu_must_keep_the_role_waiting() -> None:
    found = competed(Proof("the rival had 50 % of CPU 0"), "client", VERDICT)
    assert found == Proof("the rival had 50 % of CPU 0; per operation 310 µs of the client's run delay")
    assert competed(Proof(), "pooler", VERDICT).lacking == "no run delay of the pooler"
    assert competed(Proof("", "hardly any"), "client", VERDICT).lacking == "hardly any"


@pytest.mark.parametrize(
    ("column", "share", "shows_delay"), [("rival-half", 0.5, False), ("rival-own-full", 1.0, True)]
)
def test_only_on_its_own_cpu_a_role_must_have_waited(
    column: str, share: float, shows_delay: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def made(cpus: list[int], wanted: float) -> Iterator[dict[int, Any]]:
        yield {cpu: SimpleNamespace(had=lambda: wanted) for cpu in cpus}

    monkeypatch.setattr(verdict_disturbances, "rivals", made)
    with disturbance(column, DESIGNS["ORM client"]) as running:
        found = running.proof(VERDICT)
    assert f"the rival had {share:.0%}".replace("%", " %") in found.shown
    assert ("310 µs of the client's run delay" in found.shown) is shows_delay
    assert found.lacking == ""


def test_a_quota_that_binds_and_is_called_throttling_is_shown() -> None:
    proof = quota_proof(Throttled(12, 0.4), "client", graded(THROTTLING, STEAL))
    assert proof.lacking == ""
    assert "throttled in 12 periods for 0.4 s" in proof.shown
    assert "310 µs of the client's run delay" in proof.shown


@pytest.mark.parametrize(
    ("periods", "role", "verdict", "lacking"),
    [
        (0, "client", graded(THROTTLING), "did not bind"),
        (12, "client", graded(STEAL), "grade does not say that the client was throttled"),
        (12, "server", graded(THROTTLING), "grade does not say that the server was throttled"),
        (12, "client", graded(THROTTLING, replace(STEAL, us=400.0)), "as much steal as throttling"),
        (12, "client", replace(graded(THROTTLING), numbers=VerdictNumbers()), "no run delay of the client"),
    ],
)
def test_what_a_quota_lacks(periods: int, role: str, verdict: Verdict, lacking: str) -> None:
    assert lacking in quota_proof(Throttled(periods, 0.4), role, verdict).lacking


def test_the_grade_must_show_the_replayed_steal() -> None:
    assert steal_proof(0.05, graded(STEAL)).lacking == ""
    assert "does not show" in steal_proof(0.12, graded(STEAL)).lacking
    assert "does not show" in steal_proof(0.05, graded()).lacking


def test_the_processes_of_the_role_enter_once_they_are_found() -> None:
    order: list[Any] = []

    def finder(_probe: object, placed: str) -> Any:
        return lambda groups: order.append((placed, len(groups)))

    def group(*pids: int) -> Any:
        return SimpleNamespace(processes=lambda: SimpleNamespace(of=lambda role: pids or None))

    changed = entering(finder, order.append, "client")  # type: ignore[arg-type]
    changed(None, "placement")([group(3, 4), group(5), group()])
    assert order == [("placement", 3), {3, 4, 5}]


def test_only_a_quota_changes_the_definition() -> None:
    design = DESIGNS["lock contention"]
    changed = {column: settings(column, design) for column in COLUMNS}
    assert changed.pop("quota") == {"slice_ms": 400}
    assert not any(changed.values())
    assert settings("quota", DESIGNS["heavy query"]) == {"slice_ms": 150}
    assert settings("quiet", None) == {}
