"""The host over time: every slice in order, in few enough points."""

import json

import pytest

from pgperf.analysis.cpu_accounting import SHARES
from pgperf.analysis.timeline import POINTS, Timeline, timeline
from pgperf.core.records import VariantBlock

from .synthetic import piece, variant

MS = 1_000_000
CENSUS = {"cpus": 1, "source": "cgroup", "host_ns": 2, "ours_ns": 1, "others_ns": 1}


def block(layer: str, *slices: tuple[int, int], number: int = 0) -> VariantBlock:
    """Slices of 100 ms, each (ms when it began, ms that its clients spent)."""
    pieces = tuple(
        piece(
            100,
            at,
            started_ns=(7 + start) * MS,
            elapsed_ns=100 * MS,
            host_ns=client * MS,
            client_ns=client * MS,
            runner_ns=0,
            server_ns=0,
            pooler_ns=0,
            auxiliary_ns=0,
            iowait_ns=0,
            steal_ns=0,
        )
        for at, (start, client) in enumerate(slices)
    )
    return VariantBlock(
        variant=variant(layer), cohort=0, block=number, slices=pieces, cpu_account=dict(CENSUS)
    )


def shares(found: Timeline, role: str) -> list[float]:
    return [getattr(each.share, role) for each in found.moments]


def line(*given: VariantBlock, points: int = POINTS) -> Timeline:
    found = timeline(given, points)
    assert found
    assert Timeline.from_json(json.loads(json.dumps(found.to_json()))) == found
    return found


def test_slices_of_all_variants_in_the_order_of_time() -> None:
    found = line(
        block("libpq", (0, 20), (200, 40)), block("psycopg", (100, 60)), block("libpq", (900, 0), number=1)
    )
    assert [each.seconds for each in found.moments] == pytest.approx([0.05, 0.15, 0.25, 0.95])
    assert [each.variant for each in found.moments] == [
        "libpq · socket", "psycopg · socket", "libpq · socket", "libpq · socket"
    ]  # fmt: skip
    assert [each.block for each in found.moments] == [0, 0, 0, 1]
    assert shares(found, "clients") == pytest.approx([0.2, 0.6, 0.4, 0.0])
    assert shares(found, "idle") == pytest.approx([0.8, 0.4, 0.6, 1.0])
    assert set(found.to_json()["roles"]) == set(SHARES)


def test_a_long_run_has_no_more_points_than_asked_for() -> None:
    slices = [(100 * at, at % 2 * 100) for at in range(1001)]
    found = line(block("libpq", *slices))
    assert len(found.moments) == 167  # six slices each
    assert shares(found, "clients")[0] == 0.5
    (few,) = line(block("libpq", (0, 30), (200, 50)), block("psycopg", (100, 10)), points=1).moments
    assert (few.seconds, few.variant, few.share.clients) == (0.15, None, pytest.approx(0.3))


def test_no_point_reaches_over_the_pause_between_two_blocks() -> None:
    early, late = block("libpq", (0, 20), (100, 40), (200, 60)), block("libpq", (900, 0), number=1)
    found = line(early, late, points=2)
    assert [each.seconds for each in found.moments] == pytest.approx([0.1, 0.25, 0.95])
    assert [each.block for each in found.moments] == [0, 0, 1]


def test_without_cpu_accounts_there_is_none() -> None:
    assert timeline([]) is None
    assert timeline([VariantBlock(variant=variant(), cohort=0, block=0, slices=(piece(100),))]) is None
    assert Timeline.from_json({}) is None
