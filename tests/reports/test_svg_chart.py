"""Charts that the server draws: every kind, with any figures and any texts, stays in its drawing."""

import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from pgperf.reports.chart import Chart
from pgperf.reports.svg_chart import legend, scale, svg
from pgperf.reports.svg_chart.rows import KINDS
from pgperf.reports.svg_chart.text_width import fitted, lines, width

VALUE = st.floats(min_value=1e-3, max_value=1e7)
MAYBE = st.none() | VALUE
TEXT = st.text(max_size=80)
COLOUR = st.sampled_from([{"light": "#112233", "dark": "#ddeeff"}, "cpu-server", "wait-x);}</style><b a='"])
STYLE = re.compile(r"(--light:#[0-9a-f]{6};--dark:#[0-9a-f]{6}|--tint:var\([\w,()-]+\))?")
SERIES_OF_ROWS = ("stack", "groups", "dots")


class Shapes(HTMLParser):
    """The elements of a drawing with their attributes."""

    def __init__(self, drawing: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(drawing)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    kind = draw(st.sampled_from(["stack", "groups", "dots", "bars", "forest", "ladder", "lines", "area"]))
    count = draw(st.integers(1, 6))
    common = {"kind": kind, "label": draw(TEXT), "axis": draw(TEXT)}
    column = st.lists(MAYBE, min_size=count, max_size=count)
    ends = st.lists(st.none() | st.tuples(VALUE, VALUE).map(sorted), min_size=count, max_size=count)
    if kind in ("lines", "area"):
        xs = sorted(draw(st.sets(st.integers(1, 64), min_size=count, max_size=count)))
        return common | {
            "x": xs, "x_axis": draw(TEXT), "x_log": draw(st.booleans()), "log": kind == "lines" and draw(st.booleans()),
            "series": [
                {"name": draw(TEXT), "colour": draw(COLOUR), "shape": draw(st.integers(0, 5)),
                 "values": draw(column), "intervals": draw(ends)}
                for _ in range(draw(st.integers(1, 3)))
            ],
        }  # fmt: skip
    common |= {"rows": [draw(st.lists(TEXT, min_size=1, max_size=2)) for _ in range(count)]}
    if kind in SERIES_OF_ROWS:
        several = [
            {"name": draw(TEXT), "colour": draw(COLOUR), "values": draw(column), "tint": at}
            for at in range(draw(st.integers(1, 4)))
        ]
        return common | {"series": several, "line": 1 if kind == "groups" else None}
    values = draw(st.lists(MAYBE if kind == "bars" else VALUE, min_size=count, max_size=count))
    has_line = kind == "forest" or (kind == "bars" and draw(st.booleans()))
    return common | {
        "values": values, "whiskers": draw(ends), "colours": [draw(COLOUR) for _ in values],
        "ends": [draw(TEXT) for _ in values], "line": 1 if has_line else None,
        "stands_on": [at - 1 for at in range(count)], "max": max(filter(None, values), default=0.0),
    }  # fmt: skip


@given(charts())
def test_every_mark_is_inside_the_drawing(chart: Chart) -> None:
    shapes = Shapes(svg(chart, "what it shows")).found
    (tag, outer), *inside = shapes
    assert (tag, outer["role"], outer["aria-label"]) == ("svg", "img", "what it shows")
    _x, _y, right, bottom = map(float, outer["viewbox"].split())
    for tag, found in inside:
        places = _places(tag, found)
        assert all(map(math.isfinite, (part for place in places for part in place))), (tag, found)
        assert all(-8 <= x <= right + 8 and -8 <= y <= bottom + 8 for x, y in places), (tag, found)


@given(charts())
def test_texts_become_neither_elements_nor_styles(chart: Chart) -> None:
    for tag, found in Shapes(svg(chart, "label")).found:
        assert tag in {"svg", "g", "rect", "path", "text", "title", "polygon", "polyline", "circle"}
        assert not {name for name in found if name.startswith("on") or name in ("href", "a")}
        assert STYLE.fullmatch(found.get("style", ""))


def _places(tag: str, found: dict[str, str]) -> list[tuple[float, float]]:
    if tag in ("polygon", "polyline"):
        pairs = (pair.split(",") for pair in found["points"].split())
        return [(float(x), float(y)) for x, y in pairs]
    if tag == "path":
        return [(float(x), float(y)) for x, y in re.findall(r"[ML](\S+) ([^ML]+)", found["d"])]
    if tag == "circle":
        return [(float(found["cx"]), float(found["cy"]))]
    if tag == "rect":
        x, y, w, h = (float(found[name]) for name in ("x", "y", "width", "height"))
        return [(x, y), (x + w, y + h)]
    return [(float(found["x"]), float(found["y"]))] if tag == "text" else []


def rectangles(chart: Chart) -> list[dict[str, str]]:
    return [found for tag, found in Shapes(svg(chart, "")).found if tag == "rect"]


BARS: dict[str, Any] = {
    "kind": "bars", "label": "", "axis": "µs", "rows": [["a"], ["b"]], "values": [10.0, 20.0],
    "colours": ["p50", "p50"], "ends": ["10", "20"],
}  # fmt: skip


def test_bars_are_as_long_as_their_values() -> None:
    short, long = (float(each["width"]) for each in rectangles(BARS))
    assert long == pytest.approx(2 * short, abs=0.2)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.0, 1.6, 1.3], ["1", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]),
        ([1.0, 12.0, 6.5], ["1", "2", "4", "6", "8", "10", "12"]),
    ],
    ids=["near 1", "far from 1"],
)
def test_bars_of_ratios_begin_at_the_line_of_no_change(values: list[float], ticks: list[str]) -> None:
    chart = {**BARS, "rows": [["a"], ["b"], ["c"]], "values": values, "line": 1}
    chart |= {"colours": ["p50"] * 3, "ends": ["×1", "×2", "×3"]}
    none, long, half = rectangles(chart)
    assert float(none["width"]) == 0
    assert float(long["width"]) == pytest.approx(2 * float(half["width"]), abs=0.2)
    shapes = Shapes(svg(chart, "")).found
    (mark,) = [found for tag, found in shapes if tag == "path" and found.get("class") == "dashed"]
    assert mark["d"].startswith(f"M{none['x']} ")
    assert re.findall(r">([\d.]+)</text>", svg(chart, ""))[: len(ticks)] == ticks


