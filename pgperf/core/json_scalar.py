"""Which values are scalars of JSON. Standard library only."""

import math
from typing import Any


def is_json_scalar(item: Any) -> bool:
    """Is it no list and no object? JSON has no NaN and no infinity."""
    return math.isfinite(item) if isinstance(item, float) else not isinstance(item, list | dict)
