"""Rows of tables as HTML."""

from django.template import Context

from pgperf.reports.table import Cell, Column, Note, Offer, Table, text_column
from pgperf.templatetags.pgperf_tables import rows


def body(*cells: tuple[Cell, Column]) -> str:
    return rows(
        Context(),
        Table("", tuple(column for _cell, column in cells), [tuple(cell for cell, _column in cells)]),
    )


WORDS, NUMBERS = text_column("words"), Column("numbers")


def test_first_cell_heads_its_row_and_numbers_have_their_value() -> None:
    cells = (
        (Cell("libpq"), WORDS),
        (Cell("1,234", (1234.5,)), NUMBERS),
        (Cell("yes", ("yes",), "differs"), WORDS),
    )
    assert body(*cells) == (
        '<tr><th scope="row">libpq</th><td data-value="1234.5">1,234</td><td class="words differs">yes</td></tr>'
    )


def test_unknown_number_has_no_value() -> None:
    unknown = Cell("unknown", (None,), "unknown")
    assert body((Cell(""), WORDS), (unknown, NUMBERS)).endswith('<td class="unknown">unknown</td></tr>')


def test_interval_has_no_single_value() -> None:
    ends = Cell("1.00 … 2.00", (1.0, 2.0))
    assert body((Cell(""), WORDS), (ends, NUMBERS)).endswith("<td>1.00 … 2.00</td></tr>")


def test_text_never_becomes_markup() -> None:
    text = '<script>alert("1")</script>'
    made = body((Cell(text), WORDS), (Cell(text, mark='"><b'), WORDS))
    assert "<script" not in made
    assert "<b" not in made
    assert made.count("&lt;script&gt;") == 2


def test_notes_and_offers_stand_below_the_text_and_are_escaped() -> None:
    cell = Cell("client CPU", notes=(Note("<b>", "caution"),), offer=Offer("a · b", "A · b", "one client"))
    made = body((Cell(""), WORDS), (cell, WORDS))
    assert 'client CPU<span class="caution">&lt;b&gt;</span>' in made
    assert "<form" not in made  # the context of this test allows no start


def test_words_are_not_broken_between_a_number_and_its_unit() -> None:
    made = body((Cell(""), WORDS), (Cell("at most 40 %", notes=(Note("took 5 µs"),)), WORDS))
    assert "at most 40\u00a0%<span" in made
    assert "took 5\u00a0µs" in made
