"""What load hosts cost: figures of several at the same time, beside those of one."""

import os
import re
from functools import partial
from pathlib import Path

import pytest

from benchmarks import load_host_costs as costs
from benchmarks.hosts_at_once import Done, Rounds, at_once
from benchmarks.load_host_costs import Cost, Together
from pgperf.runs.order_rows import OrderRows

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
ONE = Together(1, 7.8, 900.0, 0.18, 0.5, 2.0)
FOUR = Together(4, 30.0, 900.0, 0.2, 0.9, 12.0)


def test_the_page_counts_the_questions_as_the_script_does() -> None:
    (queries,) = re.findall(r"^\| queries for orders that they need in a second (.*)", PAGE, re.MULTILINE)
    assert re.findall(r"\d+", queries) == [str(costs.QUESTIONS * hosts) for hosts in costs.HOSTS]


def test_each_figure_stands_beside_that_of_one_host_or_what_is_needed() -> None:
    assert FOUR.rows(ONE) == [
        ("all write their answers, ms", "7.8 for one", "30"),
        ("questions for an order a second", "40 needed", "900 at most"),
        ("clock error, each side, ms", "0.18 for one", "0.20, worst 0.90"),
        ("the owner joins a round, ms", "2.0 for one", "12"),
    ]


@pytest.mark.parametrize(
    ("seconds", "questions", "holds"), [(1.0, 40.0, True), (1.1, 40.0, False), (1.0, 39.0, False)]
)
def test_each_bar_can_break(
    seconds: float, questions: float, holds: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [Cost("an order", seconds / 2, lambda hosts: hosts // 2)]
    sixteen = FOUR._replace(hosts=16, questions_per_s=0.0)
    status = costs._verdict(steps, {}, ONE, [FOUR._replace(questions_per_s=questions), sixteen], 1.0)
    assert status == (0 if holds else 1)
    said = capsys.readouterr().out
    assert " 16: questions for an order a second" in said
    assert ("do NOT hold" in said) is not holds


def test_the_bar_notices_a_round_that_takes_four_times_as_long_as_on_the_page() -> None:
    (four,) = re.findall(r"^\| all of these, in a round \| \| (\d+) ms", PAGE, re.MULTILINE)
    assert 4 * int(four) >= 1e3 * costs.BAR_S


def test_hosts_that_find_no_run_measure_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without a heartbeat of the run: the answer is quick, and is none to a host."""
    monkeypatch.setattr(OrderRows, "poll", lambda *_: None)
    with pytest.raises(SystemExit, match="cannot measure: a host found no run"):
        costs._ask(1)


def test_a_round_lasts_until_the_last_host_is_done() -> None:
    first = [Done(10.0, 10.5, "a"), Done(10.1, 11.0, "b")]
    rounds = Rounds([first, [Done(20.0, 22.0, "c")] * 2, [Done(30.0, 30.25, "d")] * 2])
    assert rounds.seconds() == 1.0
    assert rounds.found() == ["a", "b", "c", "c", "d", "d"]


def where(_shared: str, row: int) -> tuple[int, int]:
    return row, os.getpid()


def test_each_host_has_a_process_and_all_begin_a_round_together() -> None:
    found = at_once([7, 8, 9], partial(where, "x"), rounds=2)
    by_round = [[done.found for done in each] for each in found.rounds]
    assert [row for row, _pid in by_round[0]] == [row for row, _pid in by_round[1]] == [7, 8, 9]
    pids = {pid for _row, pid in by_round[0]}
    assert len(pids) == 3
    assert os.getpid() not in pids
    assert max(done.end_s for done in found.rounds[0]) <= min(done.begin_s for done in found.rounds[1])


def fail(row: int) -> None:
    if row == 8:
        raise LookupError("no such row")


def test_one_that_fails_ends_all() -> None:
    with pytest.raises(LookupError, match="no such row"):
        at_once([8, 7], fail, rounds=2)
