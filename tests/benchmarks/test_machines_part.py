"""benchmarks.machines_part: figures without the machine's part, and what that part accounts for."""

from typing import Any

import pytest

from benchmarks.machines_part import (
    Figure,
    accounts_for,
    beside_quiet,
    busiest_pooler,
    least_idle,
    most_steal,
    of_ratio,
    unexplained,
)
from benchmarks.published import CONFIRMED, QUALIFIED, Judgement
from tests.benchmarks.made_up_runs import comparison, row, run


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Figure("x", 1.0, 1.2, (1.08,), 0.1), True),
        (Figure("x", 1.0, 1.2, (1.08,), 0.0), False),
        (Figure("x", 1.1, 1.2, (1.02, 1.08), 0.1), False),
        (Figure("x", None, None, (1.08,), 0.1), False),
    ],
)
def test_the_machine_can_have_changed_a_disturbed_figure_that_reaches_a_limit(
    figure: Figure, expected: bool
) -> None:
    assert (figure.reached is not None) is expected
    assert accounts_for([Figure("x", 1.1, 1.2, (2,), 0.1), figure]) is expected


@pytest.mark.parametrize(("disturbed", "reached"), [(0.0, False), (0.1, False), (0.3, True)])
def test_a_ratio_is_widened_by_what_disturbed_its_times(disturbed: float, reached: bool) -> None:
    one, two = row(30.0, disturbed=disturbed), row(10.0, layer="psycopg")
    made = run(one, two, comparisons=[comparison(one, two)])
    assert accounts_for([of_ratio(made, one, two, 2.5)]) is reached


def host(disturbed: float | None = 0.0, runner: float = 0.0, pooler: float = 0.0, **share: float) -> Any:
    account = {"share": share, "busiest": {"pooler": pooler}, "runner": runner}
    return row(30.0, disturbed=disturbed, cpu_account=account)


def test_what_others_had_of_the_host_may_have_been_idle() -> None:
    rows = [host(idle=0.02, other=0.3, steal=0.1, runner=0.05), host(idle=0.3, other=0.0, steal=0.0)]
    (found,) = least_idle(rows, 0.1)
    assert (found.low, found.high) == (0.02, pytest.approx(0.3))
    assert found.reached == 0.1
    assert not accounts_for(least_idle([host(idle=0.02, other=0.05, runner=0.05)], 0.1))
    assert [*least_idle([row(30.0, cpu_account=None)], 0.1)] == []


def test_all_of_the_steal_is_the_machines() -> None:
    assert accounts_for(most_steal([host(steal=0.0), host(steal=0.03)], 0.02))
    assert not accounts_for(most_steal([host(steal=0.01)], 0.02))


@pytest.mark.parametrize(
    ("disturbed", "reached"), [(0.0, False), (0.05, False), (0.2, True), (1.0, True), (None, False)]
)
def test_shorter_operations_would_have_kept_the_pooler_busier(disturbed: float | None, reached: bool) -> None:
    assert accounts_for(busiest_pooler([host(disturbed, pooler=0.8)], 0.9)) is reached


def test_only_another_answer_that_the_machine_cannot_have_changed_is_unexplained() -> None:
    quiet = [Judgement(name, CONFIRMED, "") for name in "abc"]
    found = [quiet[0], Judgement("b", QUALIFIED, ""), Judgement("c", QUALIFIED, "")]
    figures = [[], [Figure("x", 1.0, 1.2, (1.08,), 0.1)], [Figure("x", 1.1, 1.2, (1.08,), 0.1)]]
    assert unexplained(found, quiet, figures) == ["c: qualified, quiet confirmed"]
    assert beside_quiet(found, quiet, figures).splitlines()[2:] == [
        "| a | confirmed | confirmed | the same |",
        "| b | confirmed | qualified | by the machine: without its part, x may be 1 to 1.2, the limit is 1.08 |",
        "| c | confirmed | qualified | **no** |",
    ]
