"""Looks at made-up machines."""

import math

from pgperf.analysis.machine_look import MachineLook


def look(scatter: float = 0.01, **changed: object) -> MachineLook:
    """A quiet machine with 70 slices that are so much longer or shorter than 100 µs, in turn."""
    values: dict[str, object] = {
        "seconds": 5.0,
        "steal": 0.004,
        "others": {0: 0.03, 1: 0.01},
        "programs": (),
        "wake_up_us": (60.0, 90.0),
        "slices_us": tuple(100 * math.exp(scatter * (-1) ** number) for number in range(70)),
        "step_s": 0.07,
    }
    return MachineLook(**{**values, **changed})  # type: ignore[arg-type]


QUIET = look()
