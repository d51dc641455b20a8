"""A small run whose summary is kept in golden_summary.json.

`python -m tests.analysis.golden` writes it anew.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pgperf.analysis.summary import summarise
from pgperf.core.records import Variant, VariantBlock

from .synthetic import definition, piece, timed_block, variant

PATH = Path(__file__).with_name("golden_summary.json")
ROUTES = ("socket", "pgbouncer")
US = {"libpq": 60.0, "psycopg2": 64.0, "psycopg": 70.0, "django_cursor": 90.0, "django_orm": 210.0}
ROUTE_US = {"socket": 0.0, "pgbouncer": 15.0}
BLOCKS, ROUNDS = 6, 3
_BOOKED = {
    "elapsed_ns": 255_000_000, "host_ns": 63_000_000, "iowait_ns": 0, "steal_ns": 5_000_000, "runner_ns": 1_000_000,
    "client_ns": 12_000_000, "client_wait_ns": 200_000, "client_busiest_ns": 12_000_000, "server_ns": 40_000_000,
    "server_wait_ns": 300_000, "server_busiest_ns": 40_000_000, "auxiliary_ns": 2_000_000,
}  # fmt: skip
_COUNTED = {
    "cpus": 2, "source": "cgroup", "elapsed_ns": 900_000_000, "host_ns": 200_000_000, "ours_ns": 175_000_000,
    "others_ns": 20_000_000, "role_cpus": {"clients": 1, "server": 1, "pooler": 1},
    "ticks_and_switches": {
        "client": {"user": 3, "system": 1, "voluntary": 9000, "involuntary": 9},
        "server": {"user": 8, "system": 4, "voluntary": 9000, "involuntary": 0},
        "pooler": None,
    },
}  # fmt: skip


def variants() -> list[Variant]:
    originals = [variant(layer, route) for route in ROUTES for layer in US]
    return [*originals, variant("libpq", "socket", control=1), variant("django_orm", "pgbouncer", control=1)]


def blocks() -> list[VariantBlock]:
    return [
        _block(of, position, number) for number in range(BLOCKS) for position, of in enumerate(variants())
    ]


def summary() -> dict[str, Any]:
    """All but the timeline, which has tests of its own and would be most of the file."""
    found = summarise(definition(BLOCKS, ROUNDS, ROUTES), variants(), blocks(), "psycopg")
    comparisons = [
        {**asdict(each), "variant": each.variant.label, "baseline": each.baseline.label}
        for each in found["comparisons"]
    ]
    return {key: value for key, value in found.items() if key != "timeline"} | {"comparisons": comparisons}


def _block(of: Variant, position: int, number: int) -> VariantBlock:
    """Noise without a random generator: waves of a few tenths of a per cent, the machine's drift on
    top.
    """
    base = US[of.layer] + ROUTE_US[of.route]
    times = [
        base
        * (1 + 0.1 * math.sin(3 * number + round_))
        * (1 + 0.004 * math.sin(11 * position + 7 * number + 5 * round_))
        for round_ in range(ROUNDS)
    ]
    slices = tuple(
        piece(us, round_, user_ns=9_000_000, sys_ns=3_000_000, **_BOOKED) for round_, us in enumerate(times)
    )
    timed = timed_block(of, number, _durations_ns(times, sum(one.ops for one in slices)))
    cold = {"startup": 80_000.0 + number, "connect": 2_000.0 if number % 2 else None, "first": 500.0 - number}
    more = {"slices": slices, "cold_us": cold, "rows_per_op": 1, "cpu_account": _COUNTED}
    return VariantBlock(**{**timed.__dict__, **more})


def _durations_ns(times: list[float], count: int) -> np.ndarray:
    mean_ns = 1000 * sum(times) / len(times)
    return np.linspace(0.8 * mean_ns, 1.2 * mean_ns, count).astype(np.uint64)


if __name__ == "__main__":
    PATH.write_text(json.dumps(summary(), indent=1, allow_nan=False) + "\n")
