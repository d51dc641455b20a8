"""Rows of tables as HTML."""

from pgperf.reports.table import Cell, Table
from pgperf.templatetags.pgperf_tables import rows


def body(*cells: Cell) -> str:
    return rows(Table("", (), [cells]))


def test_the_first_cell_heads_its_row_and_numbers_bring_their_value() -> None:
    assert body(
        Cell("libpq", numeric=False), Cell("1,234", 1234.5), Cell("yes", mark="differs", numeric=False)
    ) == (
        '<tr><th scope="row">libpq</th><td class="num" data-value="1234.5">1,234</td><td class="differs">yes</td></tr>'
    )


def test_what_is_unknown_has_no_value() -> None:
    assert body(Cell(""), Cell("unknown", None, "unknown")).endswith(
        '<td class="num unknown">unknown</td></tr>'
    )


def test_no_text_becomes_markup() -> None:
    text = '<script>alert("1")</script>'
    made = body(Cell(text), Cell(text, mark='"><b'))
    assert "<script" not in made
    assert "<b" not in made
    assert made.count("&lt;script&gt;") == 2
