"""benchmarks.published_figures: figures of a run and their intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.published_figures import (
    disturbed_ratio,
    geometric_mean,
    inverse,
    known_disturbance,
    ms_per_op,
    per_s,
    ratio,
    text,
    us_per_op,
    variant,
)
from pgperf.analysis.paired_statistics import Estimate
from tests.benchmarks.made_up_runs import comparison, row, run

positive = st.floats(0.01, 1000)
widths = st.floats(1.0001, 5)


def estimate(centre: float, width: float | None = 1.1) -> Estimate:
    return Estimate(centre, centre / width if width else None, centre * width if width else None, 6, 0.95)


def test_a_variant_is_found_by_its_fields_and_is_no_control() -> None:
    control, wanted = row(10.0, control=1), row(20.0, layer="psycopg")
    assert variant(run(control, wanted), route="socket") == wanted
    assert variant(run(control, wanted), layer="libpq") is None
    assert variant(run(row(None)), layer="libpq") is None


def test_a_throughput_is_as_certain_as_the_time() -> None:
    found = per_s(row(1000.0, 1.25, workers=10))
    assert found
    assert (found.centre, found.low, found.high) == pytest.approx((10_000, 8000, 12_500))
    rows = per_s(row(1000.0, 1.25), "rows_per_s")
    assert rows
    assert (rows.centre, rows.low, rows.high) == pytest.approx((10_000, 8000, 12_500))


@pytest.mark.parametrize("ends", [{"us_per_op_low": 0.0}, {"us_per_op_low": None}, {"us_per_op_high": None}])
def test_without_a_known_interval_there_is_none(ends: dict[str, float | None]) -> None:
    made = {**row(1000.0), **ends}
    found = per_s(made)
    assert found
    assert (found.centre, found.low, found.high) == (1000.0, None, None)
    assert ratio(run(), made, row(500.0, layer="pgbench")).low is None


def test_an_unknown_rate_stays_unknown() -> None:
    assert per_s({**row(1000.0), "rows_per_s": None}, "rows_per_s") is None


def test_the_same_time_in_ms() -> None:
    made = row(1500.0, 1.5)
    assert ms_per_op(made).centre == 1.5
    assert (ms_per_op(made).low, ms_per_op(made).high) == pytest.approx((1.0, 2.25))
    assert us_per_op(made).centre == 1500.0


@pytest.mark.parametrize("turned", [False, True])
def test_a_ratio_is_the_comparison_of_the_run_in_either_direction(turned: bool) -> None:
    one, two = row(30.0, 2.0), row(10.0, 2.0, layer="psycopg")
    made = run(one, two, comparisons=[comparison(two, one) if turned else comparison(one, two)])
    found = ratio(made, one, two)
    assert (found.centre, found.low, found.high) == pytest.approx((3.0, 3 / 1.01, 3 * 1.01))


@given(positive, widths, positive, widths)
def test_a_ratio_of_two_times_adds_their_distances_as_squares(
    a: float, wa: float, b: float, wb: float
) -> None:
    found = ratio(run(), row(a, wa), row(b, wb, layer="psycopg"))
    reach = math.hypot(math.log(wa), math.log(wb))
    assert found.low is not None
    assert found.high is not None
    assert math.log(found.centre) == pytest.approx(math.log(a / b), abs=1e-9)
    assert math.log(found.high / found.centre) == pytest.approx(reach, abs=1e-9)
    assert math.log(found.centre / found.low) == pytest.approx(reach, abs=1e-9)


def test_a_disturbed_time_may_have_been_shorter() -> None:
    one, two = row(30.0, disturbed=0.5), row(10.0, layer="psycopg", disturbed=0.2)
    made = run(one, two, comparisons=[comparison(one, two, 1.1)])
    found = disturbed_ratio(made, one, two)
    assert (found.centre, found.low, found.high) == pytest.approx((3.0, 3 / 1.1 * 0.5, 3 * 1.1 / 0.8))


@pytest.mark.parametrize("grade", [None, {"share": None}, {"share": 1.0}])
def test_a_ratio_has_no_interval_where_disturbances_may_be_any(grade: dict[str, float | None] | None) -> None:
    one, two = row(30.0), row(10.0, layer="psycopg")
    unknown = {**one, "verdict": {"word": "latency", "grade": grade}}
    found = disturbed_ratio(run(one, two, comparisons=[comparison(one, two)]), unknown, two)
    assert (found.centre, found.low, found.high) == (3.0, None, None)


def test_known_disturbances_count_where_the_grade_is_unknown() -> None:
    found = [
        {"source": "steal", "us": 3.0},
        {"source": "run_queue", "us": 1.5},
        {"source": "clock", "us": None},
    ]
    unknown = {"share": None, "disturbances": found}
    assert known_disturbance({**row(30.0), "verdict": {"grade": unknown}}) == pytest.approx(0.15)
    assert known_disturbance({**row(30.0), "verdict": {"grade": {**unknown, "share": 0.2}}}) == 0.2
    assert known_disturbance({**row(30.0), "verdict": {"word": None}}) == 0.0


@given(positive, widths)
def test_inverting_twice_changes_nothing(centre: float, width: float) -> None:
    once, twice = inverse(estimate(centre, width)), inverse(inverse(estimate(centre, width)))
    assert (twice.centre, twice.low, twice.high) == pytest.approx((centre, centre / width, centre * width))
    assert once.centre == pytest.approx(1 / centre)


@given(st.lists(positive, min_size=1, max_size=8))
def test_a_geometric_mean_of_equal_intervals_narrows_with_their_number(centres: list[float]) -> None:
    found = geometric_mean([estimate(each, 2.0) for each in centres])
    assert found.high
    assert math.log(found.centre) == pytest.approx(sum(map(math.log, centres)) / len(centres), abs=1e-9)
    assert math.log(found.high / found.centre) == pytest.approx(
        math.log(2) / math.sqrt(len(centres)), abs=1e-9
    )


def test_a_geometric_mean_with_an_unknown_interval_has_none() -> None:
    found = geometric_mean([estimate(2.0), estimate(8.0, None)])
    assert found.centre == pytest.approx(4.0)
    assert (found.low, found.high) == (None, None)


def test_text_says_what_is_not_known() -> None:
    assert text(None) == "not measured"
    assert text(estimate(1234.5, None), 1) == "1,234.5 (no interval)"
    assert text(Estimate(1234.5, 1000, 2000, 6, 0.95), 0) == "1,234 (1,000 to 2,000)"
