"""The answers of the verdict matrix: what counts as right, the bar, that it resumes, the tables."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.verdict_answers import (
    BLOCKS,
    Answer,
    by_column,
    column_holds,
    holds,
    keep,
    kept,
    lines,
)

WORDS = {"client spinning": "client_cpu", "ORM client": "client_cpu", "heavy query": "server_cpu"}


def answers(
    count: int = 10, change: Callable[[Answer], Answer] = lambda answer: answer, column: str = "quiet"
) -> list[Answer]:
    """`count` right and confirmed answers to each case; `change` may replace some of them."""
    right = Answer("", 0, "", "evidence", "confirmed", "test", column=column, blocks=BLOCKS)
    return [
        change(replace(right, case=name, seed=number, word=word, right=word))
        for number in range(count)
        for name, word in WORDS.items()
    ]


@pytest.mark.parametrize(("wrong", "passes"), [(3, True), (4, False)])
def test_nine_of_ten_must_be_right(wrong: int, passes: bool) -> None:
    """Of 30 answers, 3 wrong ones pass and 4 do not."""
    bad = iter(range(30))

    def change(answer: Answer) -> Answer:
        return replace(answer, word="unknown", tested="") if next(bad) < wrong else answer

    assert holds(answers(change=change)) is passes


def test_the_bar_holds_in_every_column_or_not_at_all() -> None:
    def unknown(answer: Answer) -> Answer:
        return replace(answer, word="unknown", tested="") if answer.seed < 2 else answer

    found = [*answers(), *answers(column="quota", change=unknown)]
    assert {column: column_holds(own) for column, own in by_column(found).items()} == {
        "quiet": True,
        "quota": False,
    }
    assert sum(each.is_right for each in found) >= 0.9 * len(found)
    assert not holds(found)
    assert not holds([])


@pytest.mark.parametrize(("tested", "passes"), [("confirmed", False), ("withdrawn", True), ("", True)])
def test_no_wrong_verdict_may_be_confirmed(tested: str, passes: bool) -> None:
    def change(answer: Answer) -> Answer:
        first = (answer.seed, answer.case) == (0, "ORM client")
        return replace(answer, word="server_io", tested=tested) if first else answer

    assert holds(answers(change=change)) is passes


@pytest.mark.parametrize("column", ["quiet", "quota"])
def test_disturbed_is_wrong_where_another_word_is_right(column: str) -> None:
    found = Answer("ORM client", 1, "disturbed", "", right="client_cpu", column=column)
    assert not found.is_right
    assert "(WRONG, not client_cpu)" in str(found)
    assert not holds([found])


def test_a_cell_without_its_disturbance_is_not_right_and_no_wrong_word_either() -> None:
    found = replace(answers(1)[0], column="quota", lacking="the quota did not bind")
    assert not found.is_right
    assert not found.is_wrongly_confirmed
    assert "NOT SHOWN: the quota did not bind" in str(found)


def test_cells_of_a_file_are_kept_by_case_column_and_seed(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    assert kept(None) == kept(out) == {}
    found = [*answers(2), *answers(2, column="quota")]
    for each in found:
        keep(each, out)
    assert kept(out) == {(each.case, each.column, each.seed): each for each in found}
    assert len(kept(out)) == 12


def test_a_line_with_words_that_were_accepted_still_counts(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    [found, *_others] = answers(1)
    out.write_text(json.dumps({**asdict(found), "accepted": ["disturbed"]}) + "\n")
    assert kept(out) == {found.key: found}


def test_answers_of_another_number_of_blocks_do_not_count(tmp_path: Path) -> None:
    """Older lines do not name theirs, which was one."""
    out = tmp_path / "cells.jsonl"
    [found, *_others] = answers(1)
    older = {name: value for name, value in asdict(found).items() if name not in ("blocks", "second")}
    out.write_text(json.dumps(older) + "\n")
    assert kept(out) == {}
    assert kept(out, 1) == {found.key: replace(found, blocks=1)}
    keep(found, out)
    assert kept(out) == {found.key: found}


def test_of_two_words_the_first_must_be_the_right_one_and_they_are_counted() -> None:
    def change(answer: Answer) -> Answer:
        if answer.case == "ORM client":
            return replace(answer, second="server_cpu")
        wrong = replace(answer, word="client_cpu", second=answer.right, tested="")
        return wrong if answer.case == "heavy query" else answer

    found = answers(2, change)
    assert [each.is_right for each in found] == [True, True, False] * 2
    assert [*lines(found, 90, {})][-1] == "4 of 6 name two words, 2 of them the right one first"
    assert "client_cpu or server_cpu (WRONG, not server_cpu): evidence" in str(found[2])
    one_block = [replace(each, blocks=1) for each in answers(2)]
    assert [*lines(one_block, 90, {})][-1] == "none can name two words: a run has one block"


def test_the_tables_of_one_column() -> None:
    text = [*lines(answers(2), 90, {})]
    assert text[0] == "| bottleneck | right | client_cpu | server_cpu |"
    assert text[4] == "| heavy query | server_cpu |  | 2 |"
    assert "| right | 6 | 6 | 0 | 0 | 0 |" in text
    assert text[-2:] == ["6 of 6 right (100 %)", "0 of 6 name two words, 0 of them the right one first"]


def test_the_tables_of_several_columns_end_with_the_bar_of_each() -> None:
    def change(answer: Answer) -> Answer:
        if answer.seed:
            return answer
        words = {"client spinning": "disturbed", "ORM client": "server_cpu"}
        changed = replace(answer, word=words.get(answer.case, answer.word))
        return changed if answer.case in words else replace(answer, lacking="no proof")

    found = [*answers(2), *answers(2, change, column="rival-half")]
    text = [*lines(found, 90, {"quota": "no control groups are mounted"})]
    assert "Column rival-half:" in text
    assert "| heavy query | 2 of 2 | 1 of 2 |" in text
    assert text[-3:] == [
        "| quiet | 6 of 6 | 0 | 0 | 0 | 0 | 90 %: holds |",
        "| rival-half | 3 of 6 | 1 | 1 | 2 | 1 | 90 %: does NOT hold |",
        "| quota | not possible here: no control groups are mounted |  |  |  |  |  |",
    ]
