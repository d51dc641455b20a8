"""Processor time per operation, by role, from what the slices carry. What was not seen is None, never 0."""

from collections.abc import Callable, Iterable, Sequence

from pgperf.analysis.cpu_accounting import Account, operations
from pgperf.core.records import SliceRecord, VariantBlock

_ROLES: dict[str, Callable[[SliceRecord], int | None]] = {
    "client_user": lambda piece: piece.user_ns,
    "client_sys": lambda piece: piece.sys_ns,
    "pooler": lambda piece: piece.pooler_ns,
    "server": lambda piece: piece.server_ns,
    "auxiliaries": lambda piece: piece.auxiliary_ns,
}


def per_op_us(blocks: Sequence[VariantBlock]) -> dict[str, float | None]:
    """µs of processor time per operation: all the role's time in lead-ins and windows over all their operations.

    The split into user and sys is counted in clock ticks: read it over many slices, never in one. `other` and
    `unattributed` are the host's time meanwhile, spent by others or by nobody knows whom.
    """
    pieces = [piece for block in blocks for piece in block.slices]
    account = Account.of(blocks)
    rest = {name: account.per_op_us(name) if account else None for name in ("other", "unattributed")}
    return {role: _per_op_us(pieces, read) for role, read in _ROLES.items()} | rest


def _per_op_us(pieces: Iterable[SliceRecord], read: Callable[[SliceRecord], int | None]) -> float | None:
    seen = [(ns, piece) for piece in pieces if (ns := read(piece)) is not None]
    ops = operations(piece for _, piece in seen)
    return sum(ns for ns, _ in seen) / ops / 1000 if ops else None
