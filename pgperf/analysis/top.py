"""The processes of a variant's diagnostic slice, as `top` shows them."""

from collections.abc import Iterable
from typing import Any

from pgperf.core.records import VariantBlock


def top(blocks: Iterable[VariantBlock]) -> dict[str, Any]:
    """The last slice that was looked at; empty where none was.

    A variant of several cohorts was looked at in each.
    """
    seen = [block.top for block in blocks if block.top]
    return seen[-1] if seen else {}
