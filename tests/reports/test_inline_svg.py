"""The geometry of small drawings."""

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from pgperf.reports import inline_svg
from pgperf.reports.inline_svg import HEIGHT, WIDTH, Sparkline, bar, sparkline

TIMES = st.floats(min_value=1e-3, max_value=1e9)


def points(line: Sparkline) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.points.split())]


def drawn(values: list[float], changes: tuple[int, ...] = ()) -> Sparkline:
    line = sparkline(values, changes)
    assert line is not None
    return line


@pytest.mark.parametrize("values", [[], [7.0]])
def test_one_value_is_no_line(values: list[float]) -> None:
    assert sparkline(values) is None


@given(st.lists(TIMES, min_size=2, max_size=60))
def test_every_point_is_inside_from_left_to_right(values: list[float]) -> None:
    line = drawn(values)
    found = points(line)
    assert len(found) == len(values)
    assert [x for x, _y in found] == sorted({x for x, _y in found})
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in found)
    assert (float(line.last[0]), float(line.last[1])) == found[-1]


@given(st.lists(TIMES, min_size=2, max_size=60))
def test_a_greater_value_is_never_lower(values: list[float]) -> None:
    by_value = sorted(zip(values, (y for _x, y in points(drawn(values))), strict=True))
    heights = [y for _value, y in by_value]
    assert heights == sorted(heights, reverse=True)


def test_noise_stays_flat_and_a_step_is_seen() -> None:
    noise = [y for _x, y in points(drawn([100, 101, 99, 100, 101]))]
    step = [y for _x, y in points(drawn([100, 100, 100, 150, 150]))]
    assert max(noise) - min(noise) < HEIGHT / 8
    assert max(step) - min(step) > HEIGHT / 2


def test_a_change_is_marked_between_its_runs() -> None:
    line = drawn([1, 1, 2, 2], changes=(2,))
    xs = [x for x, _y in points(line)]
    assert xs[1] < float(line.changes[0]) < xs[2]


@given(st.lists(st.floats(min_value=1e-6, max_value=1), min_size=1, max_size=9))
def test_the_segments_of_a_bar_fill_it_without_gaps(parts: list[float]) -> None:
    shares = [part / sum(parts) for part in parts]
    found = bar(shares)
    ends = [float(each.x) + float(each.width) for each in found]
    assert all(abs(end - float(after.x)) < 0.02 for end, after in zip(ends, found[1:], strict=False))
    assert abs(ends[-1] - 100) < 0.1


def test_numbers_are_not_localized() -> None:
    line = inline_svg.sparkline([1.0, 1.25, 1.4, 1.5])
    with translation.override("de"):
        assert bar([0.125])[0].width == "12.5"
        assert inline_svg.sparkline([1.0, 1.25, 1.4, 1.5]) == line
    assert line
    assert "." in str(line)
