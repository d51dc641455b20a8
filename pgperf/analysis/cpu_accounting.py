"""The processor books of a variant: whose time the host's processors were, from what slices and blocks carry. Pure.

What was not seen is None, never 0. `other` is the process that measures, and those that were seen at the edges of the
blocks and are nobody's here; `unattributed` is what the host's total has and no process explains. Without a census that
can part the two all of it is `unattributed`, and `other` is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgperf.core.records import SliceRecord, VariantBlock

#: Role in the books -> field of a slice.
ROLES = {
    "clients": "client_ns",
    "pooler": "pooler_ns",
    "server": "server_ns",
    "auxiliaries": "auxiliary_ns",
}
SHARES = (*ROLES, "other", "unattributed", "idle", "iowait", "steal")
_WAITS = {"client": "client_wait_ns", "pooler": "pooler_wait_ns", "server": "server_wait_ns"}
_MOST = {"client": "client_busiest_ns", "pooler": "pooler_ns", "server": "server_busiest_ns"}
#: What the account of another host has.
_FAR = ("elapsed", "busy", "iowait", "steal")


@dataclass(frozen=True)
class Account:
    """Sums over the slices that kept books, ns: the processors' whole time (`capacity_ns`), and whose it was."""

    cpus: int
    source: str
    elapsed_ns: int
    ops: int
    spent_ns: Mapping[str, int | None]

    @classmethod
    def of(cls, blocks: Sequence[VariantBlock]) -> "Account | None":
        """The account of these blocks' slices; None if none of them kept books."""
        pieces = booked(blocks)
        counted = [block.cpu_account for block in blocks if block.cpu_account.get("cpus")]
        if not pieces or not counted:
            return None
        away = {role for block in blocks for role in _elsewhere(block).get("roles", ())}
        roles = {role: None if role in away else total(pieces, name) for role, name in ROLES.items()}
        rest = _rest(pieces, counted, sum(ns or 0 for ns in roles.values()))
        more = {name: total(pieces, f"{name}_ns") for name in ("iowait", "steal")}
        return cls(
            cpus=int(counted[-1]["cpus"]),
            source=str(counted[-1]["source"]),
            elapsed_ns=sum(piece.elapsed_ns or 0 for piece in pieces),
            ops=operations(pieces),
            spent_ns={**roles, **rest, **more},
        )

    @property
    def capacity_ns(self) -> int:
        """All the processors' time; a few clock ticks more where accounts of different kinds add up to that."""
        return max(self.cpus * self.elapsed_ns, sum(ns or 0 for ns in self.spent_ns.values()))

    def busy(self, busy_ns: int | None) -> "Account":
        """The same with what is left of the time that the whole host was busy as unattributed."""
        roles = [self.spent_ns[role] for role in ROLES if self.spent_ns[role] is not None]
        rest = None if busy_ns is None else max(0, busy_ns - sum(ns or 0 for ns in roles))
        return replace(self, spent_ns={**self.spent_ns, "unattributed": rest})

    def shares(self) -> dict[str, float | None]:
        """Of the processors' time. Where all that was busy is known, what is left is `idle`, and the sum is 1.

        A role whose processes are on another host has no share of this one.
        """
        known = sum(ns or 0 for ns in self.spent_ns.values())
        whole = self.spent_ns["unattributed"] is not None
        spent = {**self.spent_ns, "idle": self.capacity_ns - known if whole else None}
        return {name: _over(spent[name], self.capacity_ns) for name in SHARES}

    def per_op_us(self, name: str) -> float | None:
        us = _over(self.spent_ns[name], self.ops)
        return None if us is None else us / 1000


def cpu_account(blocks: Sequence[VariantBlock]) -> dict[str, Any]:
    """A variant's `cpu_account` as plain JSON; empty if its slices kept none.

    `runner`: the share of the process that measures and of the relay on the route, a part of `other`.
    `role_cpus`: how many processors clients, pooler and server could use, null where that is not known.
    """
    account = Account.of(blocks)
    if not account:
        return {}
    pieces = booked(blocks)
    return {
        "cpus": account.cpus,
        "elapsed_s": account.elapsed_ns / 1e9,
        "source": account.source,
        "share": account.shares(),
        "runner": _over(total(pieces, "runner_ns"), account.capacity_ns),
        "role_cpus": _seats(blocks),
        "wait_us_per_op": {role: _per_op_us(pieces, name) for role, name in _WAITS.items()},
        "switches_per_op": _switches(blocks),
        "system_share": {role: _system(blocks, role) for role in _WAITS},
        "busiest": {role: _over(total(pieces, name), account.elapsed_ns) for role, name in _MOST.items()},
        "short_lived_us_per_op": _passing_us(blocks),
        "server_host": _server_host(blocks),
    }


def _seats(blocks: Sequence[VariantBlock]) -> dict[str, float | None] | None:
    """How many CPUs clients, pooler and server could use, as the last block has it."""
    return blocks[-1].cpu_account.get("role_cpus")


