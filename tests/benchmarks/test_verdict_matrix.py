"""benchmarks.verdict_matrix: the cases, the cells and their right words."""

import random
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import verdict_matrix, verdict_truth
from benchmarks.verdict_answers import Answer
from benchmarks.verdict_cells import COLUMNS, DESIGNS, QUIET
from benchmarks.verdict_disturbances import Proof
from benchmarks.verdict_matrix import (
    CASES,
    cases_of,
    drawn,
    in_blocks,
    planned,
    right_word,
    word_of_one_worker,
)
from benchmarks.verdict_truth import CannotMeasure, Removal
from pgperf.analysis.verdict import Lead, Verdict
from pgperf.analysis.verdict_kinds import words
from pgperf.core.records import Definition


def test_each_bottleneck_has_a_known_verdict() -> None:
    assert {case.right for case in CASES} <= set(words())
    assert len(CASES) == len({case.name for case in CASES}) == 11


def test_a_seed_determines_the_definition() -> None:
    base = verdict_matrix._definition(1)
    for case in CASES:
        first, again = (case.measured(random.Random(f"{case.name}/1")) for _ in range(2))
        assert first == again
        assert set(first) <= set(Definition.__dataclass_fields__)
        assert base.benchmark == "verdict-matrix"


def test_the_client_spins_in_one_case_only() -> None:
    spinning = {case.name: drawn(case, 1)[1] for case in CASES}
    assert 300 <= spinning.pop("client spinning") <= 2000
    assert not any(spinning.values())


def test_cases_are_chosen_by_name_in_their_own_order() -> None:
    assert [case.name for case in cases_of("heavy query,ORM client")] == ["ORM client", "heavy query"]


def test_a_misspelt_case_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="no such case: heavy queries; there are client spinning, "):
        cases_of("ORM client,heavy queries")


def test_seven_bottlenecks_have_every_column_and_pages_are_quiet() -> None:
    cells = [(column, case.name) for column, case in planned(COLUMNS, CASES)]
    assert [name for column, name in cells if column == QUIET] == [case.name for case in CASES]
    for column in COLUMNS[1:]:
        named = [name for own, name in cells if own == column]
        assert named == [case.name for case in CASES if not case.served] == list(DESIGNS)


@pytest.mark.parametrize("case", [case for case in CASES if not case.served], ids=lambda case: case.name)
def test_each_cell_has_one_right_word_and_it_names_a_bottleneck(case: verdict_matrix.Case) -> None:
    right = {column: right_word(case, column) for column in COLUMNS}
    assert right[QUIET] == case.right
    assert set(right.values()) <= set(words()) - {"disturbed", "unknown"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_the_right_word_is_right_where_it_is_quiet(case: verdict_matrix.Case) -> None:
    said = [Answer(case.name, 1, word, "", right=right_word(case, QUIET)) for word in words()]
    assert [each.word for each in said if each.is_right] == [case.right]


def test_one_worker_is_the_limit_only_where_a_cpu_is_left_for_another() -> None:
    assert [word_of_one_worker(cpus) for cpus in (1, 2)] == ["web_cpu", "web_workers"]


def test_six_blocks_share_the_rounds_of_one() -> None:
    definition, _ = drawn(CASES[0], 1)
    six, one = in_blocks(definition, 6), in_blocks(definition, 1)
    assert (six.blocks, six.rounds) == (6, 1)
    assert (one.blocks, one.rounds) == (1, verdict_matrix._ROUNDS)


@pytest.mark.parametrize(("low", "second"), [(-1.0, "server_cpu"), (1.0, ""), (None, "")])
def test_a_verdict_whose_lead_is_not_sure_names_a_second_word(low: float | None, second: str) -> None:
    lead = Lead("client", "server", 3.0, low, None if low is None else 9.0)
    found = verdict_matrix._answer(CASES[1], QUIET, 1, Verdict("client_cpu", lead=lead), Proof())
    assert (found.word, found.second, found.is_right) == ("client_cpu", second, True)


def ask_truth(monkeypatch: pytest.MonkeyPatch, cases: str, out: Path | None = None) -> int:
    usual: dict[str, Any] = {"seed": 1, "seeds": 1, "quick": False, "columns": (QUIET,), "blocks": 6}
    asked = Namespace(**usual, cases=cases_of(cases), truth=True, out=out)
    monkeypatch.setattr(verdict_matrix, "_options", lambda: asked)
    return verdict_matrix.main()


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases whose removals are measured; the ORM client fails at first."""
    done: list[str] = []

    @contextmanager
    def site() -> Iterator[None]:
        yield

    def removal(case: verdict_matrix.Case, *cell: object) -> Removal:
        done.append(case.name)
        if done == ["ORM client"]:
            raise CannotMeasure("a plain client has ended, see above")
        return Removal(1000, 200, 990)

    monkeypatch.setattr(verdict_matrix, "_site", site)
    monkeypatch.setattr(verdict_matrix, "_removal", removal)
    return done


def test_the_truth_goes_on_after_a_cell_that_failed_and_resumes(
    tmp_path: Path, removed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, cases = tmp_path / "truth.jsonl", "ORM client,heavy query"
    assert ask_truth(monkeypatch, cases, out) == 1
    said = capsys.readouterr()
    assert said.out.endswith("failed: ORM client, quiet, 1: a plain client has ended, see above\n")
    assert "| heavy query | quiet | 1 | 1,000 | 200 | 990 | +99 % | server_cpu | server_cpu |" in said.err
    assert ask_truth(monkeypatch, cases, out) == 0
    assert removed == ["ORM client", "heavy query", "ORM client"]
    assert "2 of 2 fixed words agree with the measurement, 0 undecided" in capsys.readouterr().out
    assert ask_truth(monkeypatch, cases, out) == 0
    assert len(removed) == 3
    assert len(verdict_truth.kept(out)) == 2


def test_the_truth_is_not_of_pages(removed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask_truth(monkeypatch, "slow template") == 0
    assert removed == []
