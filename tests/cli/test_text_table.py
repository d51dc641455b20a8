"""Tables of the terminal."""

from pgperf.cli import text_table
from pgperf.reports.table import Cell, Column, Note, Table, text_column

COLUMNS = text_column("name"), Column("time", "µs"), text_column("outcome")


def test_columns_are_aligned_words_to_the_left_numbers_to_the_right() -> None:
    rows = [(Cell("a"), Cell("1.0"), Cell("differs")), (Cell("longer"), Cell("10,000.0"), Cell("equal"))]
    assert text_table.text(Table("Times", COLUMNS, rows)).split("\n") == [
        "Times",
        "name    time, µs  outcome",
        "a            1.0  differs",
        "longer  10,000.0  equal",
    ]


def test_a_table_without_rows_is_not_shown() -> None:
    assert text_table.text(Table("Times", COLUMNS, [])) == ""
    assert text_table.report(["one", Table("Times", COLUMNS, []), "", "two"]) == "one\n\ntwo"


def test_names() -> None:
    assert (text_table.names([]), text_table.names([1, "b"])) == ("none", "1, b")


def test_long_words_are_wrapped_and_notes_stand_below() -> None:
    long = Cell("word " * 30, notes=(Note("outcome", run=7), Note("caution")))
    lines = text_table.text(Table("", COLUMNS, [(Cell("a"), Cell("1.0"), long)])).split("\n")[2:]
    assert lines[0].startswith("a          1.0  word word")
    assert [line.strip() for line in lines[-2:]] == ["Run 7: outcome", "caution"]
    assert len({line.index(line.split("  ")[-1]) for line in lines}) == 1
    assert max(map(len, lines)) < 100


def test_no_break_spaces_are_spaces() -> None:
    said = "run 41, Nov.\u00a020,\u00a02026"
    table = Table("Times", (text_column("name"),), [(Cell(said),)])
    assert text_table.report([said, table]).split("\n")[::4] == ["run 41, Nov. 20, 2026"] * 2
