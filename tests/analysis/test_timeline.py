"""The host over time: every slice in order, in few enough points."""

import pytest

from pgperf.analysis.cpu_accounting import SHARES
from pgperf.analysis.timeline import timeline
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


def test_slices_of_all_variants_in_the_order_of_time() -> None:
    found = timeline(
        [block("libpq", (0, 20), (200, 40)), block("psycopg", (100, 60)), block("libpq", (900, 0), number=1)]
    )
    assert found["seconds"] == pytest.approx([0.05, 0.15, 0.25, 0.95])
    assert found["variant"] == ["libpq · socket", "psycopg · socket", "libpq · socket", "libpq · socket"]
    assert found["block"] == [0, 0, 0, 1]
    assert found["roles"]["clients"] == pytest.approx([0.2, 0.6, 0.4, 0.0])
    assert found["roles"]["idle"] == pytest.approx([0.8, 0.4, 0.6, 1.0])
    assert set(found["roles"]) == set(SHARES)


def test_a_long_run_has_no_more_points_than_asked_for() -> None:
    slices = [(100 * at, at % 2 * 100) for at in range(1001)]
    found = timeline([block("libpq", *slices)])
    assert len(found["seconds"]) == len(found["variant"]) == 167  # six slices each
    assert found["roles"]["clients"][0] == 0.5
    few = timeline([block("libpq", (0, 30), (200, 50)), block("psycopg", (100, 10))], points=1)
    assert few["seconds"] == [0.15]
    assert few["variant"] == [None]
    assert few["roles"]["clients"] == pytest.approx([0.3])


def test_no_point_reaches_over_the_pause_between_two_blocks() -> None:
    early, late = block("libpq", (0, 20), (100, 40), (200, 60)), block("libpq", (900, 0), number=1)
    found = timeline([early, late], points=2)
    assert found["seconds"] == pytest.approx([0.1, 0.25, 0.95])
    assert found["block"] == [0, 0, 1]
    assert found["roles"]["clients"] == pytest.approx([0.3, 0.6, 0.0])


def test_without_cpu_accounts_there_is_no_timeline() -> None:
    assert timeline([]) == {}
    assert timeline([VariantBlock(variant=variant(), cohort=0, block=0, slices=(piece(100),))]) == {}
