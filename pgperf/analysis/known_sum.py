"""The sum of counts, some of which may not be known. Pure."""

from collections.abc import Iterable


def known_sum(values: Iterable[int | None]) -> int | None:
    """None where one of them is not known; 0 of none."""
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)
