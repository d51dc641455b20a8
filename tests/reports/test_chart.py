"""Charts of times: one unit, chosen by the longest."""

from pgperf.reports import chart_findings, svg_chart
from pgperf.reports.chart import Chart, of_times, whisker


def bars(*times_us: float | None) -> Chart:
    return {
        "kind": "bars",
        "label": "50 % of times",
        "axis": "%s per operation",
        "rows": [[f"row {at}"] for at in range(len(times_us))],
        "values": list(times_us),
        "colours": ["p50"] * len(times_us),
        "whiskers": [None if us is None else [us / 2, us * 2] for us in times_us],
        "ends": list(times_us),
    }


def test_short_times_stay_in_microseconds() -> None:
    chart = of_times(bars(3.2, 9_000.0))
    assert (chart["axis"], chart["unit"]) == ("µs per operation", "µs")
    assert chart["values"] == [3.2, 9_000.0]
    assert chart["ends"] == ["3.20 µs", "9,000 µs"]


def test_all_times_of_a_chart_have_the_unit_of_the_longest() -> None:
    chart = of_times({**bars(215.0, 170_000.0, None), "max": 340_000.0})
    assert (chart["axis"], chart["label"]) == ("ms per operation", "50 % of times")
    assert chart["values"] == [0.215, 170.0, None]
    assert chart["whiskers"] == [[0.1075, 0.43], [85.0, 340.0], None]
    assert (chart["max"], chart["ends"]) == (340.0, ["0.215 ms", "170 ms", "unknown"])
    assert chart_findings.finding(chart) == "From 0.215 (row 0) to 170 (row 1): ms per operation."
    assert "ms per operation" in svg_chart.svg(chart, "times")


def test_series_limits_and_intervals_are_scaled_and_shapes_are_not() -> None:
    series = {"name": "p99", "shape": 2, "values": [11_000_000.0], "intervals": [[1e6, None]]}
    chart = of_times({"kind": "knee", "axis": "%s, logarithmic", "series": [series], "limit": 500_000.0})
    assert chart["axis"] == "s, logarithmic"
    assert chart["series"] == [{"name": "p99", "shape": 2, "values": [11.0], "intervals": [[1.0, None]]}]
    assert chart["limit"] == 0.5


def test_an_interval_is_drawn_only_with_both_ends() -> None:
    assert whisker(0.0, 1.0) == [0.0, 1.0]
    assert whisker(None, 1.0) is None
    assert whisker(0.0, None) is None
