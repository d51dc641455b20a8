"""What is said of a rate: held or not, and how late its operations were."""

from dataclasses import replace

import numpy as np
import pytest

from pgperf.analysis import latency
from pgperf.analysis.consistency_checks import little
from pgperf.analysis.open_loop import OpenLoop, open_loop
from pgperf.analysis.rules import Facts, schedule
from pgperf.analysis.verdict_kinds import evidence, judge
from pgperf.core.records import SliceRecord

from .rows import row, summary
from .synthetic import piece, timed_block, variant

OPEN = replace(variant(clients=4), rate=1000.0, schedule="exponential")


def timed(due: int, ended: int, **counts: int | None) -> SliceRecord:
    given = {"late": None, "skipped": 0, "backlog": 0, **counts}
    return replace(piece(100.0, 0, ended, window_ns=1_000_000_000), due=due, **given)


def found(*slices: SliceRecord) -> OpenLoop:
    of = open_loop(OPEN, slices)
    assert of
    return of


def test_a_closed_loop_has_no_rate() -> None:
    assert open_loop(variant(), [timed(10, 10)]) is None
    assert open_loop(OPEN, [piece(100.0, 0, 10)]) is None


def test_the_counts_of_all_slices_add_up() -> None:
    of = found(timed(1000, 990, late=3, skipped=2, backlog=1), timed(500, 510, late=1, skipped=0, backlog=4))
    assert (of.due, of.ended, of.late, of.skipped, of.backlog) == (1500, 1500, 4, 2, 5)
    assert (of.offered_per_s, of.achieved_per_s) == (750.0, 750.0)
    assert of.late_share == pytest.approx(6 / 1500)
    assert OpenLoop.from_json(of.to_json()) == of


def test_without_a_limit_none_is_late() -> None:
    assert found(timed(1000, 1000)).late is None
    assert found(timed(1000, 1000)).late_share is None


@pytest.mark.parametrize(
    ("ended", "held"), [(1020, True), (976, True), (975, False), (500, False), (0, False)]
)
def test_a_rate_is_held_within_2_percent_and_the_edge_of_the_window(ended: int, held: bool) -> None:
    """20 of 1000, and one operation of each of four connections."""
    assert found(timed(1000, ended)).is_held is held


@pytest.mark.parametrize(
    ("skipped", "ended", "held"),
    [
        (100, 900, False),
        (20, 980, True),
        (20, 976, True),
        (20, 975, False),
        (21, 979, False),
        (21, 1010, False),
    ],
)
def test_the_edge_of_the_window_forgives_no_skipped_operation(skipped: int, ended: int, held: bool) -> None:
    """Four may be cut, and of 1,000 that are due, 20 may be missing."""
    assert found(timed(1000, ended, late=0, skipped=skipped)).is_held is held


@pytest.mark.parametrize(("ended", "held"), [(86, True), (80, False)])
def test_connections_that_fill_up_in_each_window_are_no_shortfall(ended: int, held: bool) -> None:
    """50/s over 64 connections, in operations of 0.64 s with exponential times: half of the
    connections are busy, nothing waits, and still 14 operations more are under way at the end of a
    window of 2 s than after its lead-in of 0.5 s.
    """
    slices = [timed(100, ended)] * 20
    of = open_loop(replace(OPEN, clients=64, rate=50.0), slices)
    assert of
    assert of.is_held is held


@pytest.mark.parametrize(
    ("backlog", "bounds"), [(0, []), (9, []), (10, [99]), (50, [95, 99]), (100, [90, 95, 99])]
)
def test_a_percentile_is_a_lower_bound_where_so_many_had_not_begun(backlog: int, bounds: list[int]) -> None:
    """Of 1,020 that were due, 20 were skipped and have no latency."""
    of = found(timed(1020, 900, late=0, skipped=20, backlog=backlog))
    assert [each for each in (50, 90, 95, 99) if of.is_lower_bound(each)] == bounds


def test_where_nothing_was_due_no_percentile_is_a_bound() -> None:
    assert not found(timed(0, 0)).is_lower_bound(99)


def test_a_variant_that_holds_its_rate_is_bound_by_nothing() -> None:
    own = replace(summary(row()), rate=1000.0, schedule="exponential", open_loop=found(timed(1000, 1000)))
    verdict = judge(own)
    assert (verdict.word, verdict.certainty, verdict.intervention) == ("schedule", None, "")
    assert evidence(verdict).startswith("1,000 operations/s, as many as were due; of 211 µs: client 165 µs")


@pytest.mark.parametrize(("due", "said"), [(4, "0.40"), (25, "2.50"), (1005, "100"), (12345, "1,234")])
def test_a_low_rate_is_said_with_its_decimals(due: int, said: str) -> None:
    held = OpenLoop(due / 10, "constant", due, due, None, 0, 0, 10.0)
    own = replace(summary(row()), rate=due / 10, schedule="constant", open_loop=held)
    assert evidence(judge(own)).startswith(f"{said} operations/s, as many as were due")


def test_a_variant_that_does_not_hold_its_rate_has_a_bottleneck() -> None:
    own = replace(summary(row()), rate=1000.0, schedule="exponential", open_loop=found(timed(1000, 600)))
    assert schedule(Facts.of(own)) is None
    assert judge(own).word == "client_cpu"


def test_littles_law_is_not_checked() -> None:
    block = replace(timed_block(OPEN, 0, np.full(100, 100_000, dtype=np.uint64)), slices=(timed(100, 100),))
    law = little([block], 4)
    assert law.holds is None
    assert law.why == "not checked: a client of an open loop waits for its schedule"


def test_the_mean_latency_is_over_what_was_due_whatever_ended_in_the_window() -> None:
    durations = np.full(100, 300_000, dtype=np.uint64)
    block = timed_block(OPEN, 0, durations)
    lagging = latency.sums(np.full(100, 200_000, dtype=np.uint64))
    block = replace(block, slices=(timed(100, 40),), phases={"lag": lagging})
    assert latency.summary_us([block])["mean"] == pytest.approx(300.0)


def test_the_mean_latency_is_over_those_that_had_not_begun_too() -> None:
    durations = np.array([300_000] * 100 + [500_000] * 100, dtype=np.uint64)
    lagging = latency.sums(np.full(100, 200_000, dtype=np.uint64))
    block = replace(timed_block(OPEN, 0, durations), slices=(timed(200, 40),), phases={"lag": lagging})
    assert latency.summary_us([block])["mean"] == pytest.approx(400.0)
