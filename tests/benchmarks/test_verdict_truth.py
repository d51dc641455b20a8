"""The right words without pgperf: removals, turns and the table."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import pytest

from benchmarks import verdict_disturbances, verdict_truth
from benchmarks.plain_operation import Operation, per_second
from benchmarks.verdict_cells import DESIGNS, RIVALS
from benchmarks.verdict_matrix import CASES, drawn
from benchmarks.verdict_truth import (
    Clients,
    Load,
    Removal,
    Truth,
    lines,
    relieved,
    removal,
    word_of_disturbance,
)
from pgperf.core.records import Route

TCP, POOL = (Route(name, "127.0.0.1", port, "db", "user", "") for name, port in (("tcp", 1), ("pool", 2)))


def test_the_removal_that_leaves_less_wins() -> None:
    assert Removal(1000, 200, 500).bottleneck_wins
    assert not Removal(1000, 900, 500).bottleneck_wins


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
    text = [*lines([right, wrong])]
    assert text[2] == "| ORM client | rival-full | 1 | 1,100 | 200 | 500 | client_cpu | client_cpu |"
    assert text[-1].strip() == "1 of 2 fixed words agree with the measurement"
