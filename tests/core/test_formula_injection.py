"""Formulas in cells are escaped, and unescaped exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.formula_injection import FORMULA, harmless, is_risky, printable, unharmed

TRICKY = st.text(alphabet=st.sampled_from("'=+-@\t\r\n x\x0b\x00"), max_size=30)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\t=1", "'=1", "''=1", "a\n =1", "\r", " x\n+y", "\x00=1", "a\n\x0b+y"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    assert is_risky(text.lstrip("'"))
    shown = harmless(text)
    assert not shown.startswith(FORMULA)
    assert shown == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "a=b", "1-1", "it's", "'quoted'", "select '+'", "a@b"])
def test_harmless_text_is_unchanged(text: str) -> None:
    assert harmless(text) == text
    assert unharmed(text) == text


@given(st.text() | TRICKY)
def test_unharmed_reverses_harmless(text: str) -> None:
    assert unharmed(harmless(text)) == text


@given(st.text() | TRICKY)
def test_printable_text_begins_no_formula(text: str) -> None:
    shown = printable(harmless(text))
    assert shown.startswith("'") or not shown.startswith(FORMULA)
