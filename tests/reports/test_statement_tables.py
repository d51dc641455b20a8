"""The table of an operation's statements: grouped by text, with times where they were measured."""

from typing import Any

import pytest

from pgperf.core.records import StatementTime, StatementTimes
from pgperf.reports import environment as environment_module
from pgperf.reports import statement_tables
from pgperf.reports.table import Table


def capture(*each: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {
        "statements": len(each),
        "rows": sum(rows for _, rows in each),
        "each": [{"sql": text, "rows": rows} for text, rows in each],
        **more,
    }


def times(layer: str, *each: StatementTime) -> dict[str, Any]:
    return StatementTimes("loop", layer, "simple", "tcp", each).to_json()


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_statements_without_times_are_grouped_by_their_text() -> None:
    captured = {"loop": capture(("SELECT ?", 1), ("x", 2), ("x", 3), ("x", 4), ("y", 0), ("x", 1))}
    (table,) = statement_tables.tables({"captures": captured})
    assert table.caption == "One operation of loop: 6 statements, 11 rows"
    assert texts(table) == [["1", "SELECT ?", "1", "1"], ["2–4, 6", "x", "4", "10"], ["5", "y", "1", "0"]]
    (note,) = statement_tables.notes({"captures": captured})
    assert "one statement is sent 4 times in one operation (2–4, 6)" in note


def test_a_run_without_captures_has_no_table() -> None:
    assert statement_tables.tables({}) == []
    assert statement_tables.notes({}) == []


def test_values_that_change_are_a_note() -> None:
    (note,) = statement_tables.notes({"captures": {"page": capture(("SELECT ?", 1), note="values change")}})
    assert note == "page: values change"


def test_times_are_those_of_all_calls_and_shares_those_of_the_last_layer() -> None:
    environment = {
        "captures": {
            "loop": capture(("a", 1), ("b", 2), ("b", 2), plans={"b": ["Index Scan", "  Filter: ?"]})
        },
        "statement_times": [
            times("django_cursor", StatementTime((1,), 100.0, 30.0), StatementTime((2, 3), 150.0, 40.0)),
            times("libpq", StatementTime((1,), 50.0, 20.0), StatementTime((2, 3), 60.0, None)),
        ],
    }
    (table,) = statement_tables.tables(environment)
    assert [column.head for column in table.columns] == [
        "Statement", "Text, values masked", "Calls", "Rows", "CPU of the server, µs", "libpq (C), µs",
        "Django cursor, µs", "Share",
    ]  # fmt: skip
    assert texts(table) == [
        ["1", "a", "1", "1", "20.0", "50.0", "100", "25.0 %"],
        ["2–3", "b", "2", "4", "unknown", "120", "300", "75.0 %"],
    ]
    assert table.rows[1][1].lines == ["b", "Index Scan", "  Filter: ?"]
    shown = environment_module.environment_tables({**environment, "python": "3"})
    assert [table.caption for table in shown] == ["General"]


def test_the_chart_has_the_times_of_the_uppermost_layer() -> None:
    environment = {
        "captures": {"loop": capture(("SELECT a.column_1, a.column_2", 1), ("b", 2), ("b", 2))},
        "statement_times": [
            times("django_cursor", StatementTime((1,), 100.0, 30.0)),
            times("libpq", StatementTime((1,), 50.0, 20.0), StatementTime((2, 3), 60.0, None)),
        ],
    }
    ((title, chart),) = statement_tables.charts(environment)
    assert title == "Statements of loop through Django cursor over tcp, mode simple"
    assert chart["rows"] == [["1", "SELECT a.column_1, a.col…"], ["2–3", "b"]]
    assert chart["values"] == [100.0, None]
    assert statement_tables.charts({"captures": environment["captures"]}) == []


def test_a_statement_that_was_not_measured_leaves_the_shares_unknown() -> None:
    environment = {
        "captures": {"loop": capture(("a", 1), ("b", 2))},
        "statement_times": [times("libpq", StatementTime((1,), 50.0, 20.0))],
    }
    (table,) = statement_tables.tables(environment)
    assert texts(table) == [
        ["1", "a", "1", "1", "20.0", "50.0", "unknown"],
        ["2", "b", "1", "2", "unknown", "unknown", "unknown"],
    ]


@pytest.mark.parametrize("layer", ["libpq", "of another version"])
def test_records_come_back_from_json(layer: str) -> None:
    found = StatementTimes("loop", layer, "simple", "tcp", (StatementTime((1, 2), 1.5, None),))
    stored = found.to_json()
    assert StatementTimes.from_json({**stored, "each": [{**stored["each"][0], "numbers": [1, 2]}]}) == found


def test_the_parts_of_a_page_are_shown_with_the_cost_of_the_instruments() -> None:
    parts = {"rest": 300.0, "template": 100.0, "statements": 600.0}  # a database may reorder keys
    stored = {
        "workload": "page",
        "route": "tcp",
        "mode": "simple",
        "parts_us": parts,
        "plain_us": 900.0,
    }
    (table,) = statement_tables.part_tables({"page_parts": [stored]})
    ((_title, chart),) = statement_tables.charts({"page_parts": [stored]})
    assert {each["name"]: each["values"] for each in chart["series"]}["template"] == [100.0]
    assert chart["ends"] == ["1,000 µs"]
    assert "1,000 µs with instruments, 900 µs without" in table.caption
    assert [row[1:] for row in texts(table)] == [["600", "60.0 %"], ["100", "10.0 %"], ["300", "30.0 %"]]
