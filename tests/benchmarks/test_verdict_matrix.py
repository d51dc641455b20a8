"""benchmarks.verdict_matrix: the cases, the cells and their right words."""

import random
from argparse import ArgumentTypeError

import pytest

from benchmarks import verdict_matrix
from benchmarks.verdict_answers import Answer
from benchmarks.verdict_cells import COLUMNS, DESIGNS, QUIET
from benchmarks.verdict_matrix import CASES, cases_of, drawn, planned, right_word, word_of_one_worker
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
