"""A run's host over time: the CPU time of each role, from the first slice to the last. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from pgperf.analysis.cpu_accounting import SHARES, Account
from pgperf.core.records import SliceRecord, VariantBlock

#: So many points, and one more for each block at most: longer runs have several slices in one.
POINTS = 200

Moment = tuple[VariantBlock, SliceRecord]


def timeline(blocks: Iterable[VariantBlock], points: int = POINTS) -> dict[str, Any]:
    """`seconds` since the first slice, `roles` (shares as in the CPU account), `variant`, `block`:
    a value per point.

    A point is the mean of consecutive slices of one block, and every slice is in one. Its variant
    is None where the slices are of several. Start-up and warm-up lie between the blocks and have no
    point; `block` counts from 0. Empty if no slice has a CPU account.
    """
    moments = sorted(_moments(blocks), key=lambda moment: moment[1].started_ns)
    found = [(part, account) for part in _parts(moments, points) if (account := _account(part))]
    if not found:
        return {}
    shares = [asdict(account.shares()) for _, account in found]
    return {
        "seconds": [_middle_s(part, moments[0][1].started_ns) for part, _ in found],
        "roles": {role: [each[role] for each in shares] for role in SHARES},
        "variant": [_variant(part) for part, _ in found],
        "block": _counted([_block(part[0]) for part, _ in found]),
    }


def _moments(blocks: Iterable[VariantBlock]) -> Iterable[Moment]:
    return ((block, piece) for block in blocks for piece in block.slices if piece.elapsed_ns)


def _parts(moments: Sequence[Moment], points: int) -> Iterable[Sequence[Moment]]:
    size = -(-len(moments) // points) or 1
    for _, group in groupby(moments, _block):
        own = list(group)
        yield from (own[start : start + size] for start in range(0, len(own), size))


def _block(moment: Moment) -> tuple[int, int]:
    return moment[0].cohort, moment[0].block


def _counted(blocks: Sequence[tuple[int, int]]) -> list[int]:
    """The blocks, in the order of time, as numbers."""
    numbers: dict[tuple[int, int], int] = {}
    return [numbers.setdefault(block, len(numbers)) for block in blocks]


def _account(part: Iterable[Moment]) -> Account | None:
    return Account.of([replace(block, slices=(piece,)) for block, piece in part])


def _middle_s(part: Sequence[Moment], start_ns: int) -> float:
    first, last = part[0][1], part[-1][1]
    return ((first.started_ns + last.started_ns + (last.elapsed_ns or 0)) / 2 - start_ns) / 1e9


def _variant(part: Iterable[Moment]) -> str | None:
    labels = {block.variant.label for block, _ in part}
    return labels.pop() if len(labels) == 1 else None
