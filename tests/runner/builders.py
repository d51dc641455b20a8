"""Small definitions for the engine's tests."""

from dataclasses import replace
from typing import Any

from pgperf.core.records import Definition, WorkloadDefinition

FAKE_WORK = WorkloadDefinition("spin", "SELECT 1")


def definition(**changes: Any) -> Definition:
    base = Definition(
        benchmark="test", workloads=(FAKE_WORK,), layers=("fake",), routes=("here",), placement="scheduler", blocks=1,
        rounds=1, slice_ms=5, lead_in_ms=1, warm_up_ms=1, warm_up_ops=5, cold_blocks=1, nominal_us={"fake": 20.0},
    )  # fmt: skip
    return replace(base, **changes)
