"""Figures and tables of the terminal."""

import pytest

from pgperf.cli import text_table


def test_columns_are_aligned() -> None:
    lines = text_table.table(("name", "µs"), [("a", "1.0"), ("longer", "100.0")]).split("\n")
    assert lines == ["name       µs", "a         1.0", "longer  100.0"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "?"),
        (0.0, "0.00"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (123.4, "123.4"),
        (1234.5, "1,234"),
        (-2.5, "-2.50"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert text_table.number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, "?"), (2.5, "+2.50"), (-2.5, "-2.50"), (0.0, "0.00")])
def test_signed(value: float | None, shown: str) -> None:
    assert text_table.signed(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, "?"), (1.0, "1.000"), (12.345, "12.35")])
def test_times(value: float | None, shown: str) -> None:
    assert text_table.times(value) == shown


def test_interval() -> None:
    assert text_table.interval("1", "2") == "[1, 2]"
    assert text_table.interval("?", "2") == "?"