def _elsewhere(block: VariantBlock) -> Mapping[str, Any]:
    """The account of the server's host where that is another (pgperf.runner.remote.server)."""
    return block.cpu_account.get("server_host") or {}


def _server_host(blocks: Sequence[VariantBlock]) -> dict[str, Any] | None:
    """The shares of the server's host where that is another and was seen. Nobody takes a census there."""
    there = [far for block in blocks if (far := _elsewhere(block)) and far["elapsed_ns"]]
    if not there:
        return None
    sums = {name: sum(far[f"{name}_ns"] for far in there) for name in _FAR}
    account = Account(
        cpus=int(there[-1]["cpus"]),
        source="agent",
        elapsed_ns=sums["elapsed"],
        ops=0,
        spent_ns={
            **{role: _sum(far["roles"].get(role) for far in there) for role in ROLES},
            **{name: sums[name] for name in ("iowait", "steal")},
            "other": None,
            "unattributed": None,
        },
    )
    return {
        "cpus": account.cpus,
        "elapsed_s": account.elapsed_ns / 1e9,
        "share": account.busy(sums["busy"]).shares(),
    }


def booked(blocks: Iterable[VariantBlock]) -> list[SliceRecord]:
    """The slices that kept books of every role that any of them saw."""
    pieces = [piece for block in blocks for piece in block.slices if piece.elapsed_ns]
    names = [
        name
        for name in (*ROLES.values(), "host_ns")
        if any(getattr(piece, name) is not None for piece in pieces)
    ]
    return [piece for piece in pieces if all(getattr(piece, name) is not None for name in names)]


def total(pieces: Iterable[SliceRecord], name: str) -> int | None:
    """The sum of a field; None if a slice does not know it, or there is none."""
    values = [getattr(piece, name) for piece in pieces]
    return sum(values) if values and None not in values else None


def operations(pieces: Iterable[SliceRecord]) -> int:
    """Those of lead-in and window: what the processor times of a slice are for."""
    return sum(piece.lead_in_ops + piece.ops for piece in pieces)


def _rest(
    pieces: Sequence[SliceRecord], counted: Sequence[Mapping[str, Any]], roles_ns: int
) -> dict[str, int | None]:
    """What the host was busy with beside the roles, parted as the blocks' censuses part it."""
    host_ns = total(pieces, "host_ns")
    if host_ns is None:
        return {"other": None, "unattributed": None}
    explained = _explained(counted)
    if explained is None:
        return {"other": None, "unattributed": max(0, host_ns - roles_ns)}
    runner_ns = total(pieces, "runner_ns") or 0
    rest_ns = max(0, host_ns - roles_ns - runner_ns)
    others_ns = round(rest_ns * explained)
    return {"other": runner_ns + others_ns, "unattributed": rest_ns - others_ns}


def _explained(counted: Iterable[Mapping[str, Any]]) -> float | None:
    """Of the time that is not ours in whole blocks, the share of processes that were seen at their edges.

    None where no block has the total that they are a part of.
    """
    known = [each for each in counted if each.get("host_ns") is not None]
    if not known:
        return None
    rest = sum(each["host_ns"] - each["ours_ns"] for each in known)
    others = sum(each["others_ns"] for each in known)
    return min(1.0, others / rest) if rest > 0 else 1.0


def _per_op_us(pieces: Sequence[SliceRecord], name: str) -> float | None:
    us = _over(total(pieces, name), operations(pieces))
    return None if us is None else us / 1000


def _passing_us(blocks: Sequence[VariantBlock]) -> float | None:
    """Of the auxiliaries, what processes had that came and went; None where that is not told and is unattributed."""
    ops = operations(piece for block in blocks for piece in block.slices)
    us = _over(_sum(block.cpu_account.get("short_lived_ns") for block in blocks), ops)
    return None if us is None else us / 1000


def _switches(blocks: Sequence[VariantBlock]) -> dict[str, float | None]:
    """Context switches per operation: `voluntary` to wait for something, `involuntary` to let others run."""
    ops = operations(piece for block in blocks for piece in block.slices)
    kinds = ("voluntary", "involuntary")
    return {f"{role}_{kind}": _over(_habits(blocks, role, kind), ops) for role in _WAITS for kind in kinds}


def _system(blocks: Sequence[VariantBlock], role: str) -> float | None:
    """Of the role's processor time, the share spent in the kernel; None where its clock has not ticked yet."""
    return _over(_habits(blocks, role, "system"), _habits(blocks, role, "system", "user") or 0)


def _habits(blocks: Iterable[VariantBlock], role: str, *names: str) -> int | None:
    """The sum over the blocks; None if one of them does not know."""
    found = [(block.cpu_account.get("ticks_and_switches") or {}).get(role) for block in blocks]
    known = [habits for habits in found if habits]
    return sum(habits[name] for habits in known for name in names) if known and all(found) else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)


def _over(value: float | None, by: float) -> float | None:
    return value / by if value is not None and by else None
