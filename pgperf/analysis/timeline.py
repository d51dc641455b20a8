"""A run's host over time: the CPU time of each role, from the first slice to the last. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Self

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.cpu_accounting import SHARES, Account
from pgperf.core.records import SliceRecord, VariantBlock

#: So many points, and one more for each block at most: longer runs have several slices in one.
POINTS = 200

Measured = tuple[VariantBlock, SliceRecord]


@dataclass(frozen=True)
class Moment:
    """The mean of consecutive slices of one block, `seconds` after the first slice began.

    `variant` is the label, None where the slices are of several variants. `block` counts from 0.
    """

    seconds: float
    share: CpuShares = field(default_factory=CpuShares)
    variant: str | None = None
    block: int | None = None


@dataclass(frozen=True)
class Timeline:
    """The moments in the order of time; every slice is in one of them.

    Start-up and warm-up lie between the blocks and have no moment.
    """

    moments: tuple[Moment, ...]

    def to_json(self) -> dict[str, Any]:
        """As stored: a list for each field, a value per moment."""
        return {
            "seconds": [each.seconds for each in self.moments],
            "roles": {role: [getattr(each.share, role) for each in self.moments] for role in SHARES},
            "variant": [each.variant for each in self.moments],
            "block": [each.block for each in self.moments],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """None for a run without CPU accounts."""
        if not stored:
            return None
        columns = (stored[name] for name in ("seconds", "variant", "block"))
        shares = _shares(stored["roles"], len(stored["seconds"]))
        moments = zip(*columns, shares, strict=True)
        return cls(
            tuple(Moment(seconds, share, variant, block) for seconds, variant, block, share in moments)
        )


def timeline(blocks: Iterable[VariantBlock], points: int = POINTS) -> Timeline | None:
    """The timeline of at most so many moments; None if no slice has a CPU account."""
    measured = sorted(_measured(blocks), key=lambda each: each[1].started_ns)
    found = [(part, account) for part in _parts(measured, points) if (account := _account(part))]
    numbers = _counted([_block(part[0]) for part, _ in found])
    moments = (
        Moment(_middle_s(part, measured[0][1].started_ns), account.shares(), _variant(part), number)
        for (part, account), number in zip(found, numbers, strict=True)
    )
    return Timeline(tuple(moments)) if found else None


def _shares(roles: Mapping[str, Sequence[float | None]], count: int) -> Iterator[CpuShares]:
    return (CpuShares(**{role: values[at] for role, values in roles.items()}) for at in range(count))


def _measured(blocks: Iterable[VariantBlock]) -> Iterable[Measured]:
    return ((block, piece) for block in blocks for piece in block.slices if piece.elapsed_ns)


def _parts(measured: Sequence[Measured], points: int) -> Iterable[Sequence[Measured]]:
    size = -(-len(measured) // points) or 1
    for _, group in groupby(measured, _block):
        own = list(group)
        yield from (own[start : start + size] for start in range(0, len(own), size))


def _block(measured: Measured) -> tuple[int, int]:
    return measured[0].cohort, measured[0].block


def _counted(blocks: Sequence[tuple[int, int]]) -> list[int]:
    """The blocks, in the order of time, as numbers."""
    numbers: dict[tuple[int, int], int] = {}
    return [numbers.setdefault(block, len(numbers)) for block in blocks]


def _account(part: Iterable[Measured]) -> Account | None:
    return Account.of([replace(block, slices=(piece,)) for block, piece in part])


def _middle_s(part: Sequence[Measured], start_ns: int) -> float:
    first, last = part[0][1], part[-1][1]
    return ((first.started_ns + last.started_ns + (last.elapsed_ns or 0)) / 2 - start_ns) / 1e9


def _variant(part: Iterable[Measured]) -> str | None:
    labels = {block.variant.label for block, _ in part}
    return labels.pop() if len(labels) == 1 else None
