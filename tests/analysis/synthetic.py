"""Blocks as the engine would deliver them, made from times per operation that a test knows."""

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from pgperf.analysis import latency
from pgperf.analysis.fit import Fit
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.core.records import Definition, SliceRecord, Variant, VariantBlock, WorkloadDefinition

WINDOW_NS = 200_000_000
#: (variant, block, round) -> µs per operation
Times = Callable[[Variant, int, int], float]


def variant(
    layer: str = "libpq", route: str = "socket", control: int = 0, mode: str = "simple", clients: int = 1
) -> Variant:
    return Variant(
        workload="site-by-domain",
        layer=layer,
        mode=mode,
        route=route,
        clients=clients,
        connect="persistent",
        placement="apart",
        control=control,
    )


def definition(blocks: int = 6, rounds: int = 5, routes: tuple[str, ...] = ("socket",)) -> Definition:
    layers = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
    workload = WorkloadDefinition("site-by-domain", "SELECT 1")
    return Definition("orm-overhead", (workload,), layers, routes, blocks=blocks, rounds=rounds)


def piece(us: float, round_: int = 0, ops: int | None = None, **fields: object) -> SliceRecord:
    """A slice of one client, 200 ms long, one row per operation."""
    count = round(WINDOW_NS / us / 1000) if ops is None else ops
    base = SliceRecord(
        round=round_,
        position=0,
        ops=count,
        rows=count,
        lead_in_ops=50,
        window_ns=WINDOW_NS,
        us_per_op=us,
        ops_per_s=count / (WINDOW_NS / 1e9),
        user_ns=0,
        sys_ns=0,
    )
    return SliceRecord(**{**base.__dict__, **fields})  # type: ignore[arg-type]


def block(of: Variant, number: int, times: Iterable[float], cohort: int = 0) -> VariantBlock:
    """One block without latencies."""
    slices = tuple(piece(us, round_) for round_, us in enumerate(times))
    return VariantBlock(variant=of, cohort=cohort, block=number, slices=slices)


def timed_block(of: Variant, number: int, durations_ns: np.ndarray) -> VariantBlock:
    """One block of one slice with every operation's duration."""
    us = float(durations_ns.mean()) / 1000
    return VariantBlock(
        variant=of,
        cohort=0,
        block=number,
        slices=(piece(us, 0, len(durations_ns)),),
        histogram=latency.fold(durations_ns),
        latency_sum_ns=int(durations_ns.sum()),
        latency_sum_sq=float(np.square(durations_ns.astype(np.float64)).sum()),
        latency_min_ns=int(durations_ns.min()),
        latency_max_ns=int(durations_ns.max()),
    )


def fitted(found: Iterable[VariantBlock]) -> Fit:
    """The times, fitted to all comparisons of all variants."""
    measured = Measurements(found)
    return Fit.of(measured, combinations(measured, 2))


def blocks(
    variants: Iterable[Variant], count: int, rounds: int, times: Times, cohort: int = 0
) -> list[VariantBlock]:
    return [
        block(of, number, [times(of, number, round_) for round_ in range(rounds)], cohort)
        for number in range(count)
        for of in variants
    ]
