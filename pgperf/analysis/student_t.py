"""Student's t distribution for whole degrees of freedom: the one quantile that the intervals need."""

import math
from functools import lru_cache


def coverage(t: float, df: int) -> float:
    """The probability that |T| <= t, from the finite series in the angle atan(t / sqrt(df)).

    `t` >= 0, `df` >= 1.
    """
    angle = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for k in range(2 + odd, df - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return (angle + sine * total) * 2 / math.pi if odd else sine * total


@lru_cache(maxsize=1024)
def quantile(confidence: float, df: int) -> float:
    """The t for which |T| <= t has the probability `confidence` (0 < confidence < 1)."""
    high = 1.0
    while coverage(high, df) < confidence:
        high *= 2
    low = 0.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if coverage(middle, df) < confidence else (low, middle)
    return high
