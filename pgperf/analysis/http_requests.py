"""The HTTP requests of a variant: failures, kept connections and the lengths of bodies. Pure.

A slice with a failed request counts for no figure. A variant of which more than `MOST_FAILED` of all
requests failed has no outcome: its figures are shown, and no comparison has it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from pgperf.core.records import SliceRecord, Variant, VariantBlock, by_variant

MOST_FAILED = 0.001


@dataclass(frozen=True)
class HttpRequests:
    """`requests` and `errors` (by reason) of all slices, lead-ins included. `kept`: the share of the
    timed requests that found their connection open. Lengths in bytes. None is not known.
    """

    requests: int
    errors: Mapping[str, int] = field(default_factory=dict)
    kept: float | None = None
    least_bytes: int | None = None
    most_bytes: int | None = None

    @property
    def failed(self) -> float:
        """The share of requests that failed."""
        return sum(self.errors.values()) / self.requests if self.requests else 0.0

    @property
    def has_outcome(self) -> bool:
        return self.failed <= MOST_FAILED

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """None for a variant without HTTP requests."""
        return cls(**stored) if stored else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def http_requests(blocks: Sequence[VariantBlock]) -> HttpRequests | None:
    """Of one variant's blocks; None if it makes no HTTP requests."""
    found = [block.http for block in blocks if block.http]
    if not found:
        return None
    lengths = [length for each in found for length in each["lengths"]]
    return HttpRequests(
        requests=sum(each["requests"] for each in found),
        errors=dict(sum((Counter(each["errors"]) for each in found), Counter())),
        kept=_kept(counting(blocks)),
        least_bytes=min(lengths, default=None),
        most_bytes=max(lengths, default=None),
    )


def counting(blocks: Iterable[VariantBlock]) -> list[VariantBlock]:
    """The blocks without the slices in which a request failed."""
    return [
        replace(block, slices=tuple(piece for piece in block.slices if not piece.errors)) for block in blocks
    ]


def without_outcome(blocks: Iterable[VariantBlock]) -> set[Variant]:
    """The variants of which too many requests failed."""
    found = {variant: http_requests(own) for variant, own in by_variant(blocks).items()}
    return {variant for variant, requests in found.items() if requests and not requests.has_outcome}


def _kept(blocks: Iterable[VariantBlock]) -> float | None:
    known = [
        (block, piece) for block in blocks for piece in block.slices if piece.new_connections is not None
    ]
    timed = sum(_timed(block, piece) for block, piece in known)
    return 1 - sum(piece.new_connections or 0 for _, piece in known) / timed if timed else None


def _timed(block: VariantBlock, piece: SliceRecord) -> int:
    """Of an open loop, those that were due in the window and ran, whenever they ended."""
    if not block.variant.is_open_loop:
        return piece.ops
    return (piece.due or 0) - (piece.skipped or 0) - (piece.backlog or 0)
