"""CPU time per operation, by role, from what the slices carry. None is not known, never 0."""

from collections.abc import Iterable, Sequence

from pgperf.analysis.cpu_account import CpuPerOperation
from pgperf.analysis.cpu_accounting import Account, operations
from pgperf.core.records import SliceRecord, VariantBlock


def per_op_us(blocks: Sequence[VariantBlock]) -> CpuPerOperation:
    """The CPU time of a role in lead-ins and windows, over all their operations, µs.

    The kernel counts user and system time in clock ticks: read them over many slices, never in one.
    `other` and `unattributed` are the host's CPU time meanwhile that no role spent.
    """
    pieces = [piece for block in blocks for piece in block.slices]
    account = Account.of(blocks)
    return CpuPerOperation(
        client_user=_per_op_us((piece.user_ns, piece) for piece in pieces),
        client_sys=_per_op_us((piece.sys_ns, piece) for piece in pieces),
        proxy=_per_op_us((piece.proxy_ns, piece) for piece in pieces),
        web=_per_op_us((piece.web_ns, piece) for piece in pieces),
        pooler=_per_op_us((piece.pooler_ns, piece) for piece in pieces),
        server=_per_op_us((piece.server_ns, piece) for piece in pieces),
        auxiliaries=_per_op_us((piece.auxiliary_ns, piece) for piece in pieces),
        other=account.per_op_us("other") if account else None,
        unattributed=account.per_op_us("unattributed") if account else None,
    )


def _per_op_us(timed: Iterable[tuple[int | None, SliceRecord]]) -> float | None:
    seen = [(ns, piece) for ns, piece in timed if ns is not None]
    ops = operations(piece for _, piece in seen)
    return sum(ns for ns, _ in seen) / ops / 1000 if ops else None
