"""The version matrix passes over no test in silence."""

from pathlib import Path

import pytest

from tests import matrix
from tests.conftest import LONGEST


def test_each_test_runs_in_each_pair_or_is_named() -> None:
    tests = {str(path.relative_to(matrix.ROOT)) for path in (matrix.ROOT / "tests").rglob("test_*.py")}
    named = [_within(each, tests) for each in (*matrix.PYTHON, *matrix.LEFT_OUT)]
    assert sum(map(len, named)) == len(set().union(*named))
    assert set(matrix.django_tests()) == tests - set().union(*named) | set(matrix.STANDING_FOR)


def _within(folder: str, tests: set[str]) -> set[str]:
    return {test for test in tests if Path(test).is_relative_to(folder)}


@pytest.mark.parametrize(
    "named",
    [
        *matrix.PYTHON,
        *matrix.LEFT_OUT,
        *matrix.STANDING_FOR,
        *(f"tests/{name}" for name in LONGEST),
    ],
)
def test_what_is_named_exists(named: str) -> None:
    assert (matrix.ROOT / named).exists()


def test_each_python_runs_what_imports_no_django() -> None:
    """Once, with its first Django; the clients of Django run in every pair."""
    first, later = (matrix.selections(matrix.Cell("3.12", django)) for django in ("5.2", "6.0"))
    assert set(matrix.PYTHON) <= {word for words in first for word in words}
    assert list(matrix.DJANGO_CLIENTS) in later


def test_a_pair_that_passed_is_not_run_again_until_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []

    def perform(cell: matrix.Cell, words: list[str]) -> None:
        run.append(cell.name)
        cell.outcome = "failed: 1 failed" if cell.name == "3.12/6.0" else "passed: 9 passed"

    monkeypatch.setattr(matrix, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(matrix, "perform", perform)
    pairs = [matrix.Cell("3.11", "5.2"), matrix.Cell("3.12", "6.0")]
    for cell in pairs:
        matrix.performed(cell, [], "tree 1")
    assert matrix.passed_before(matrix.Cell("3.11", "5.2"), "tree 1") == pairs[0]
    assert matrix.passed_before(matrix.Cell("3.11", "5.2"), "tree 2") is None
    assert matrix.passed_before(matrix.Cell("3.12", "6.0"), "tree 1") is None
    matrix.performed(matrix.Cell("3.12", "6.1"), [], "")
    assert matrix.passed_before(matrix.Cell("3.12", "6.1"), "") is None
    assert run == ["3.11/5.2", "3.12/6.0", "3.12/6.1"]
