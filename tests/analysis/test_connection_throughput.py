"""Throughput with and without connecting, by both formulas."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.connection_throughput import ConnectionThroughput
from pgperf.analysis.variant_summary import VariantSummary

_us = st.floats(1, 1e6)


def summary(connect: float, operate: float, close: float, clients: int = 1) -> VariantSummary:
    """A variant whose clients do nothing but these phases."""
    phases = {"connect": {"mean": connect}, "operate": {"mean": operate}, "close": {"mean": close}}
    ops_per_s = clients / (connect + operate + close) * 1e6
    return VariantSummary(clients=clients, ops_per_s=ops_per_s, phases_us=phases)


def test_a_variant_that_keeps_its_connections_has_none() -> None:
    assert ConnectionThroughput.of(VariantSummary(ops_per_s=1000.0)) is None


def test_the_published_kind_of_figures() -> None:
    """Ten clients: 8 ms to connect, 1 ms to operate, 1 ms to close."""
    found = ConnectionThroughput.of(summary(8000, 1000, 1000, clients=10))
    assert found
    assert found.including == pytest.approx(1000)
    assert found.excluding == pytest.approx(10_000)
    assert found.excluding_pgbench == pytest.approx(5000)  # 10 s of operating and closing in 10 clients


@given(_us, _us, _us, st.integers(1, 64))
def test_by_pgbench_only_the_connects_are_left_out(
    connect: float, operate: float, close: float, clients: int
) -> None:
    found = ConnectionThroughput.of(summary(connect, operate, close, clients))
    assert found
    assert found.excluding == pytest.approx(clients / operate * 1e6)
    share = (operate + close) / (connect + operate + close)
    if share > 0.0501:
        assert found.excluding_pgbench == pytest.approx(clients / (operate + close) * 1e6, rel=1e-6)
    elif share < 0.0499:
        assert found.excluding_pgbench is None


@given(_us, _us, _us, st.integers(1, 64), st.floats(0.5, 2))
def test_the_old_formula_never_exceeds_ours(
    connect: float, operate: float, close: float, clients: int, drift: float
) -> None:
    """The run's throughput is a centre of blocks, which may lie beside what the means give."""
    measured = summary(connect, operate, close, clients)
    found = ConnectionThroughput.of(replace(measured, ops_per_s=(measured.ops_per_s or 0) * drift))
    assert found
    assert found.excluding
    assert found.excluding_pgbench is None or found.excluding_pgbench <= found.excluding


def test_closing_that_is_part_of_connecting_leaves_the_old_formula_unknown() -> None:
    phases = {"connect": {"mean": 500.0}, "operate": {"mean": 100.0}, "close": {"mean": None}}
    found = ConnectionThroughput.of(VariantSummary(clients=2, ops_per_s=3000.0, phases_us=phases))
    assert found == ConnectionThroughput(3000.0, 20_000.0, None)


def test_at_a_rate_clients_wait_for_their_schedule() -> None:
    found = ConnectionThroughput.of(replace(summary(500, 100, 50), ops_per_s=10.0, rate=10.0))
    assert found == ConnectionThroughput(10.0, None, None)


def test_unknown_figures_stay_unknown() -> None:
    phases = {name: {"mean": None} for name in ("connect", "operate", "close")}
    assert ConnectionThroughput.of(VariantSummary(phases_us=phases)) == ConnectionThroughput(None, None, None)
