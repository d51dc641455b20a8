"""Processor time per operation, by role, from what the slices carry. What was not seen is None, never 0."""

from collections.abc import Callable, Iterable

from pgperf.records import SliceRecord

_ROLES: dict[str, Callable[[SliceRecord], int | None]] = {
    "client_user": lambda piece: piece.user_ns,
    "client_sys": lambda piece: piece.sys_ns,
    "pooler": lambda piece: piece.pooler_ns,
    "server": lambda piece: piece.server_ns,
}


def per_op_us(slices: Iterable[SliceRecord]) -> dict[str, float | None]:
    """µs of processor time per operation: all the role's time in lead-ins and windows over all their operations.

    The split into user and sys is counted in clock ticks: read it over many slices, never in one.
    `unattributed` needs the whole machine's books, which slices do not carry.
    """
    pieces = list(slices)
    return {role: _per_op_us(pieces, read) for role, read in _ROLES.items()} | {"unattributed": None}


def _per_op_us(pieces: list[SliceRecord], read: Callable[[SliceRecord], int | None]) -> float | None:
    seen = [(ns, piece.lead_in_ops + piece.ops) for piece in pieces if (ns := read(piece)) is not None]
    ops = sum(count for _, count in seen)
    return sum(ns for ns, _ in seen) / ops / 1000 if ops else None
