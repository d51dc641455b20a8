"""Numbers as text."""

from datetime import datetime, timedelta

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from pgperf.reports import number_format

START = datetime(2026, 11, 30, 9, 11)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (214.7, "215"),
        (89.44, "89.4"),
        (6.999, "7.00"),
        (0, "0.00"),
        (14513.4, "14,513"),
        (-6.7, "−6.70"),
        (-0.001, "0.00"),
        (None, "unknown"),
    ],
)
def test_numbers_are_rounded_not_cut(value: float | None, text: str) -> None:
    assert number_format.number(value) == text


@given(st.floats(min_value=-1e9, max_value=1e9))
def test_a_number_is_never_off_by_more_than_half_its_last_digit(value: float) -> None:
    text = number_format.number(value).replace(",", "").replace("−", "-")
    assert abs(float(text) - value) <= max(0.5000001 if abs(value) >= 100 else 0.0500001, 0)


def test_the_reader_s_language_decides_on_separators() -> None:
    with translation.override("de"):
        assert number_format.number(1234567.8) == "1.234.568"
        assert number_format.ratio(3.117) == "×3,12"


def test_signs_and_ratios() -> None:
    assert number_format.signed(6.7) == "+6.70"
    assert number_format.signed(-6.7) == "−6.70"
    assert number_format.ratio(1.0049) == "×1.005"
    assert number_format.ratio(12.34) == "×12.3"


@pytest.mark.parametrize(
    ("value", "figures", "text"),
    [
        (6.7, (75.6, 68.9), "+6.7"),
        (-6.7, (68.9, 75.6), "−6.7"),
        (11.2, (226.0, 214.8), "+11"),
        (125.0, (215.0, 90.2), "+125"),
        (0.52, (215.0, 214.5), "+0.5"),
        (0.0, (215.0, 215.0), "0"),
        (1.234, (2.345, 1.111), "+1.23"),
        (None, (2.0, 1.0), "unknown"),
    ],
)
def test_a_difference_has_the_decimals_of_the_figures_that_it_comes_from(
    value: float | None, figures: tuple[float, ...], text: str
) -> None:
    assert number_format.signed(value, figures=figures) == text


def test_differences_of_a_sentence_have_the_unit_and_the_decimals_of_their_figures() -> None:
    told = number_format.differences_in_one_unit({"of": 12_345.0, "near": 12_000.0}, us=345.0)
    assert told == {"of": "12.3", "near": "12.0", "us": "0.3", "unit": "ms"}


def test_the_interval_of_a_difference_has_its_decimals() -> None:
    assert number_format.interval(5.21, 8.02, figures=(75.6, 68.9)) == "5.2 … 8.0"
    assert number_format.interval(0.42, 8.02, figures=(215.0,)) == "0.4 … 8.0", "an end above 0 is above 0"


def test_an_interval_s_ends_have_the_same_decimals() -> None:
    assert number_format.interval(9.87, 102.4) == "10 … 102"
    assert number_format.interval(-0.551, 1.1) == "−0.55 … 1.10"
    assert number_format.ratio_interval(1.985, 2.113) == "1.99 … 2.11"
    assert number_format.interval(None, 2.0) == "none"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.25, "4.2 s"),
        (42.0, "42 s"),
        (83.9, "1 min 24 s"),
        (59.7, "60 s"),
        (120, "2 min"),
        (3599.6, "1 h"),
        (7200, "2 h"),
        (5430, "1 h 30 min"),
        (None, "unknown"),
    ],
)
def test_lengths_of_time(value: float | None, text: str) -> None:
    assert number_format.seconds(value) == text


def test_a_length_of_time_is_unknown_where_a_clock_was_set_back() -> None:
    assert number_format.between(START, START + timedelta(seconds=42)) == "42 s"
    assert number_format.between(START, START - timedelta(days=9)) == "–"
    assert number_format.between(START, None) == number_format.between(None, START) == "–"


@pytest.mark.parametrize(
    ("text", "unbroken"),
    [
        ("696 µs", "696\u00a0µs"),
        ("at most 40 % of 1 min 33 s", "at most 40\u00a0% of 1\u00a0min 33\u00a0s"),
        ("200 … 230 µs, 5 hosts, 3 s.", "200 … 230\u00a0µs, 5 hosts, 3\u00a0s."),
    ],
)
def test_a_page_does_not_break_between_a_number_and_its_unit(text: str, unbroken: str) -> None:
    assert number_format.unbroken(text) == unbroken


def test_the_times_of_a_sentence_have_the_unit_of_the_longest() -> None:
    assert number_format.in_one_unit(us=9_999.0, of=None) == {"us": "9,999", "of": "unknown", "unit": "µs"}
    assert number_format.in_one_unit(us=215.0, of=45_400.0) == {"us": "0.215", "of": "45.4", "unit": "ms"}
    assert number_format.time(3_200_000.0) == "3,200 ms"
    assert number_format.time(None) == "unknown"
    assert number_format.time_interval(9_000.0, 170_000.0) == "9 … 170 ms"
