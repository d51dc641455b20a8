"""How many server processes the samples of a diagnostic slice are of."""

from typing import Any

from pgperf.analysis import diagnostics as module
from pgperf.core.records import VariantBlock

from .synthetic import variant


def diagnostics(blocks: list[VariantBlock], rows: int | None = None) -> dict[str, Any]:
    """The diagnostics as plain JSON; {} without any."""
    found = module.diagnostics(blocks, rows)
    return found.to_json() if found else {}


def backends(*raws: dict[str, Any]) -> float | None:
    nothing = {
        "seconds": 1.0,
        "ops": 10,
        "pooler": None,
        "statements": None,
        "notes": {},
        "calls_expected": 1,
    }
    blocks = [
        VariantBlock(variant=variant(), cohort=0, block=number, slices=(), diagnostics={**nothing, **raw})
        for number, raw in enumerate(raws)
    ]
    found: float | None = diagnostics(blocks)["backends"]
    return found


def test_backends_are_the_mean_per_sample() -> None:
    running, waiting = ["active", "", "", 30], ["active", "Lock", "advisory", 90]
    assert backends({"sessions": [running, waiting], "samples": 30}) == 4.0
    assert backends({"sessions": [running], "samples": 30}, {"sessions": [running], "samples": 10}) == 1.5


def test_without_samples_or_counts_backends_are_unknown() -> None:
    assert backends({"sessions": [], "samples": 30}) is None
    assert backends({"sessions": [["active", "", "", 30]]}) is None
