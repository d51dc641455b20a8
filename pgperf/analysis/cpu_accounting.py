"""CPU accounting: whose the host's CPU time was while a variant ran, from its slices and blocks.
Pure.

None is not known, never 0. `other` is the runner and the processes that were seen at the edges of
the blocks and work for no role. `unattributed` is the rest of the host's total, which no process
explains. Where nothing tells the two apart, the whole rest is `unattributed` and `other` is not
known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgperf.analysis.cpu_account import ROLES as BY_ROLE
from pgperf.analysis.cpu_account import CpuAccount, CpuShares, RoleCpus, ServerHost
from pgperf.analysis.known_sum import known_sum
from pgperf.analysis.load_hosts import blocks_by_number, load_hosts
from pgperf.analysis.top import other_programs
from pgperf.core.records import SliceRecord, Variant, VariantBlock

#: Role in the account -> field of a slice.
ROLES = {
    "clients": "client_ns",
    "proxy": "proxy_ns",
    "web": "web_ns",
    "pooler": "pooler_ns",
    "server": "server_ns",
    "auxiliaries": "auxiliary_ns",
}
SHARES = (*ROLES, "other", "unattributed", "idle", "iowait", "steal")
_WAITS = {role: f"{role}_wait_ns" for role in BY_ROLE}
_MOST = {
    "client": "client_busiest_ns", "proxy": "proxy_busiest_ns", "web": "web_busiest_ns", "pooler": "pooler_ns",
    "server": "server_busiest_ns",
}  # fmt: skip
#: The parts of the account of the server's host.
_SERVER_HOST = ("elapsed", "busy", "iowait", "steal")


@dataclass(frozen=True)
class BlockCount:
    """What the runner counted in a whole block: of all processes, and of this variant's by role."""

    cpus: int
    source: str
    host_ns: int | None  # busy time of all CPUs
    ours_ns: int | None  # of it, that of pgperf's own processes and of the roles
    others_ns: int | None  # of it, that of other processes seen at the edges
    role_cpus: RoleCpus | None
    ticks_and_switches: Mapping[str, Mapping[str, int] | None]  # by role
    short_lived_ns: int | None
    throttled_ns: Mapping[str, int | None]  # by role
    server_host: Mapping[str, Any] | None
    missing_grant: str
    server_unknown: str
    web_workers: int | None
    clock_read_ns: float | None
    load_hosts: Sequence[Mapping[str, Any]]
    others_by_side: Mapping[str, int]  # the most that others ran on the CPUs of each side, ns; {}: unknown

    @classmethod
    def of(cls, block: VariantBlock) -> "BlockCount | None":
        """None for a block without a CPU account."""
        counted = block.cpu_account
        if not counted.get("cpus"):
            return None
        by_role, cpus = counted.get("ticks_and_switches") or {}, counted.get("role_cpus")
        return cls(
            cpus=int(counted["cpus"]),
            source=str(counted["source"]),
            host_ns=counted.get("host_ns"),
            ours_ns=counted.get("ours_ns"),
            others_ns=counted.get("others_ns"),
            role_cpus=RoleCpus.from_json(cpus) if cpus else None,
            ticks_and_switches={role: by_role.get(role) for role in _WAITS},
            short_lived_ns=counted.get("short_lived_ns"),
            throttled_ns=counted.get("throttled_ns") or {},
            server_host=counted.get("server_host") or None,
            missing_grant=counted.get("missing_grant") or "",
            server_unknown=counted.get("server_unknown") or "",
            web_workers=counted.get("web_workers"),
            clock_read_ns=counted.get("clock_read_ns"),
            load_hosts=counted.get("load_hosts") or (),
            others_by_side=counted.get("others_by_side") or {},
        )


