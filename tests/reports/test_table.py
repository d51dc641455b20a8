"""Tables: the unit of a time column is chosen by its longest time."""

import pytest

from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    at_least,
    interval,
    interval_column,
    number,
    signed,
    text_column,
    time_column,
    words,
)


def table(*columns: tuple[Column, list[Cell]]) -> Table:
    rows = list(zip(*(cells for _column, cells in columns), strict=True))
    return Table("Times", tuple(column for column, _cells in columns), rows)


def texts(shown: Table, at: int) -> list[str]:
    return [shown.heads[at], *(row[at].text for row in shown.rows)]


@pytest.mark.parametrize(
    ("longest", "expected"),
    [
        (9_999.0, ["time, µs", "3.20", "9,999", "unknown", "–"]),
        (170_000.0, ["time, ms", "0.00320", "170", "unknown", "–"]),
        (20_000_000.0, ["time, s", "0.00000", "20.0", "unknown", "–"]),
    ],
)
def test_a_time_column_has_one_unit_which_its_heading_names(longest: float, expected: list[str]) -> None:
    made = table((time_column("time", "us"), [number(3.2), number(longest), number(None), Cell("–")]))
    assert texts(made.shown(), 0) == expected


def test_a_difference_has_the_decimals_of_its_figures_in_the_unit_of_its_column() -> None:
    made = table(
        (time_column("time"), [number(75_600.0), number(68_900.0)]),
        (time_column("step", follows=True), [signed(6_700.0, 75_600.0, 68_900.0), signed(6_700.0)]),
        (interval_column(), [interval(5_210.0, 8_020.0, 75_600.0), interval(5_210.0, 8_020.0)]),
    ).shown()
    assert texts(made, 1) == ["step, ms", "+6.7", "+6.70"]
    assert texts(made, 2) == ["95 % interval", "5.2 … 8.0", "5.21 … 8.02"]


def test_a_lower_bound_has_the_unit_of_its_column() -> None:
    made = table((time_column("p99"), [at_least(25_000.0), number(3_000.0), at_least(None)]))
    assert texts(made.shown(), 0) == ["p99, ms", "≥ 25.0", "3.00", "unknown"]


def test_columns_choose_their_own_unit_and_those_that_follow_take_it() -> None:
    made = table(
        (text_column("Variant"), [words("libpq"), words("orm")]),
        (time_column("p50"), [number(120.0), number(4_000.0)]),
        (time_column("first"), [number(9_900.0), number(500.0)]),
        (time_column("second", follows=True), [number(10_100.0), number(505.0)]),
        (time_column("change"), [signed(200.0), signed(-5.0)]),
        (interval_column(), [interval(100.0, 12_000.0), interval(None, None)]),
        (Column("rows"), [number(20_000.0), number(1.0)]),
    ).shown()
    assert texts(made, 1) == ["p50, µs", "120", "4,000"]
    assert texts(made, 2) == ["first, ms", "9.90", "0.500"]
    assert texts(made, 3) == ["second, ms", "10.1", "0.505"]
    assert texts(made, 4) == ["change, µs", "+200", "−5.00"]
    assert texts(made, 5) == ["95 % interval", "100 … 12,000", "none"]
    assert texts(made, 6) == ["rows", "20,000", "1.00"]


def test_an_interval_has_the_unit_of_its_column() -> None:
    made = table(
        (time_column("step"), [signed(12_000.0)]), (interval_column(), [interval(9_000.0, 15_500.0)])
    ).shown()
    assert texts(made, 0) == ["step, ms", "+12.0"]
    assert texts(made, 1) == ["95 % interval", "9.00 … 15.50"]


def test_files_keep_microseconds() -> None:
    made = table((time_column("time", "us"), [number(170_000.0)])).shown()
    assert made.rows[0][0].values == (170_000.0,)
