"""The right words without pgperf: removals, turns and the table."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import json_lines, verdict_answers, verdict_disturbances, verdict_truth
from benchmarks.plain_operation import Operation, per_second
from benchmarks.verdict_cells import DESIGNS, RIVALS
from benchmarks.verdict_matrix import CASES, drawn
from benchmarks.verdict_truth import (
    UNDECIDED,
    Clients,
    Load,
    Removal,
    Truth,
    lines,
    relieved,
    removal,
    word_of,
    word_of_disturbance,
)
from pgperf.core.records import Route

TCP, POOL = (Route(name, "127.0.0.1", port, "db", "user", "") for name, port in (("tcp", 1), ("pool", 2)))


@pytest.mark.parametrize(
    ("without", "margin", "word"),
    [
        ((200, 500), 0.375, "latency"), ((900, 500), -0.8, "disturbed"), ((200, 279), 0.09875, UNDECIDED),
        ((281, 200), -0.10125, "disturbed"), ((200, 281), 0.10125, "latency"), ((1010, 1020), 0.0, UNDECIDED),
        ((200, 1010), 1.0125, "latency"),
    ],
)  # fmt: skip
def test_the_removal_that_saves_clearly_more_wins(
    without: tuple[float, float], margin: float, word: str
) -> None:
    found = Removal(1000, *without)
    assert found.margin == pytest.approx(margin)
    assert word_of(found, "latency", "disturbed") == word


def test_two_removals_of_one_word_need_no_margin() -> None:
    assert word_of(Removal(1000, 200, 200), "client_cpu", "client_cpu") == "client_cpu"


def test_removals_are_kept_by_case_column_and_seed_beside_answers(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    answer = verdict_answers.Answer("pool of 1", 1, "pool_queue", "", right="pool_queue", blocks=6)
    verdict_answers.keep(answer, out)
    verdict_truth.keep(("pool of 1", "quiet", 1), Removal(900, 2, 5), out)
    assert verdict_truth.kept(out) == {("pool of 1", "quiet", 1): Removal(900, 2, 5)}
    assert verdict_answers.kept(out) == {answer.key: answer}
    assert verdict_truth.kept(None) == {}
    assert len(json_lines.read(out)) == 2


def test_a_plain_client_that_has_ended_fails_its_cell_only() -> None:
    class Ended:
        stdout = StringIO("")

    with pytest.raises(verdict_truth.CannotMeasure, match="a plain client has ended"):
        verdict_truth._line(cast(Any, Ended))


@pytest.mark.parametrize("case", [case for case in CASES if not case.served], ids=lambda case: case.name)
def test_each_bottleneck_can_be_removed(case: Any) -> None:
    definition, spin_us = drawn(case, 1)
    work = definition.workloads[0]
    load = Load(Operation(work.sql, tuple(map(str, work.args)), definition.layers[0], spin_us), POOL, 3)
    without = relieved(case.name, load, {"tcp": TCP})
    assert without != load
    assert without.clients == 3


def test_the_lock_is_removed_and_the_sleep_stays() -> None:
    load = Load(Operation("SELECT pg_advisory_xact_lock(4711), pg_sleep(0.002)"), TCP)
    assert relieved("lock contention", load, {"tcp": TCP}).operation.sql == "SELECT pg_sleep(0.002)"


def test_the_states_take_turns_in_random_order_and_the_median_counts() -> None:
    said: list[str] = []
    disturbed: list[bool] = [False]

    class Made:
        def __init__(self, name: str, **times: list[float]) -> None:
            self.name, self.times = name, {state: iter(own) for state, own in times.items()}

        def response_us(self, _seconds: float) -> float:
            state = "disturbed" if disturbed[0] else "quiet"
            said.append(f"{self.name} {state}")
            return next(self.times[state])

    @contextmanager
    def disturb() -> Iterator[None]:
        disturbed[0] = True
        yield
        disturbed[0] = False

    turns = 5
    orders = set()
    for _ in range(20):
        said.clear()
        whole = Made("whole", disturbed=[9, 9, 90, 9, 9], quiet=[1, 2, 3, 2, 2])
        other = Made("other", disturbed=[5, 5, 500, 5, 5])
        assert removal(cast(Clients, whole), cast(Clients, other), disturb) == Removal(9, 5, 2)
        each = [tuple(said[at : at + 3]) for at in range(0, len(said), 3)]
        assert len(each) == turns
        assert all(sorted(turn) == ["other disturbed", "whole disturbed", "whole quiet"] for turn in each)
        orders |= {*each}
    assert len(orders) > 1


def test_at_least_one_operation_counts() -> None:
    ran: list[int] = []
    assert per_second(lambda: ran.append(1), 0.0, 0.0) > 0
    assert ran == [1]


def test_a_quota_is_the_cpu_of_its_role() -> None:
    assert word_of_disturbance("5 ms distance", "quota") == "server_cpu"
    assert word_of_disturbance("5 ms distance", "rival-full") == "disturbed"


def test_a_rival_takes_the_cpus_of_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[list[int], float]] = []

    @contextmanager
    def made(cpus: list[int], share: float) -> Iterator[None]:
        taken.append((cpus, share))
        yield

    monkeypatch.setattr(verdict_disturbances, "halves", lambda: ([0], [1]))
    monkeypatch.setattr(verdict_truth, "rivals", made)
    for column in RIVALS:
        with verdict_truth._beside(nullcontext, column, DESIGNS["ORM client"]):
            pass
    assert taken == [([1], 0.5), ([1], 1.0), ([0], 0.5), ([0], 1.0)]


def test_the_table_counts_the_words_that_agree() -> None:
    right = Truth("ORM client", "rival-full", 1, Removal(1100.4, 200, 500), "client_cpu", "client_cpu")
    wrong = Truth("pool of 1", "quota", 1, Removal(900, 2, 5), "pool_queue", "client_cpu")
    unclear = Truth("pool of 1", "quota", 2, Removal(900, 2, 5), UNDECIDED, "client_cpu")
    text = [*lines([right, wrong, unclear])]
    assert text[2] == "| ORM client | rival-full | 1 | 1,100 | 200 | 500 | +33 % | client_cpu | client_cpu |"
    assert text[-1].strip() == "1 of 3 fixed words agree with the measurement, 1 undecided"
