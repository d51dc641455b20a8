"""Text in cells: harmless out, exact back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgperf.transfer.spreadsheet import FORMULA, from_xml, harmless, is_risky, to_xml, unharmed

TRICKY = st.text(alphabet=st.sampled_from("'=+-@\t\r\n x_0aFD5\x0b\x00e"), max_size=30)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "'=1", "''=1", "a\n =1", "\r", " x\n+y"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert is_risky(text.lstrip("'"))
    shown = harmless(text)
    assert not shown.startswith(FORMULA)
    assert shown == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "a=b", "1-1", "it's", "'quoted'", "select '+'", "a@b"])
def test_the_rest_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text
    assert unharmed(text) == text


@given(st.text() | TRICKY)
def test_back_comes_what_went(text: str) -> None:
    assert unharmed(harmless(text)) == text


@given(st.text() | TRICKY)
@example("_x000D_")
@example("_xAAAA\x0b")
@example("x005F_")
def test_a_worksheet_gives_back_what_it_cannot_hold(text: str) -> None:
    written = to_xml(text)
    assert from_xml(written) == text
    assert not any(char < " " and char not in "\t\n" for char in written)
    assert "x005F_" not in written  # which its reader drops