def test_a_ratio_below_1_leads_from_the_line_to_the_left() -> None:
    chart = {**BARS, "values": [1.0, 0.4], "line": 1, "ends": ["×1", "×0.4"]}
    none, below = rectangles(chart)
    assert float(below["x"]) + float(below["width"]) == pytest.approx(float(none["x"]), abs=0.2)
    assert float(below["width"]) > 100


def test_a_later_line_of_a_colour_is_fainter() -> None:
    line = {"name": "a", "colour": "p50", "shape": 0, "values": [1.0, 2.0]}
    chart = {
        "kind": "lines", "label": "", "axis": "µs", "x": [1, 2], "x_axis": "clients",
        "series": [line | {"tint": 0}, line | {"name": "b", "tint": 1}],
    }  # fmt: skip
    assert svg(chart, "").count('opacity="0.5"') == 1
    assert [each.opacity for each in legend(chart)] == [1, 0.5]


@given(charts().filter(lambda chart: chart["kind"] != "area"))
def test_a_colour_is_said_once_for_all_its_marks_and_once_for_their_figures(chart: Chart) -> None:
    said = [
        (found.get("class") == "inside", found["style"])
        for _tag, found in Shapes(svg(chart, "")).found
        if found.get("style")
    ]
    parts = len(chart["series"]) if "series" in chart else len(set(map(str, chart["colours"])))
    assert sum(not inside for inside, _style in said) <= parts
    assert sum(inside for inside, _style in said) <= parts


def test_an_element_without_content_closes_itself() -> None:
    assert "></rect>" not in svg(BARS, "")
    assert svg(BARS, "").count("/>") >= 2


def test_segments_follow_each_other_and_an_unknown_one_is_left_out() -> None:
    parts = [
        {"name": name, "colour": "p50", "values": [value]}
        for name, value in (("a", 5.0), ("b", None), ("c", 9.0))
    ]
    first, second = rectangles({"kind": "stack", "axis": "µs", "rows": [["x"]], "series": parts})
    assert float(second["x"]) == pytest.approx(float(first["x"]) + float(first["width"]), abs=0.2)


def test_a_ladder_shows_the_rungs_below_faintly() -> None:
    chart = BARS | {"kind": "ladder", "stands_on": [-1, 0], "whiskers": [None, None], "max": 20.0}
    assert [each.get("class") for each in rectangles(chart)] == [None, None, "carried"]


def test_a_rung_that_saves_time_is_hollow_and_takes_off_the_end_of_those_below() -> None:
    """Three rungs end at 10, 6 and 8: the second saves 4 of the first, and the third adds 2 to it."""
    rows = {"values": [10.0, 6.0, 8.0], "rows": [["a"], ["b"], ["c"]], "colours": ["cpu-server"] * 3}
    chart = {
        "kind": "ladder",
        "axis": "µs",
        "stands_on": [-1, 0, 1],
        "whiskers": [None] * 3,
        "max": 10.0,
        **rows,
    }
    found = rectangles(chart)
    unit = float(found[0]["width"]) / 10
    own = [each for each in found if each.get("class") != "carried"]
    assert [each.get("class") for each in own] == [None, "saved", None]
    assert [round(float(each["width"]) / unit) for each in own] == [10, 4, 2]
    faint = [each for each in found if each.get("class") == "carried"]
    assert [round(float(each["width"]) / unit) for each in faint] == [6, 0, 6]


