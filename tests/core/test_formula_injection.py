"""Formulas in text are escaped wherever a cell may begin, and unescaped exactly."""

import csv
import sys
import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.formula_injection import SEPARATORS, SIGNS, harmless, printable, unharmed

CHARACTERS = "'=+-@＝－\t\r\n x;,|\"\x0b\x00\u2028\u200b\ufeff\xa0"
TRICKY = st.text(alphabet=st.sampled_from(CHARACTERS), max_size=30)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | TRICKY


def is_dropped(char: str) -> bool:
    """A quote, or a character that shows nothing."""
    return char == '"' or unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp")


def begins_a_formula(cell: str) -> bool:
    shown = next((char for char in cell if not is_dropped(char)), "")
    return unicodedata.normalize("NFKC", shown)[:1] in tuple("=+-@")


def cells(text: str) -> list[str]:
    """Every cell that any choice of separators makes of a text."""
    at = [0, *(place + 1 for place, char in enumerate(text) if char in SEPARATORS)]
    return [text[begin:] for begin in at]


def shown(text: str) -> list[str]:
    """The cells in which a spreadsheet shows a CSV file with this value, for each separator and with
    or without quotes.
    """
    file = StringIO()
    csv.writer(file).writerow(["x", text])
    lines = file.getvalue().splitlines(keepends=True)
    readers = [
        csv.reader(lines, delimiter=separator, quoting=quoting)
        for separator in ",;\t|"
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE)
    ]
    return [cell for reader in readers for row in reader for cell in row]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@x", "\t=1", "'=1", "''=1", "a\n =1", " x\n+y", "\x00=1", "a\n\x0b+y", "x;=1", "x\t=1",
     "x|=1", "x,=1", 'x;"=1', "x; \u200b=1", "\ufeff=1", "＝1", "x;－1", "a\u2028=1", ";;=1", "\t\t=1",
     'x";=HYPERLINK("http://evil.example")', "x\xa0;\xa0@SUM(A1)", "⁼1", "﹢1"],
)  # fmt: skip
def test_no_cell_is_a_formula(text: str) -> None:
    escaped = harmless(text)
    assert escaped != text
    assert not [cell for cell in (*cells(escaped), *shown(escaped)) if begins_a_formula(cell)]
    assert unharmed(escaped) == text


@pytest.mark.parametrize(
    "text", ["", "a", "a=b", "1-1", "it's", "'quoted'", "select '+'", "a@b", "a; b", "x;'y", "a - b"]
)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert harmless(text) == text
    assert unharmed(text) == text


@pytest.mark.parametrize("text", ["\r", "\tx", "\n"])
def test_a_leading_tab_or_line_break_is_escaped(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert unharmed(f"'{text}") == text


@given(TEXTS)
def test_unharmed_reverses_harmless(text: str) -> None:
    assert unharmed(harmless(text)) == text


@given(TEXTS)
def test_no_cell_of_an_escaped_text_is_a_formula(text: str) -> None:
    for escaped in (harmless(text), printable(harmless(text)), harmless(printable(text))):
        assert not [cell for cell in (*cells(escaped), *shown(escaped)) if begins_a_formula(cell)]


def test_every_sign_and_every_invisible_character_is_known() -> None:
    """Also those that a later Unicode adds."""
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(char) == "Cs":
            continue
        if unicodedata.normalize("NFKC", char)[:1] in tuple("=+-@"):
            assert char in SIGNS, ascii(char)
        elif is_dropped(char) and char not in SEPARATORS:
            assert harmless(f"x;{char}=1") == f"x;{char}'=1", ascii(char)


@pytest.mark.parametrize("part", [*SIGNS, *SEPARATORS, "'", '"', " ", "\x00", ";'", "; ", "\t "])
def test_the_work_is_linear(part: str) -> None:
    """500 kB, which a quadratic search would take many minutes for."""
    text = part * (500_000 // len(part))
    assert unharmed(harmless(text)) == text
