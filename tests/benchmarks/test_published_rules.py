"""benchmarks.published_rules: each answer to the published conclusions C and D, on made-up runs."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.published import CONFIRMED, QUALIFIED, REFUTED, UNKNOWN
from benchmarks.published_d import MEASURES
from benchmarks.published_rules import ASYNC, QUERIES, SCRAM, TRUST, drivers, inside, pooling, word_of
from pgperf.analysis.paired_statistics import Estimate
from tests.benchmarks.made_up_runs import WIDE, comparison, pooling_run, suite_run

PUBLISHED = (67.5, 1013.0, 15423.0, 2766.0)
LATENCIES = MEASURES[2].published


def published_times(**changed: dict[str, float]) -> dict[str, dict[str, float]]:
    """The published latencies, µs; `changed` are ratios of time by driver and query."""
    return {
        driver: {
            query: 1000 * ms * changed.get(driver, {}).get(query, 1)
            for query, ms in zip(QUERIES, latencies[1:], strict=True)
        }
        for driver, latencies in LATENCIES.items()
    }


def words(found: list[Any]) -> list[str]:
    return [each.word for each in found]


def test_the_published_figures_confirm_all_conclusions() -> None:
    assert words(pooling(pooling_run(*PUBLISHED), TRUST)) == [CONFIRMED, CONFIRMED]
    assert words(drivers(suite_run(published_times()), threads=True)) == [CONFIRMED] * 4


@pytest.mark.parametrize(
    ("fold", "word"),
    [
        (10.2, CONFIRMED), (22.0, CONFIRMED), (9.8, QUALIFIED), (23.0, QUALIFIED), (1.1, QUALIFIED),
        (1.03, REFUTED), (0.5, REFUTED), (10.0, UNKNOWN), (22.5, UNKNOWN), (1.05, UNKNOWN),
    ],
)  # fmt: skip
def test_pooling_wins_about_15_fold_from_10_to_22(fold: float, word: str) -> None:
    found = pooling(pooling_run(100, 100 * fold, 1000, 500), TRUST)[0]
    assert found.word == word
    assert f"direct over pooled {fold:.2f} (" in found.evidence
    assert "by his table 15.0" in found.evidence


@pytest.mark.parametrize(
    ("times", "word"), [(1.07, CONFIRMED), (5.6, CONFIRMED), (1.05, UNKNOWN), (1.03, REFUTED), (0.5, REFUTED)]
)
def test_pooling_loses_from_five_percent_on(times: float, word: str) -> None:
    found = pooling(pooling_run(100, 1500, 1000, 1000 / times), TRUST)[1]
    assert found.word == word
    assert f"pooled over direct {times:.2f} (" in found.evidence


@pytest.mark.parametrize(
    "changes", [{"width": WIDE}, {"width": None}, {"disturbed": 0.9}, {"disturbed": 1.0}]
)
def test_what_is_too_uncertain_or_disturbed_is_unknown(changes: dict[str, Any]) -> None:
    assert words(pooling(pooling_run(100, 1500, 1000, 900, **changes), TRUST)) == [UNKNOWN, UNKNOWN]
    assert words(drivers(suite_run(published_times(), **changes), threads=True)) == [UNKNOWN] * 4


@pytest.mark.parametrize(
    ("disturbed", "word"), [(0.0, CONFIRMED), (0.2, CONFIRMED), (0.3, UNKNOWN), (None, UNKNOWN)]
)
def test_a_disturbance_counts_where_it_could_change_the_answer(disturbed: float | None, word: str) -> None:
    """14 times becomes 9.7 times if 30 % of the direct time is the disturbance's; None: unknown."""
    assert pooling(pooling_run(100, 1400, 1000, 500, disturbed=disturbed), TRUST)[0].word == word


@pytest.mark.parametrize("word", ["server_cpu", "disturbed", "unknown", None])
def test_a_verdict_on_the_bottleneck_changes_no_answer(word: str | None) -> None:
    assert words(pooling(pooling_run(*PUBLISHED, word=word), TRUST)) == [CONFIRMED, CONFIRMED]


def test_each_login_has_its_own_routes() -> None:
    scram = pooling_run(50, 55, 1000, 990, routes=("tcp", "pgbouncer"))
    assert words(pooling(scram, SCRAM)) == [QUALIFIED, REFUTED]
    assert words(pooling(scram, TRUST)) == [UNKNOWN, UNKNOWN]
    assert "SCRAM" in pooling(scram, SCRAM)[0].conclusion


def test_only_pgbench_with_one_thread_answers_for_the_pooler() -> None:
    run = pooling_run(*PUBLISHED)
    run["variants"] = [row for row in run["variants"] if row["layer"] != "pgbench_one_thread"]
    assert words(pooling(run, TRUST)) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("pg_type", "generate_series", "word"),
    [
        (0.5, 0.9, CONFIRMED), (0.5, 0.99, QUALIFIED), (0.5, 2.0, QUALIFIED), (1.0, 0.99, REFUTED),
        (2.0, 2.0, REFUTED), (0.5, 1 / 1.05, UNKNOWN), (2.0, 1 / 1.05, UNKNOWN),
    ],
)  # fmt: skip
def test_a_win_of_psycopg_3(pg_type: float, generate_series: float, word: str) -> None:
    times = published_times()
    base = times["psycopg2"]
    times["psycopg"] |= {
        "pg_type": pg_type * base["pg_type"],
        "generate_series": generate_series * base["generate_series"],
    }
    found = drivers(suite_run(times), threads=True)
    assert words(found) == [word, CONFIRMED, CONFIRMED, found[3].word]
    assert f"pg_type {pg_type:.2f} (" in found[0].evidence


