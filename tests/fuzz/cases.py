"""The number of inputs of a property: few in tests, thousands in `python -m soak.fuzz_python`.

FUZZ_CASES is the number of inputs of a property of weight 1, FUZZ_COUNTS the directory where each
test process leaves the count of each area and its costliest input. Each input has a bar of CPU time
and memory.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.fuzz.cost import Cost, cost_of

CASES = int(os.environ.get("FUZZ_CASES", "0"))
_IN_TESTS = 5

counts: Counter[str] = Counter()
worst: dict[str, Cost] = {}


def fuzzed(
    area: str, weight: float = 1.0, **inputs: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Any]:
    """The test as a property over `inputs`.

    Without FUZZ_CASES its inputs are few and always the same.
    """
    examples = max(2, int((CASES or _IN_TESTS) * weight))

    def decorate(test: Callable[..., None]) -> Any:
        @wraps(test)
        def counted(*args: Any, **values: Any) -> None:
            counts[area] += 1
            cost = cost_of(lambda: test(*args, **values))
            worst[area] = worst.get(area, Cost()).most(cost)
            cost.check()

        limits = settings(
            max_examples=examples, deadline=None, database=None, derandomize=not CASES, print_blob=True,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        return limits(given(**inputs)(counted))

    return decorate


def keep_counts() -> None:
    """At the end of a campaign, in each of its test processes."""
    if folder := os.environ.get("FUZZ_COUNTS"):
        areas = {area: {"inputs": count, **asdict(worst.get(area, Cost()))} for area, count in counts.items()}
        (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(areas))
