"""Text of others for a terminal: no character that it obeys, and none that no one sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import printable


@given(st.text())
def test_a_terminal_has_nothing_to_obey(text: str) -> None:
    assert all(line.isprintable() for line in printable.lines(text).replace("\t", "").split("\n"))
    assert printable.one_line(text).isprintable()


@given(st.text().filter(str.isprintable))
def test_printable_text_stays(text: str) -> None:
    assert printable.lines(text) == text


@pytest.mark.parametrize(
    ("text", "lines", "one_line"),
    [
        ("ERROR: no\nLINE 1: x", "ERROR: no\nLINE 1: x", "ERROR: no LINE 1: x"),
        ("a\x1b[2J\r\nb", "a\ufffd[2J\ufffd\nb", "a\ufffd[2J b"),
        ("Größe  'x'\t\u202e", "Größe  'x'\t\ufffd", "Größe 'x' \ufffd"),
    ],
)
def test_lines_stay_or_become_one(text: str, lines: str, one_line: str) -> None:
    assert (printable.lines(text), printable.one_line(text)) == (lines, one_line)
