"""Two laws that every measurement must obey, checked on each variant: figures that break one are
wrong. Pure.

Little's law: of N clients in a closed loop, N = X (R + Z), with X operations per second, R the time
of one, and Z the client's time between two. The utilisation law: a resource of which each operation
takes D is busy U = X D.

A check tells something only where its two sides were counted apart; otherwise it is not made.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pgperf.analysis.cpu_account import CpuAccount, CpuPerOperation
from pgperf.analysis.cpu_accounting import accounted, operations
from pgperf.core.records import VariantBlock

TOLERANCE = 0.05
#: Of a CPU: two accounts of so little may differ by more than the tolerance.
NEGLIGIBLE = 0.01
#: CPU time of a client process before and after each slice, which the scheduler counts and the client
#: does not. Python clients took 0.4 to 0.7 ms on a shared virtual machine, and 1 to 2.6 ms (medians of
#: 30 slices) while others kept it busy; the C client 0.07 ms.
AROUND_A_SLICE_S = 0.003

#: The role whose processes count their own CPU time; of the others there is the scheduler's account
#: alone.
CLIENTS = "clients"
_ONE_ACCOUNT = "not checked: one account only"
_OPEN_LOOP = "not checked: a client of an open loop waits for its schedule"
_ONE_CLIENT = "not checked: the window of one client is the sum of its operations' times"
_BY_COUNT = "not checked: the window of a slice by count is made of its operations' times"
#: Such windows, in whole nanoseconds, fit their operations so well in every block; a timed one may
#: by chance.
_MADE_OF_ITS_OPERATIONS = 1e-6


@dataclass(frozen=True)
class LittlesLaw:
    """How many of the `clients` throughput and mean time account for, and Z (`between_us`).

    None is not known.
    """

    clients: int
    accounted: float | None = None
    between_us: float | None = None
    holds: bool | None = None
    open_loop: bool = False

    @property
    def why(self) -> str:
        """Why it is not checked; "" where it could be."""
        if self.open_loop:
            return _OPEN_LOOP
        if self.clients == 1:
            return _ONE_CLIENT
        return _BY_COUNT if self.accounted is not None and self.holds is None else ""


@dataclass(frozen=True)
class UtilisationLaw:
    """CPUs that a role kept busy: `predicted` by throughput, `measured` by the CPU account of the
    host.
    """

    predicted: float | None = None
    measured: float | None = None
    holds: bool | None = None


@dataclass(frozen=True)
class Checks:
    """The checks of one variant; `utilisation` by role. None was not checked."""

    little: LittlesLaw | None = None
    utilisation: Mapping[str, UtilisationLaw] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        little = stored["little"]
        laws = {role: UtilisationLaw(**law) for role, law in stored["utilisation"].items()}
        return cls(LittlesLaw(**little) if little else None, laws)


def why_unchecked(role: str) -> str:
    """Why the utilisation law is not checked for a role; "" where it could be."""
    return "" if role == CLIENTS else _ONE_ACCOUNT


def checks(
    blocks: Sequence[VariantBlock], clients: int, cpu: CpuPerOperation, account: CpuAccount | None
) -> Checks:
    """Both laws, on a variant's blocks and what was made of them."""
    return Checks(little(blocks, clients), utilisation(blocks, cpu, account))


def little(blocks: Sequence[VariantBlock], clients: int) -> LittlesLaw:
    """Little's law over the windows of all slices.

    A window cuts operations at both ends, so that in each slice the two sides may differ by one
    operation of each client. The slices' differences are independent.
    """
    if any(block.variant.is_open_loop for block in blocks):
        return LittlesLaw(clients, open_loop=True)
    slices = sum(1 for block in blocks for piece in block.slices if piece.ops)
    ops = sum(piece.ops for block in blocks for piece in block.slices)
    seconds = sum(piece.window_ns for block in blocks for piece in block.slices) / 1e9
    busy_s = sum(block.latency_sum_ns for block in blocks) / 1e9
    if clients == 1 or not (ops and seconds and busy_s):
        return LittlesLaw(clients)
    accounted_for = busy_s / seconds
    if all(_made_of_its_operations(block, clients) for block in blocks):
        return LittlesLaw(clients, accounted_for)
    cut = busy_s / ops / seconds * math.sqrt(slices)
    return LittlesLaw(
        clients,
        accounted_for,
        between_us=(clients * seconds - busy_s) / ops * 1e6,
        holds=abs(accounted_for - clients) <= (TOLERANCE + cut) * clients,
    )


def _made_of_its_operations(block: VariantBlock, clients: int) -> bool:
    window_ns = clients * sum(piece.window_ns for piece in block.slices)
    return math.isclose(block.latency_sum_ns, window_ns, rel_tol=_MADE_OF_ITS_OPERATIONS)


def utilisation(
    blocks: Sequence[VariantBlock], cpu: CpuPerOperation, account: CpuAccount | None
) -> dict[str, UtilisationLaw]:
    """The utilisation law by role, over lead-ins, windows and the time between them.

    The clients' D is their own count and the account is the scheduler's: two accounts of one thing.
    """
    return {
        CLIENTS: _of_clients(blocks, cpu, account),
        **{
            role: UtilisationLaw(None, _measured(account, role))
            for role in ("proxy", "web")
            if _measured(account, role)
        },
        "pooler": UtilisationLaw(None, _measured(account, "pooler")),
        "server": UtilisationLaw(None, _measured(account, "server")),
    }


def _of_clients(
    blocks: Sequence[VariantBlock], cpu: CpuPerOperation, account: CpuAccount | None
) -> UtilisationLaw:
    measured, pieces = _measured(account, "client"), accounted(blocks)
    if account is None or not account.elapsed_s or cpu.client is None:
        return UtilisationLaw(None, measured)
    predicted = operations(pieces) / account.elapsed_s * cpu.client / 1e6
    if measured is None:
        return UtilisationLaw(predicted, None)
    around = len(pieces) * blocks[0].variant.clients * AROUND_A_SLICE_S / account.elapsed_s
    allowed = max(TOLERANCE * measured, NEGLIGIBLE)
    return UtilisationLaw(predicted, measured, -allowed <= measured - predicted <= allowed + around)


def _measured(account: CpuAccount | None, role: str) -> float | None:
    """CPUs that the role kept busy."""
    share = account.share.of(role) if account else None
    return None if share is None or account is None or account.cpus is None else share * account.cpus
