"""Sizes as PostgreSQL prints them, and as users type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import InvalidDefinition
from pgperf.tuning import sizes


@given(st.integers(0, 1 << 40))
def test_a_shown_size_is_read_back(kb: int) -> None:
    assert sizes.kb(sizes.shown(kb)) == kb


@given(st.integers(1, 1 << 40))
def test_a_size_is_shown_in_the_largest_unit_that_divides_it(kb: int) -> None:
    number = int(sizes.shown(kb)[:-2])
    assert number % 1024 or sizes.shown(kb).endswith("TB")


@pytest.mark.parametrize(
    ("kb", "text"), [(0, "0kB"), (4608, "4608kB"), (1024, "1MB"), (245760, "240MB"), (1 << 30, "1TB")]
)
def test_examples(kb: int, text: str) -> None:
    assert sizes.shown(kb) == text


@pytest.mark.parametrize("text", ["", "-1", "1", "1.5GB", "1 GB", "1gb", "off", "9" * 30 + "kB", "१GB"])
def test_other_text_is_no_size(text: str) -> None:
    assert sizes.kb(text) is None


@pytest.mark.parametrize(
    ("text", "kb"), [("16GB", 16 << 20), ("16 gb", 16 << 20), (" 1.5Gb ", 3 << 19), ("512MB", 512 << 10)]
)
def test_sizes_that_users_type(text: str, kb: int) -> None:
    assert sizes.typed_kb(text) == kb


@given(st.text(max_size=30).filter(lambda text: not text.strip()[:1].isdigit()))
def test_any_other_text_is_refused_by_the_name_of_the_field(text: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"(?s)^memory: .* is no size; .*16GB$"):
        sizes.typed_kb(text)


@pytest.mark.parametrize(
    "text", ["", "16", "16G", "GB", "-1GB", "1e3GB", "16GB; DROP", "१GB", "1" * 50 + "GB"]
)
def test_typed_text_that_is_no_size(text: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"^memory: .* is no size"):
        sizes.typed_kb(text)