def test_a_whisker_beyond_the_chart_ends_in_an_arrow() -> None:
    chart = BARS | {"kind": "forest", "values": [1.1, 0.9], "line": 1, "whiskers": [[0.8, 9.0], None]}
    assert [tag for tag, _found in Shapes(svg(chart, "")).found].count("polyline") == 1


@pytest.mark.parametrize(
    ("line", "values", "low"), [(1, [4.0, 0.1], 0.0), (1, [4.0, 1.0], 0.7), (0, [3.0, -1.0], -1.3)]
)
def test_an_axis_ends_near_the_values_of_each_side_and_only_differences_are_negative(
    line: int, values: list[float], low: float
) -> None:
    chart = BARS | {"kind": "forest", "values": values, "line": line, "whiskers": [None, None]}
    assert KINDS["forest"].bounds(chart) == pytest.approx((low, line + 3.3))


@pytest.mark.parametrize(("count", "times"), [(10, 1), (11, 2)])
def test_many_rows_have_the_axis_above_them_too(count: int, times: int) -> None:
    chart = BARS | {"rows": [["a"]] * count, "values": [20.0] * count, "colours": ["p50"] * count, "ends": []}
    assert svg(chart, "").count(">15</text>") == times


@pytest.mark.parametrize(("kind", "distance"), [("bars", 0), ("ladder", 15)])
def test_a_whisker_has_a_halo_on_a_bar_or_is_below_it(kind: str, distance: int) -> None:
    chart = BARS | {"kind": kind, "whiskers": [[8.0, 12.0], None], "stands_on": [-1, 0]}
    shapes = Shapes(svg(chart, "")).found
    (drawn,) = [found["d"] for tag, found in shapes if tag == "path" and found.get("class") == "whisker"]
    halos = [found["d"] for _tag, found in shapes if found.get("class") == "halo"]
    assert halos == ([] if distance else [drawn])
    first = rectangles(chart)[0]
    middle = float(first["y"]) + float(first["height"]) / 2
    assert float(drawn.split("L")[0].split()[1]) == pytest.approx(middle + distance, abs=0.2)


def test_an_area_has_a_gap_at_an_unknown_moment() -> None:
    series = {"name": "server", "colour": "cpu-server", "values": [1.0, 2.0, None, 3.0, 4.0]}
    chart = {"kind": "area", "axis": "%", "x_axis": "s", "x": [1, 2, 3, 4, 5], "series": [series], "max": 100}
    assert [tag for tag, _found in Shapes(svg(chart, "")).found].count("polygon") == 2


def test_a_legend_tells_series_apart() -> None:
    several = [{"name": name, "colour": "p50", "values": [1.0], "tint": at} for at, name in enumerate("ab")]
    chart = {"kind": "groups", "axis": "", "rows": [["x"]], "series": several}
    assert [(key.name, key.opacity) for key in legend(chart)] == [("a", 1.0), ("b", 0.5)]
    assert legend({**chart, "series": several[:1]}) == []
    dots = legend({**chart, "kind": "dots"})
    assert [key.shape for key in dots] == ["circle", "rect"]


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e9))
def test_a_linear_scale_has_few_round_ticks(low: float, span: float) -> None:
    made = scale.linear(low, low + span, 0, 100)
    ticks = made.ticks()
    assert made.low <= low + 1e-6 * span
    assert made.high >= low + span * (1 - 1e-6)
    assert 2 <= len(ticks) <= 9
    assert all(-0.01 <= made.at(each) <= 100.01 for each in ticks)


@given(VALUE, VALUE)
def test_a_logarithmic_scale_contains_its_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    made = scale.logarithmic(low, high, 0, 100)
    assert -0.01 <= made.at(low) <= made.at(high) <= 100.01
    assert len(made.ticks()) >= 2


@given(TEXT, st.floats(20, 400))
def test_a_long_text_is_shortened_to_its_room(text: str, room: float) -> None:
    assert width(fitted(text, room)) <= room
    assert fitted("short", 400) == "short"


def test_a_label_breaks_at_its_dots() -> None:
    assert lines("one · two · three", 65) == ["one · two", "three"]


def test_numbers_of_coordinates_are_not_localised() -> None:
    with translation.override("de"):
        assert all("," not in each["width"] for each in rectangles(BARS))
