"""What was seen in diagnostic slices, made into shares and figures per operation."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import diagnostics as module
from pgperf.analysis.diagnostics import rows_expected
from pgperf.analysis.top import Top, top
from pgperf.core.records import VariantBlock

from .synthetic import block, variant

CLIENT_READ = ["idle", "Client", "ClientRead", 60]
RUNNING = ["active", "", "", 25]
LOCKED = ["active", "Lock", "transactionid", 10]
STUCK = ["active", "LWLock", "WALWrite", 5]


def diagnostics(blocks: list[VariantBlock], rows: int | None = None) -> dict[str, Any]:
    """The diagnostics as plain JSON; {} without any."""
    found = module.diagnostics(blocks, rows)
    return found.to_json() if found else {}


def raw(**changed: Any) -> dict[str, Any]:
    """What the runner hands over, of a slice of 1,000 operations."""
    base = {
        "seconds": 1.0, "ops": 1000, "sessions": [CLIENT_READ, RUNNING, LOCKED, STUCK], "pooler": None,
        "statements": {"calls": 1000, "rows": 2000, "others": 0}, "calls_expected": 1, "notes": {},
    }  # fmt: skip
    return {**base, **changed}


def seen(*raws: dict[str, Any], layer: str = "libpq") -> list[VariantBlock]:
    return [
        replace(block(variant(layer), number, [50.0]), diagnostics=each) for number, each in enumerate(raws)
    ]


def test_no_diagnostic_slice_no_diagnosis() -> None:
    assert diagnostics(seen({}, {})) == {}
    assert top(seen({})) is None


def test_shares_are_of_all_samples_the_greatest_first() -> None:
    found = diagnostics(seen({}, raw()))
    assert list(found["wait_events"].items()) == [
        ("Client", 0.6), ("CPU", 0.25), ("Lock", 0.1), ("LWLock", 0.05),
    ]  # fmt: skip
    assert found["events"] == {
        "Client:ClientRead": 0.6,
        "Lock:transactionid": 0.1,
        "LWLock:WALWrite": 0.05,
    }
    assert found["states"] == {"idle": 0.6, "active": 0.4}
    assert (found["samples"], found["seconds"], found["notes"]) == (100, 1.0, {})


def test_slices_of_several_cohorts_are_added_before_anything_is_divided() -> None:
    found = diagnostics(seen(raw(sessions=[[*LOCKED[:3], 1]]), raw(sessions=[[*RUNNING[:3], 3]])))
    assert found["wait_events"] == {"CPU": 0.75, "Lock": 0.25}
    assert found["seconds"] == 2.0


def test_what_was_not_seen_is_null_with_the_reason() -> None:
    notes = {"wait_events": "no session", "statements": "not loaded"}
    found = diagnostics(seen(raw(sessions=[], statements=None, notes=notes)))
    unknown = ("wait_events", "events", "states", "pooler", "statements")
    assert [found[name] for name in unknown] == [None] * 5
    assert found["samples"] == 0
    assert found["notes"] == notes


def pooler(**changed: Any) -> dict[str, Any]:
    base = {
        "totals": {"query_count": 500, "wait_time": 10_000, "query_time": 25_000, "sent": 7},
        "pools": {"cl_active": [8, 8], "cl_waiting": [0, 5], "sv_idle": [0, 2], "mode": "transaction"},
        "polls": 12,
    }
    return {**base, **changed}


def test_the_pooler_per_query() -> None:
    found = diagnostics(seen(raw(pooler=pooler()), raw(pooler=pooler())))["pooler"]
    assert found == {
        "queries": 1000, "queries_per_op": 0.5, "wait_us_per_query": 20.0, "query_us_per_query": 50.0,
        "cl_active_max": 8, "cl_waiting_max": 5, "sv_active_max": None, "sv_idle_min": 0, "maxwait_us_max": None,
        "pool_mode": "transaction", "polls": 24,
    }  # fmt: skip


def test_a_pooler_that_served_nothing_divides_nothing() -> None:
    idle = pooler(totals={}, pools={}, polls=0)
    found = diagnostics(seen(raw(pooler=idle)))["pooler"]
    assert (found["queries"], found["wait_us_per_query"], found["pool_mode"]) == (0, None, None)
    assert found["sv_idle_min"] is None


@pytest.mark.parametrize(
    ("counted", "rows", "as_expected", "said"),
    [
        ({"calls": 1000, "rows": 2000, "others": 3}, 2, True, None),
        ({"calls": 1000, "rows": 2000, "others": 0}, None, True, None),
        ({"calls": 2000, "rows": 2000, "others": 0}, 2, False, "calls: 2.000 per operation, expected 1"),
        ({"calls": 1001, "rows": 2000, "others": 0}, 2, False, "calls: 1.001 per operation, expected 1"),
        ({"calls": 1000, "rows": 1000, "others": 0}, 2, False, "rows: 1.000 per operation, expected 2"),
        (
            {"calls": 1010, "rows": 2000, "others": 1}, 2, None,
            "calls: 1.010 per operation, expected 1;"
            " 1 other session of this login ran statements during the slices",
        ),
    ],
)  # fmt: skip
def test_the_same_work(
    counted: dict[str, int], rows: int | None, as_expected: bool | None, said: str | None
) -> None:
    found = diagnostics(seen(raw(statements=counted)), rows)
    assert found["statements"]["as_expected"] is as_expected
    assert found["notes"].get("statements") == said


def test_several_statements_to_an_operation() -> None:
    counted = {"calls": 3000, "rows": 0, "others": 0}
    found = diagnostics(seen(raw(statements=counted, calls_expected=3)))["statements"]
    assert found == {"calls_per_op": 3.0, "rows_per_op": 0.0, "as_expected": True}


def test_the_statements_of_an_uncaptured_operation_are_unknown() -> None:
    found = diagnostics(seen(raw(calls_expected=None)))["statements"]
    assert found == {"calls_per_op": 1.0, "rows_per_op": 2.0, "as_expected": None}


def test_nothing_counted_is_unknown_not_wrong() -> None:
    found = diagnostics(seen(raw(statements={"calls": 0, "rows": 0, "others": 0})))
    assert found["statements"] is None
    assert "compute_query_id" in found["notes"]["statements"]


def test_rows_are_expected_as_the_lower_layers_read_them() -> None:
    below, above = seen({}, layer="libpq"), seen({}, layer="django_orm")
    assert rows_expected([replace(above[0], rows_per_op=1)]) == {}
    assert rows_expected([replace(below[0], rows_per_op=0)]) == {}
    assert rows_expected([replace(above[0], rows_per_op=1), replace(below[0], rows_per_op=5)]) == {
        "site-by-domain": 5
    }


WORDS = st.sampled_from(["", "Client", "IO", "Lock", "LWLock", "Timeout"])
SIGHTS = st.lists(st.tuples(st.sampled_from(["", "active", "idle"]), WORDS, WORDS, st.integers(1, 10**6)))


@given(SIGHTS)
def test_shares_sum_to_one_or_are_unknown(sights: list[tuple[str, str, str, int]]) -> None:
    found = diagnostics(seen(raw(sessions=sights)))
    for name in ("wait_events", "states"):
        if sights and all(state for state, *_ in sights):
            assert sum(found[name].values()) == pytest.approx(1)
        else:
            assert found[name] is None


def test_the_last_snapshot_of_processes_counts() -> None:
    blocks = [replace(each, top={"seconds": number}) for number, each in enumerate(seen({}, {}), 1)]
    found = top(blocks)
    assert found
    assert (found.seconds, found.host.us, found.processes) == (2, None, ())
    assert Top.from_json(found.to_json()) == found
