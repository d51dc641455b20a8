"""Text in a worksheet is restored exactly."""

from hypothesis import example, given
from hypothesis import strategies as st

from pgperf.transfer.spreadsheet import from_xml, to_xml

TRICKY = st.text(alphabet=st.sampled_from("'=+-@\t\r\n x_0aFD5\x0b\x00e"), max_size=30)


@given(st.text() | TRICKY)
@example("_x000D_")
@example("_xAAAA\x0b")
@example("x005F_")
def test_escaped_text_is_restored(text: str) -> None:
    written = to_xml(text)
    assert from_xml(written) == text
    assert not any(char < " " and char not in "\t\n" for char in written)
    assert "x005F_" not in written  # which its reader drops
