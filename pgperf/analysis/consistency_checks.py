"""Two laws that every measurement must obey, checked on each variant: what fails them is not to be believed. Pure.

Little's law: of N clients in a closed loop, N = X (R + Z), with X operations per second, R the time of one, and Z what
a client does between two. The utilisation law: a resource of which each operation takes D is busy U = X D.

A law tells something only where its two sides were counted apart. Where they are one account, it is not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgperf.analysis.cpu_accounting import booked, operations
from pgperf.core.records import VariantBlock

TOLERANCE = 0.05
#: Of a processor: two accounts of next to nothing may differ by more than their twentieth.
NEGLIGIBLE = 0.01

#: Roles that count their own time; of the others there is the scheduler's account alone.
_OWN = {"clients": ("client_user", "client_sys")}
_ROLES = ("clients", "pooler", "server")
_ONE_ACCOUNT = "not checked: one account only"
_ONE_CLIENT = "not checked: the window of one client is the sum of its operations' times"


def checks(blocks: Iterable[VariantBlock], row: Mapping[str, Any]) -> dict[str, Any]:
    """`little` and `utilisation` (by role) of a variant's blocks and row.

    `holds` is null where it cannot be told; `why` says so where nothing could make it fail.
    """
    own = list(blocks)
    return {"little": little(own, row.get("clients", 1)), "utilisation": utilisation(own, row)}


def little(own: Sequence[VariantBlock], clients: int) -> dict[str, Any]:
    """How many clients the throughput and the mean time of all operations account for, and Z (`between_us`)."""
    ops = sum(piece.ops for block in own for piece in block.slices)
    seconds = sum(piece.window_ns for block in own for piece in block.slices) / 1e9
    busy_s = sum(block.latency_sum_ns for block in own) / 1e9
    unknown = {"clients": clients, "accounted": None, "between_us": None, "holds": None}
    if clients == 1:
        return {**unknown, "why": _ONE_CLIENT}
    if not (ops and seconds and busy_s):
        return unknown
    accounted = busy_s / seconds
    return {
        "clients": clients,
        "accounted": accounted,
        "between_us": (clients * seconds - busy_s) / ops * 1e6,
        "holds": abs(accounted - clients) <= TOLERANCE * clients,
    }


def utilisation(own: Iterable[VariantBlock], row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By role: processors busy by the law (`law`), and as the books of the host have them (`measured`).

    The clients' D is what they say of themselves, the books' is the scheduler's: two accounts of one thing. All is over
    lead-ins and windows and what is between them, of the slices that kept books.
    """
    books, cpu = row.get("cpu_account") or {}, row.get("cpu_us_per_op") or {}
    ops, seconds = operations(booked(own)), books.get("elapsed_s")
    per_s = ops / seconds if seconds else None
    return {role: _check(role, per_s, cpu, _account_fields(books, role)) for role in _ROLES}


def _check(
    role: str, per_s: float | None, cpu: Mapping[str, float | None], measured: float | None
) -> dict[str, Any]:
    if role not in _OWN:
        return {"law": None, "measured": measured, "holds": None, "why": _ONE_ACCOUNT}
    return _compared(_busy(per_s, [cpu.get(name) for name in _OWN[role]]), measured)


def _busy(ops_per_s: float | None, parts_us: Sequence[float | None]) -> float | None:
    known = [us for us in parts_us if us is not None]
    return ops_per_s * sum(known) / 1e6 if ops_per_s is not None and len(known) == len(parts_us) else None


def _account_fields(books: Mapping[str, Any], role: str) -> float | None:
    share, cpus = (books.get("share") or {}).get(role), books.get("cpus")
    return None if share is None or cpus is None else float(share * cpus)


def _compared(law: float | None, measured: float | None) -> dict[str, Any]:
    if law is None or measured is None:
        return {"law": law, "measured": measured, "holds": None}
    apart = abs(law - measured)
    return {"law": law, "measured": measured, "holds": apart <= max(TOLERANCE * measured, NEGLIGIBLE)}