def with_ratios(**ratios: float) -> dict[str, dict[str, float]]:
    """psycopg's times over those of psycopg2, by query."""
    times = published_times()
    times["psycopg"] |= {query: ratio * times["psycopg2"][query] for query, ratio in ratios.items()}
    return times


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((2.0, 1.1, 3.0), CONFIRMED), ((2.0, 1.1, 1.0), QUALIFIED), ((1.0, 0.5, 1.0), REFUTED),
        ((2.0, 1.05, 3.0), UNKNOWN), ((2.0, 1.05, 0.5), QUALIFIED),
    ],
)  # fmt: skip
def test_a_loss_of_psycopg_3(ratios: tuple[float, float, float], word: str) -> None:
    names = ("oneplusone", "large_object", "batch")
    times = with_ratios(**dict(zip(names, ratios, strict=True)))
    assert drivers(suite_run(times), threads=True)[1].word == word


@pytest.mark.parametrize(
    ("arrays", "copyfrom", "word"),
    [
        (0.93, 1.08, CONFIRMED), (0.93, 1.2, QUALIFIED), (0.8, 1.2, REFUTED), (1.0, 0.9, UNKNOWN),
        (1.0, 1 / 0.9, UNKNOWN), (0.8, 0.9, UNKNOWN),
    ],
)  # fmt: skip
def test_equality_within_a_tenth(arrays: float, copyfrom: float, word: str) -> None:
    found = drivers(suite_run(with_ratios(arrays=arrays, copyfrom=copyfrom)), threads=True)
    assert found[2].word == word


def test_a_run_of_one_query_counts_in_place_of_the_suites() -> None:
    suite = suite_run(with_ratios(arrays=0.9))
    assert drivers(suite, threads=True)[2].word == UNKNOWN
    found = drivers(suite, threads=True, alone={"arrays": suite_run(with_ratios(arrays=0.95))})
    assert (found[2].word, "arrays 0.95 (" in found[2].evidence) == (CONFIRMED, True)
    others = drivers(suite, threads=True)
    assert [*found[:2], found[3]] == [*others[:2], others[3]]


@pytest.mark.parametrize(
    ("gain", "word"), [(0.7, CONFIRMED), (1 / 1.05, UNKNOWN), (0.97, REFUTED), (1.4, REFUTED)]
)
def test_async_gains_by_the_geometric_mean(gain: float, word: str) -> None:
    times = published_times()
    even = {query: gain * us for query, us in times["psycopg"].items()}
    even["batch"], even["arrays"] = even["batch"] * 2, even["arrays"] / 2
    found = drivers(suite_run({**times, ASYNC: even}), threads=True)[3]
    assert found.word == word
    assert f"{gain:.2f} (" in found.evidence


def test_async_is_judged_on_uvloop_as_published() -> None:
    times = published_times()
    on_asyncio = {("psycopg_async" if name == ASYNC else name): own for name, own in times.items()}
    assert ASYNC == "psycopg_async_uvloop"
    assert words(drivers(suite_run(on_asyncio), threads=True)) == [CONFIRMED] * 3 + [UNKNOWN]


def test_without_threads_nothing_is_said_about_them() -> None:
    assert len(drivers(suite_run(published_times(), workers=1), threads=False)) == 3


def test_a_missing_query_leaves_its_conclusion_and_the_mean_unknown() -> None:
    times = published_times()
    del times["psycopg"]["batch"]
    assert words(drivers(suite_run(times), threads=True)) == [CONFIRMED, UNKNOWN, CONFIRMED, UNKNOWN]


def test_the_comparison_of_a_run_itself_comes_before_its_two_times() -> None:
    run = suite_run(published_times(), width=WIDE)
    rows = {(each["layer"], each["workload"]): each for each in run["variants"]}
    assert drivers(run, threads=True)[2].word == UNKNOWN
    for query in ("arrays", "copyfrom"):  # in either direction
        run["comparisons"].append(comparison(rows["psycopg2", query], rows["psycopg", query]))
    assert drivers(run, threads=True)[2].word == CONFIRMED


@given(st.lists(st.sampled_from([True, False, None]), min_size=1))
def test_an_answer_of_several_parts(found: list[bool | None]) -> None:
    known = set(found) - {None}
    expected = QUALIFIED if len(known) == 2 else UNKNOWN if None in found else None
    assert word_of(found) == (expected or (CONFIRMED if known == {True} else REFUTED))


@given(st.floats(0.01, 100), st.floats(1, 10), st.floats(0.01, 100), st.floats(1, 10))
def test_an_interval_is_inside_outside_or_neither(
    centre: float, width: float, low: float, span: float
) -> None:
    high = low * span
    ends = centre / width, centre * width
    answer = inside(Estimate(centre, *ends, 6, 0.95), low, high)
    assert (answer is True) == all(low <= end <= high for end in ends)
    assert (answer is False) == (ends[1] < low or high < ends[0])
    assert inside(Estimate(centre, None, None, 1, 0.0), low, high) is None
    assert inside(None, 0, math.inf) is None
