"""A small run whose summary is kept in golden_summary.json. `python -m tests.analysis.golden` writes it anew."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from pgperf.analysis.summary import summarise
from pgperf.records import Variant, VariantBlock

from .synthetic import definition, piece, timed_block, variant

PATH = Path(__file__).with_name("golden_summary.json")
ROUTES = ("socket", "pgbouncer")
US = {"libpq": 60.0, "psycopg2": 64.0, "psycopg": 70.0, "django_cursor": 90.0, "django_orm": 210.0}
ROUTE_US = {"socket": 0.0, "pgbouncer": 15.0}
BLOCKS, ROUNDS = 6, 3


def variants() -> list[Variant]:
    originals = [variant(layer, route) for route in ROUTES for layer in US]
    return [*originals, variant("libpq", "socket", copy=1), variant("django_orm", "pgbouncer", copy=1)]


def blocks() -> list[VariantBlock]:
    return [
        _block(of, position, number) for number in range(BLOCKS) for position, of in enumerate(variants())
    ]


def summary() -> dict[str, Any]:
    return summarise(definition(BLOCKS, ROUNDS, ROUTES), variants(), blocks(), "psycopg")


def _block(of: Variant, position: int, number: int) -> VariantBlock:
    """Noise without a random generator: waves of a few tenths of a per cent, the machine's drift on top."""
    base = US[of.layer] + ROUTE_US[of.route]
    times = [
        base
        * (1 + 0.1 * math.sin(3 * number + round_))
        * (1 + 0.004 * math.sin(11 * position + 7 * number + 5 * round_))
        for round_ in range(ROUNDS)
    ]
    slices = tuple(
        piece(us, round_, user_ns=9_000_000, sys_ns=3_000_000, server_ns=40_000_000)
        for round_, us in enumerate(times)
    )
    timed = timed_block(of, number, _durations_ns(times, sum(one.ops for one in slices)))
    cold = {"startup": 80_000.0 + number, "connect": 2_000.0 if number % 2 else None, "first": 500.0 - number}
    return VariantBlock(**{**timed.__dict__, "slices": slices, "cold_us": cold, "rows_per_op": 1})


def _durations_ns(times: list[float], count: int) -> np.ndarray:
    mean_ns = 1000 * sum(times) / len(times)
    return np.linspace(0.8 * mean_ns, 1.2 * mean_ns, count).astype(np.uint64)


if __name__ == "__main__":
    PATH.write_text(json.dumps(summary(), indent=1, allow_nan=False) + "\n")
