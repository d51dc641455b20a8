"""The lead of the longest part of the time, over blocks."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis import stopping, verdict_kinds
from pgperf.analysis.lead import by_block, lead
from pgperf.analysis.paired_comparisons import Measure, us_between_operations, us_per_op
from pgperf.analysis.summary import summarise
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary

from . import golden
from .rows import row, summary
from .synthetic import block, definition, piece, variant


def times(*clients: float) -> list[TimeBreakdown]:
    return [TimeBreakdown.of(summary(row(client=us, server=90.0))) for us in clients]


def test_the_next_part_is_the_longest_of_the_others() -> None:
    found = lead("client", times(110.0)[0], [])
    assert found
    assert (found.part, found.runner_up, found.us) == ("client", "server", pytest.approx(20.0))
    assert (found.low, found.is_open) == (None, False), "a single block tells no interval"


@pytest.mark.parametrize(
    ("clients", "is_open"),
    [((110, 108, 112, 111, 109, 110), False), ((95, 85, 96, 84, 91, 92), True)],
)
def test_a_lead_that_blocks_do_not_agree_on_is_open(clients: tuple[float, ...], is_open: bool) -> None:
    found = lead("client", times(110.0)[0], times(*clients))
    assert found
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.us <= found.high
    assert found.is_open is is_open


@pytest.mark.parametrize(
    ("more", "hidden"), [({"events": {}}, "waiting"), ({"pooler": None, "events": {}}, "unseen")]
)
def test_time_that_cannot_be_divided_is_a_rival(more: dict[str, Any], hidden: str) -> None:
    """All of it may be one part's: of 211 µs the client takes 90 to 110, and the server 20."""
    blocks = [
        TimeBreakdown.of(summary(row(client=us, server=20.0, **more)))
        for us in (110.0, 90.0, 112.0, 89.0, 95.0, 97.0)
    ]
    found = lead("client", blocks[0], blocks)
    assert found
    assert (found.runner_up, found.us, found.is_open) == (hidden, pytest.approx(29.0), True)


def test_a_run_that_may_stop_early_is_as_sure_as_its_looks_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = times(110, 108, 112, 111, 109, 110)
    narrow, wide = (lead("client", times(110.0)[0], blocks, widening) for widening in (1.0, 1.5))
    assert narrow is not None
    assert wide is not None
    assert (wide.high or 0) - (narrow.high or 0) > 0.1
    judged: list[float] = []
    judge = verdict_kinds.judge
    monkeypatch.setattr(verdict_kinds, "judge", lambda *given: judged.append(given[-1]) or judge(*given))
    asked = replace(definition(golden.BLOCKS, golden.ROUNDS, golden.ROUTES), precision=0.01, blocks=12)
    assert asked.stops_early
    summarise(asked, golden.variants(), golden.blocks(), "psycopg")
    assert set(judged) == {stopping.widening(asked, golden.BLOCKS)}
    assert judged[0] > 1


@pytest.mark.parametrize(("measure", "us"), [(us_per_op, 100.0), (us_between_operations, 160.0)])
def test_blocks_have_the_time_that_the_run_compares_by(measure: Measure, us: float) -> None:
    """Beside pgbench, that is the mean of all operations: 4 clients end 25,000 of them a second."""
    slow = piece(100.0, ops_per_s=25_000.0)
    found = by_block(summary(row(160.0, clients=4)), [block(variant(clients=4), 0, [])], measure)
    assert found == []
    (one,) = by_block(
        summary(row(160.0, clients=4)), [replace(block(variant(clients=4), 0, []), slices=(slow,))], measure
    )
    assert one.response == pytest.approx(us)


def test_an_open_loop_beside_pgbench_keeps_its_service_time_in_each_block() -> None:
    """Its client waits for the schedule: 200 operations/s of 40 µs are not one of 5,000 µs."""
    opened = block(replace(variant(), rate=200.0, schedule="constant"), 0, [])
    slices = (piece(40.0, ops_per_s=200.0),)
    (one,) = by_block(summary(row(40.0)), [replace(opened, slices=slices)], us_between_operations)
    assert one.response == pytest.approx(40.0)


def test_each_block_has_its_own_breakdown() -> None:
    variants, blocks = golden.variants(), golden.blocks()
    asked = definition(golden.BLOCKS, golden.ROUNDS, golden.ROUTES)
    rows = summarise(asked, variants, blocks, "psycopg")["variants"]
    whole = VariantSummary.from_json(rows[0])
    own = [block for block in blocks if block.variant == variants[0]]
    found = by_block(whole, own)
    assert len(found) == golden.BLOCKS
    assert sum(time.response or 0.0 for time in found) / len(found) == pytest.approx(whole.us_per_op, rel=0.1)