@dataclass(frozen=True)
class Account:
    """Sums over the slices with a CPU account, ns: the time of all CPUs (`capacity_ns`), and whose
    it was. `cpus` is the mean over time: a run that lost a load host has fewer CPUs from then on.
    """

    cpus: float
    source: str
    elapsed_ns: int
    ops: int
    spent_ns: Mapping[str, int | None]

    @classmethod
    def of(cls, blocks: Sequence[VariantBlock]) -> "Account | None":
        """The account of these blocks' slices; None if none of them has one."""
        pieces, counted = accounted(blocks), _counts(blocks)
        if not pieces or not counted:
            return None
        away = {role for count in counted for role in (count.server_host or {}).get("roles", ())}
        roles = {role: None if role in away else total(pieces, name) for role, name in ROLES.items()}
        rest = _rest(pieces, counted, sum(ns or 0 for ns in roles.values()))
        more = {name: total(pieces, f"{name}_ns") for name in ("iowait", "steal")}
        return cls(
            cpus=_over_time(blocks, lambda count: count.cpus) or 0,
            source=counted[-1].source,
            elapsed_ns=sum(piece.elapsed_ns or 0 for piece in pieces),
            ops=operations(pieces),
            spent_ns={**roles, **rest, **more},
        )

    @property
    def capacity_ns(self) -> int:
        """The time of all CPUs; a few clock ticks more where accounts of different kinds add up to
        that.
        """
        return max(round(self.cpus * self.elapsed_ns), sum(ns or 0 for ns in self.spent_ns.values()))

    def busy(self, busy_ns: int | None) -> "Account":
        """The same account; the rest of the host's busy time is unattributed."""
        roles = [self.spent_ns[role] for role in ROLES if self.spent_ns[role] is not None]
        rest = None if busy_ns is None else max(0, busy_ns - sum(ns or 0 for ns in roles))
        return replace(self, spent_ns={**self.spent_ns, "unattributed": rest})

    def shares(self) -> CpuShares:
        """Shares of the CPU time. Where all busy time is known, the rest is `idle`, and the sum is
        1.

        A role whose processes are on another host has no share of this one.
        """
        known = sum(ns or 0 for ns in self.spent_ns.values())
        whole = self.spent_ns["unattributed"] is not None
        spent = {**self.spent_ns, "idle": self.capacity_ns - known if whole else None}
        return CpuShares(**{name: _over(spent[name], self.capacity_ns) for name in SHARES})

    def per_op_us(self, name: str) -> float | None:
        us = _over(self.spent_ns[name], self.ops)
        return None if us is None else us / 1000


def cpu_account(blocks: Sequence[VariantBlock], measured: Sequence[VariantBlock] = ()) -> CpuAccount | None:
    """The CPU account of a variant; None if none of its slices has one.

    `measured`: the blocks with the slices that count for no figure. What was counted of whole blocks
    is of those slices too.
    """
    account = Account.of(blocks)
    if not account:
        return None
    pieces, counted = accounted(blocks), _counts(blocks)
    whole_ops = operations(piece for block in measured or blocks for piece in block.slices)
    mean_us = _mean_us(pieces, blocks[0].variant)
    return CpuAccount(
        cpus=account.cpus,
        elapsed_s=account.elapsed_ns / 1e9,
        source=account.source,
        share=account.shares(),
        runner=_over(total(pieces, "runner_ns"), account.capacity_ns),
        role_cpus=_role_cpus(blocks, counted),
        wait_us_per_op={role: _per_op_us(pieces, name) for role, name in _WAITS.items()},
        switches_per_op=_switches(blocks, whole_ops),
        system_share={role: _system(blocks, role) for role in _WAITS},
        busiest={role: _over(total(pieces, name), account.elapsed_ns) for role, name in _MOST.items()},
        short_lived_us_per_op=_short_lived_us(blocks, whole_ops),
        throttled_us_per_op={role: _throttled_us(counted, whole_ops, role) for role in _WAITS},
        server_host=_server_host(counted),
        missing_grant=next((each.missing_grant for each in counted if each.missing_grant), ""),
        web_workers=counted[-1].web_workers,
        mean_us_per_op=mean_us,
        server_unknown=next((each.server_unknown for each in counted if each.server_unknown), ""),
        clock_read_ns=max((each.clock_read_ns for each in counted if each.clock_read_ns), default=None),
        load_hosts=load_hosts(each.load_hosts for each in counted),
        load_host_blocks=blocks_by_number(
            (block.block, len(block.cpu_account.get("load_hosts") or ())) for block in blocks
        ),
        programs=other_programs(blocks),
        others_by_side=_others_by_side(counted),
    )


def _role_cpus(blocks: Sequence[VariantBlock], counted: Sequence[BlockCount]) -> RoleCpus | None:
    """Those of the last block, and of the clients the mean over time."""
    last = counted[-1].role_cpus
    if not last:
        return None
    clients = _over_time(blocks, lambda count: count.role_cpus.clients if count.role_cpus else None)
    return replace(last, clients=clients)


def _over_time(blocks: Iterable[VariantBlock], of: Callable[[BlockCount], float | None]) -> float | None:
    """The mean of a number over the time of the slices of the blocks that know it."""
    known = [
        (number, sum(piece.elapsed_ns or 0 for piece in block.slices))
        for block in blocks
        if (count := BlockCount.of(block)) and (number := of(count)) is not None
    ]
    if len({number for number, _ns in known}) == 1:
        return known[0][0]
    return _over(sum(number * ns for number, ns in known), sum(ns for _number, ns in known))


def _mean_us(pieces: Sequence[SliceRecord], variant: Variant) -> float | None:
    """The mean time of an operation; None in an open loop, whose clients also wait between them.

    That of the windows: the account of a slice begins before its clients do, and ends after they have
    sent their replies.
    """
    if variant.is_open_loop:
        return None
    window_ns = sum(piece.window_ns for piece in pieces)
    return _over(window_ns * variant.connections, sum(piece.ops for piece in pieces) * 1000)


