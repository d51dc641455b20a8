"""What a chart shows, in words."""

from typing import Any

import pytest

from pgperf.reports.chart_findings import finding

ROWS = [["libpq", "tcp"], ["ORM", "tcp"]]


def series(*values: list[float | None]) -> list[dict[str, Any]]:
    return [{"name": name, "values": each} for name, each in zip(("client", "server"), values, strict=False)]


CHARTS: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "stack", "axis": "µs", "rows": ROWS, "series": series([10.0, 30.0], [20.0, 5.0])},
        "The longest bar is ORM · tcp. Its largest part is client: 30.0 of 35.0 (µs).",
    ),
    (
        {"kind": "stack", "axis": "µs", "rows": ROWS[:1], "series": series([10.0], [None])},
        "libpq · tcp: the largest part is client, 10.0 of 10.0 (µs).",
    ),
    (
        {"kind": "stack", "axis": "ms", "rows": ROWS, "series": series([19.0, 9.0], [-11.3, None])},
        "The longest bar is libpq · tcp. Its largest part is client: 19.0, of which other parts save 11.3 (ms).",
    ),
    (
        {"kind": "stack", "axis": "ms", "rows": ROWS[:1], "series": series([19.0], [-11.3])},
        "libpq · tcp: the largest part is client, 19.0, of which other parts save 11.3 (ms).",
    ),
    (
        {"kind": "ladder", "axis": "ms", "rows": ROWS, "values": [19.0, 7.7], "stands_on": [-1, 0]},
        "No step adds time: ORM · tcp saves 11.3 and reaches 7.70 (ms).",
    ),
    (
        {"kind": "stack", "axis": "%", "rows": ROWS, "series": series([70.0, 20.0], [30.0, 80.0])},
        "The largest part is server of ORM · tcp: 80.0 (%).",
    ),
    (
        {"kind": "bars", "axis": "µs", "rows": ROWS, "values": [1.001, 1.002]},
        "All are 1.00: µs.",
    ),
    (
        {"kind": "groups", "axis": "ratio", "rows": ROWS, "line": 1, "series": series([1.0, 1.0], [0.5, 2.0])},
        "From 0.50 (libpq · tcp) to 2.00 (ORM · tcp): server, ratio.",
    ),
    (
        {"kind": "bars", "axis": "µs", "rows": ROWS, "values": [4.0, 2.0]},
        "From 2.00 (ORM · tcp) to 4.00 (libpq · tcp): µs.",
    ),
    ({"kind": "bars", "axis": "µs", "rows": ROWS, "values": [None, 2.0]}, "ORM · tcp: 2.00 (µs)."),
    (
        {"kind": "groups", "axis": "ratio", "rows": ROWS, "series": series([1.0, 2.0])},
        "From 1.00 (libpq · tcp) to 2.00 (ORM · tcp): client, ratio.",
    ),
    (
        {"kind": "dots", "axis": "µs", "rows": ROWS, "series": series([1.0, 2.0], [9.0, 8.0])},
        "From 1.00 (libpq · tcp) to 2.00 (ORM · tcp): client, µs. "
        "From 8.00 (ORM · tcp) to 9.00 (libpq · tcp): server, µs.",
    ),
    (
        {"kind": "ladder", "axis": "µs", "rows": ROWS, "values": [10.0, 25.0], "stands_on": [-1, 0]},
        "The largest step is ORM · tcp: it adds 15.0 and reaches 25.0 (µs).",
    ),
    (
        {"kind": "forest", "axis": "ratio", "rows": ROWS, "line": 1, "values": [1.01, 1.5],
         "whiskers": [[0.9, 1.1], [1.4, 1.6]]},
        "1 of 2 intervals lies entirely above or below the line of no change. The farthest is ORM · tcp: ×1.500.",
    ),
    (
        {"kind": "forest", "axis": "ratio", "rows": ROWS, "line": 1, "values": [1.01, 1.5],
         "whiskers": [None, [1.4, 1.6]]},
        "1 of 1 intervals lies entirely above or below the line of no change. The farthest is ORM · tcp: ×1.500.",
    ),
    (
        {"kind": "forest", "axis": "ratio", "rows": ROWS, "line": 1, "values": [1.2, 1.5],
         "whiskers": [[1.1, 1.3], [1.4, 1.6]]},
        "2 of 2 intervals lie entirely above or below the line of no change. The farthest is ORM · tcp: ×1.500.",
    ),
    (
        {"kind": "forest", "axis": "ratio", "rows": ROWS, "line": 1, "values": [1.01, 1.5], "whiskers": [None, None]},
        "The farthest is ORM · tcp: ×1.500.",
    ),
    (
        {"kind": "forest", "axis": "µs", "unit": "µs", "decimals": 2, "rows": ROWS, "line": 0, "values": [0.4, -12.0],
         "whiskers": [[-0.1, 0.9], [-14.0, -10.0]]},
        "1 of 2 intervals lies entirely above or below the line of no change. The farthest is ORM · tcp: −12.0 µs.",
    ),
    (
        {"kind": "lines", "axis": "ops", "x_axis": "clients", "x": [1, 8], "series": series([5.0, 9.0], [1.0, None])},
        "The highest point is client at 8 clients: 9.00 (ops).",
    ),
    (
        {"kind": "area", "axis": "%", "x_axis": "seconds", "x": [0.0, 1.0],
         "series": series([10.0, 30.0], [50.0, None])},
        "On average: server 50.0, client 20.0 (%).",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("chart", "said"), CHARTS)
def test_the_finding_names_the_extremes(chart: dict[str, Any], said: str) -> None:
    assert finding(chart) == said


@pytest.mark.parametrize(("chart", "_said"), CHARTS)
def test_a_chart_of_unknown_figures_has_none(chart: dict[str, Any], _said: str) -> None:
    empty = {**chart, "values": [None] * len(chart.get("values", [])), "whiskers": []}
    empty["series"] = [{**each, "values": [None] * len(each["values"])} for each in chart.get("series", [])]
    if chart["kind"] != "ladder":  # its figures are always known
        assert finding(empty) == ""


def test_an_unknown_kind_has_none() -> None:
    assert finding({"kind": "pie", "rows": []}) == ""
