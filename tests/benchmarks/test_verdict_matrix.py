"""benchmarks.verdict_matrix: the bar, the cases and the printed tables."""

import random
from collections.abc import Callable

import pytest

from benchmarks import verdict_matrix
from benchmarks.verdict_matrix import CASES, Answer, holds
from pgperf.analysis.verdict_kinds import words
from pgperf.core.records import Definition

RIGHT = {case.name: case.right for case in CASES}


def answers(
    count: int = 10, change: Callable[[int, str], Answer | None] = lambda number, name: None
) -> list[Answer]:
    """`count` right and confirmed answers to each case; `change` may replace some of them."""
    return [
        change(number, name) or Answer(name, number, word, "evidence", "confirmed", "test evidence")
        for number in range(count)
        for name, word in RIGHT.items()
    ]


def test_each_bottleneck_has_a_known_verdict() -> None:
    assert {word for case in CASES for word in (case.right, *case.accepted)} <= set(words())
    assert len(CASES) == len({case.name for case in CASES}) == 11


def test_a_seed_determines_the_definition() -> None:
    base = verdict_matrix._definition(1)
    for case in CASES:
        first, again = (case.measured(random.Random(f"{case.name}/1")) for _ in range(2))
        assert first == again
        assert set(first) <= set(Definition.__dataclass_fields__)
        assert base.benchmark == "verdict-matrix"


@pytest.mark.parametrize(("wrong", "passes"), [(11, True), (12, False)])
def test_nine_of_ten_must_be_right(wrong: int, passes: bool) -> None:
    """Of 110 answers, 11 wrong ones pass and 12 do not."""
    bad = iter(range(110))

    def change(number: int, name: str) -> Answer | None:
        return Answer(name, number, "unknown", "") if next(bad) < wrong else None

    assert holds(answers(change=change)) is passes


def test_no_wrong_verdict_may_be_confirmed() -> None:
    def change(number: int, name: str, tested: str = "confirmed") -> Answer | None:
        return Answer(name, number, "server_io", "", tested) if (number, name) == (0, "ORM client") else None

    assert holds(answers()) is True
    assert holds(answers(change=change)) is False
    assert holds(answers(change=lambda number, name: change(number, name, "withdrawn"))) is True


def test_an_accepted_verdict_counts_but_is_not_right() -> None:
    found = Answer("ORM client", 1, "disturbed", "")
    assert (found.is_right, found.is_accepted) == (False, True)
    assert not Answer("lock contention", 1, "disturbed", "").is_accepted
    assert holds(answers(change=lambda number, name: found if name == "ORM client" else None)) is True


def test_the_printed_tables(capsys: pytest.CaptureFixture[str]) -> None:
    verdict_matrix._print(CASES, answers(2))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| bottleneck | right | accepted too | client_cpu |")
    heads, pool = ([cell.strip() for cell in line.split("|")] for line in (lines[0], lines[4]))
    assert pool[:3] == ["", "pool of 1", "pool_queue"]
    assert [name for name, cell in zip(heads[4:], pool[4:], strict=True) if cell] == ["pool_queue"]
    assert "| right | 22 | 22 | 0 | 0 | 0 |" in lines
    assert lines[-1] == "22 of 22 right or accepted (100 %)"