def _counts(blocks: Iterable[VariantBlock]) -> list[BlockCount]:
    return [count for block in blocks if (count := BlockCount.of(block))]


def _server_host(counted: Iterable[BlockCount]) -> ServerHost | None:
    """The shares of the server's host where that is another and was seen
    (pgperf.runner.remote.server).

    There is no account of other processes there.
    """
    there = [count.server_host for count in counted if count.server_host and count.server_host["elapsed_ns"]]
    if not there:
        return None
    sums = {name: sum(far[f"{name}_ns"] for far in there) for name in _SERVER_HOST}
    cpus = int(there[-1]["cpus"])
    account = Account(
        cpus=cpus,
        source="agent",
        elapsed_ns=sums["elapsed"],
        ops=0,
        spent_ns={
            **{role: known_sum(far["roles"].get(role) for far in there) for role in ROLES},
            **{name: sums[name] for name in ("iowait", "steal")},
            "other": None,
            "unattributed": None,
        },
    )
    return ServerHost(cpus, account.elapsed_ns / 1e9, account.busy(sums["busy"]).shares())


def accounted(blocks: Iterable[VariantBlock]) -> list[SliceRecord]:
    """The slices that have the CPU time of every role that any of them has."""
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
    """Operations in lead-in and window: the CPU times of a slice are of both."""
    return sum(piece.lead_in_ops + piece.ops for piece in pieces)


def _rest(
    pieces: Sequence[SliceRecord], counted: Iterable[BlockCount], roles_ns: int
) -> dict[str, int | None]:
    """The host's busy time beside the roles', divided as the process CPU of whole blocks divides
    it.
    """
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


def _explained(counted: Iterable[BlockCount]) -> float | None:
    """The share of other processes in the time that is not ours, over whole blocks.

    None where no block has the host's total.
    """
    known = [each for each in counted if each.host_ns is not None]
    if not known:
        return None
    rest = sum((each.host_ns or 0) - (each.ours_ns or 0) for each in known)
    others = sum(each.others_ns or 0 for each in known)
    return min(1.0, others / rest) if rest > 0 else 1.0


def _others_by_side(counted: Sequence[BlockCount]) -> dict[str, float]:
    """The most of the time of other processes that was on the CPUs of each side, as a share of it,
    over whole blocks. Nothing where a block does not tell it.
    """
    if not all(each.others_by_side and each.host_ns is not None for each in counted):
        return {}
    whole = sum((each.host_ns or 0) - (each.ours_ns or 0) for each in counted)
    return {
        side: min(1.0, sum(each.others_by_side.get(side, whole) for each in counted) / whole)
        for side in counted[0].others_by_side
        if whole > 0
    }


def _per_op_us(pieces: Sequence[SliceRecord], name: str) -> float | None:
    us = _over(total(pieces, name), operations(pieces))
    return None if us is None else us / 1000


def _short_lived_us(blocks: Iterable[VariantBlock], ops: int) -> float | None:
    """CPU time of short-lived processes among the auxiliaries, µs per operation.

    None where a block does not tell it; then it is unattributed.
    """
    us = _over(
        known_sum(count.short_lived_ns if count else None for count in map(BlockCount.of, blocks)), ops
    )
    return None if us is None else us / 1000


def _throttled_us(counted: Iterable[BlockCount], ops: int, role: str) -> float | None:
    """How long CPU quotas kept the role's processes from working, µs per operation."""
    us = _over(known_sum(count.throttled_ns.get(role) for count in counted), ops)
    return None if us is None else us / 1000


def _switches(blocks: Sequence[VariantBlock], ops: int) -> dict[str, float | None]:
    """Context switches per operation: `voluntary` to wait for something, `involuntary` to let
    others run.
    """
    kinds = ("voluntary", "involuntary")
    return {f"{role}_{kind}": _over(_counted(blocks, role, kind), ops) for role in _WAITS for kind in kinds}


def _system(blocks: Sequence[VariantBlock], role: str) -> float | None:
    """The kernel's share of the role's CPU time; None where its clock has not ticked yet."""
    return _over(_counted(blocks, role, "system"), _counted(blocks, role, "system", "user") or 0)


def _counted(blocks: Iterable[VariantBlock], role: str, *names: str) -> int | None:
    """The sum of ticks or switches over the blocks; None if a block does not know it."""
    found = [count.ticks_and_switches[role] if count else None for count in map(BlockCount.of, blocks)]
    known = [counts for counts in found if counts]
    return sum(counts[name] for counts in known for name in names) if known and all(found) else None


def _over(value: float | None, by: float) -> float | None:
    return value / by if value is not None and by else None
