"""Variants whose clients are on load hosts: the owner's view of them.

The caller provides the load hosts (`LoadHosts`), which talk through rows. A group of theirs has no
process here. Its slices are ordered in batches, each with an absolute start, and what the hosts
recorded comes back on this machine's clock, in the order of the clients.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostFailed, LoadHostLate, ProtocolError
from pgperf.core.host_part import HostPart
from pgperf.core.records import LeftOut, Plan, SliceRecord, Variant
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import look_up
from pgperf.runner.cpu.accounting import SliceAccount, SliceAccounting
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.host_slices import HostSlice
from pgperf.runner.load_accounts import (
    CountingHost,
    HostBlock,
    cpu_together,
    owner_account,
    server_slice,
    variant_account,
)
from pgperf.runner.plan import sharing
from pgperf.runner.slice_window import Recorded, SliceWindow
from pgperf.runner.timed_slice import AwaitDeparture, SlicePlace, closed, measure, slice_record

T = TypeVar("T")

#: From the order of a batch until its first slice: every host asks for orders ten times a second.
_LEAD_NS, _LEAD_MOST_NS = 400_000_000, 8_000_000_000
#: Between two slices of a batch, beside the arming of the clients: to collect the first one.
_COLLECT_NS = 30_000_000
#: A slice may outlast its window by this many of its operations.
_LATE_OPS = 2
_READ_NS = 2_000_000
#: How long the owner sleeps at a time, so that a cancel is seen.
_NAP_S = 0.5
#: What that may take, and a timed slice must not begin late for it.
_LOOK_S = 0.5


class HostStart(NamedTuple):
    """One load host whose clients are ready, by the place of their variant in the cohort."""

    ready: Mapping[int, list[protocol.Ready]]
    op_s: Mapping[int, float]
    unlimited: Sequence[str] = ()


class LoadHosts(Protocol):
    """The load hosts of a run. Every method raises LoadHostFailed if one of them fails."""

    @property
    def names(self) -> Sequence[str]:
        """Those that take part, in the order of their parts."""

    @property
    def machines(self) -> Sequence[str]:
        """The machine of each; hosts may share one."""

    @property
    def network_mbit(self) -> Sequence[int | None]:
        """What the network of each could take, Mbit/s; None is not known."""

    @property
    def own_machine(self) -> str:
        """That of the owner."""

    @property
    def least_window_ns(self) -> int:
        """The shortest window that the error of the clocks allows."""

    #: The CPUs on the owner's machine: a load host there gives its clients those of the owner's.
    own_placement: CpuPlacement

    def begin(self, skipped: Sequence[LeftOut]) -> None:
        """Have every host prepare itself for the plan without what is skipped."""

    def go_on_without(self, host: str, why: str) -> bool:
        """Leave a failed host out. False if no other is left, or the run may lose none."""

    def start(self, cohort: int, block: int, cold: bool) -> list[HostStart]:
        """Start the clients of a cohort and warm them up."""

    def settle(self, window_ns: int) -> None:
        """Know the clocks well enough for windows of that length (0: there is none), which may take
        seconds. Raises LoadHostFailed for a host whose clock cannot be known so well.
        """

    def order(self, slices: Sequence[tuple[int, protocol.Slice]]) -> None:
        """Have these slices run, each by the place of its variant, at its start by our clock."""

    def results(self, until_ns: int) -> list[list[HostSlice]]:
        """What each host recorded of the slices, on our clock. They have ended by that time, and the
        answers come soon after it.

        Raises LoadHostLate if one of them got the order too late, or, the first time, if the clock of
        one was not known well enough until then.
        """

    def totals(self) -> list[HostBlock]:
        """What was counted since the clients are ready."""

    def end(self) -> None:
        """End the clients."""

    def check_alive(self) -> None:
        """Whether all of them are alive; asks every few seconds."""

    def note_skew(self, skew_ns: Sequence[int]) -> None:
        """By how much the starts of the hosts differed, in the slices of a batch that had several."""

    def leave(self) -> None:
        """Let all hosts go, whatever they do."""

    def facts(self) -> dict[str, Any]:
        """For the run's environment."""


@dataclass
class HostedGroup(ClientGroup):
    """The clients of a variant on load hosts. `clients` is empty."""

    at: int = 0  # the variant's place in its cohort
    cohort: "HostedCohort | None" = None
    not_limited: tuple[str, ...] = ()

    @property
    def hosted(self) -> "HostedCohort":
        assert self.cohort
        return self.cohort

    def unlimited(self) -> Iterator[str]:
        yield from self.not_limited

    def arming_ns(self, request: protocol.Slice) -> int:
        return self.hosted.lead_ns + super().arming_ns(request)

    def settle(self, request: protocol.Slice) -> None:
        self.hosted.hosts.settle(request.window_ns)

    def begin(self, request: protocol.Slice) -> None:
        self.hosted.hosts.order([(self.at, request)])
        self._until_ns = self.ended_ns(request)

    def collect(self, request: protocol.Slice) -> Recorded:
        results = self.hosted.hosts.results(self._until_ns)
        return joined(self.variant, [each.recorded for each in _of_slice(results, 0)])

    def ended_ns(self, request: protocol.Slice) -> int:
        """When the slice must have ended on all hosts."""
        return request.start_ns + round(self.longest_s(request) * 1e9)

    def spacing_ns(self) -> int:
        """The time that a slice may take beyond its window."""
        return self.hosted.collect_ns + self.late_ns

    @property
    def late_ns(self) -> int:
        """The time in which operations end that are under way when a window closes."""
        return round(_LATE_OPS * self.op_s * 1e9)


@dataclass
class HostedCohort:
    """The groups of one block whose clients are on load hosts."""

    hosts: LoadHosts
    groups: list[HostedGroup] = field(default_factory=list)
    lead_ns: int = _LEAD_NS
    collect_ns: int = _COLLECT_NS

    def later(self, late: LoadHostLate) -> None:
        """Give the next order more time, before its first slice and between slices: a host may be late
        because it collects the slice before. Raises LoadHostFailed for a host that had enough.
        """
        if self.lead_ns >= _LEAD_MOST_NS:
            had = f"{self.lead_ns / 1e9:.0f} s"
            raise LoadHostFailed(
                late.host, f"an order reached it too late, {had} after it was given; is it overloaded?"
            )
        self.lead_ns *= 2
        self.collect_ns *= 2


def part_of(variant: Variant, at: int, hosts: int) -> HostPart | None:
    """The part of a variant on one of the hosts that are left; None if it has no client there."""
    sharing = min(variant.hosts, hosts, variant.clients)
    return HostPart(at, sharing) if at < sharing else None


@contextmanager
def hosted(
    hosts: LoadHosts | None, cohort: int, block: int, named: Sequence[tuple[Variant, str]], cold: bool
) -> Iterator[list[HostedGroup]]:
    """The groups of the variants that have load hosts; ended when the context ends well."""
    if hosts is None or not any(variant.hosts for variant, _name in named):
        yield []
        return
    found = HostedCohort(hosts)
    started = hosts.start(cohort, block, cold)
    found.groups = [
        _group(found, at, variant, name, started) for at, (variant, name) in enumerate(named) if variant.hosts
    ]
    _share(found.groups)
    yield found.groups
    hosts.end()


def _share(groups: Sequence[HostedGroup]) -> None:
    """Every host uses the first clients of a larger group for a smaller one, as this machine does."""
    by_variant = {group.variant: group for group in groups}
    for owner, members in sharing(by_variant).items():
        for member in members:
            if member != owner:
                by_variant[member].share(by_variant[owner])


def _group(
    cohort: HostedCohort, at: int, variant: Variant, name: str, started: Sequence[HostStart]
) -> HostedGroup:
    ready = _in_order([each.ready[at] for each in started if at in each.ready])
    if len(ready) != variant.processes:
        raise ProtocolError(f"{variant.label}: {len(ready)} of {variant.processes} clients are ready")
    return HostedGroup(
        variant,
        name,
        ready=ready,
        op_s=max(each.op_s[at] for each in started if at in each.op_s),
        at=at,
        cohort=cohort,
        not_limited=tuple(dict.fromkeys(why for each in started for why in each.unlimited)),
        clients_seen=cohort.hosts.own_machine not in cohort.hosts.machines,
    )


def _in_order(by_host: Sequence[Sequence[Any]]) -> list[Any]:
    """What each host has of its clients, in the order of all clients: they are dealt round."""
    most = max(map(len, by_host), default=0)
    return [own[turn] for turn in range(most) for own in by_host if turn < len(own)]


def joined(variant: Variant, by_host: Sequence[Recorded]) -> Recorded:
    """A slice of all hosts as if its clients were in one place."""
    found = Recorded(*(_in_order(parts) for parts in zip(*by_host, strict=True)))
    if len(found.replies) != variant.processes:
        raise ProtocolError(f"{variant.label}: {len(found.replies)} of {variant.processes} clients answered")
    return found


class Turn(NamedTuple):
    """One slice of a round: the group, its request, and the place in the order."""

    group: ClientGroup
    request: protocol.Slice
    position: int
    rate: float | None = None  # of a search


@dataclass(frozen=True)
class Measured:
    """One slice of a round that has ended, at `ended_ns`."""

    turn: Turn
    record: SliceRecord
    window: SliceWindow
    ended_ns: int
    server_account: Mapping[str, int] | None = None  # of the server's host, where only that is this one
    by_host: Sequence[Mapping[str, int | None]] = ()  # what each load host counted


def measured(
    turns: Iterable[Turn], round_: int, host: Host | None, departed: AwaitDeparture
) -> Iterator[Measured]:
    """The slices of a round in their order, those of load hosts in batches."""
    for batch in _batches(turns):
        if isinstance(batch[0].group, HostedGroup):
            yield from _together(batch, round_, host, departed)
            continue
        for turn in batch:
            found = measure(turn.group, turn.request, round_, turn.position, host, departed)
            yield Measured(turn, *found, time.monotonic_ns())


def _batches(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Slices on load hosts that follow one another, if it is known when each of them ends."""
    for joins, some in groupby(turns, key=_joins):
        if joins:
            yield list(some)
        else:
            yield from ([turn] for turn in some)


def _joins(turn: Turn) -> bool:
    passes = turn.group.backends_pass
    return isinstance(turn.group, HostedGroup) and bool(turn.request.window_ns) and not passes


def _together(
    turns: Sequence[Turn], round_: int, host: Host | None, departed: AwaitDeparture
) -> list[Measured]:
    """The slices of a batch. One that a host got too late is void, and is ordered again."""
    group = _hosted(turns[0])

    def once() -> list[Measured]:
        with _void_if_late([turn.group for turn in turns]):
            return _ordered(group.hosted, turns, round_, host, departed)

    return in_time(group, once)


@contextmanager
def _void_if_late(groups: Sequence[ClientGroup]) -> Iterator[None]:
    """Take what a void order has counted out of the totals of its groups."""
    before = [deepcopy(group.totals) for group in groups]
    try:
        yield
    except LoadHostLate:
        for group, totals in zip(groups, before, strict=True):
            group.totals = totals
        raise


def in_time(group: ClientGroup, measure_it: Callable[[], T]) -> T:
    """What that measures, again where a load host makes it void: with more time before the start if it
    got its order too late.
    """
    while True:
        try:
            return measure_it()
        except LoadHostLate as late:
            if not isinstance(group, HostedGroup):
                raise
            if late.needs_time:
                group.hosted.later(late)


def _ordered(
    cohort: HostedCohort, turns: Sequence[Turn], round_: int, host: Host | None, departed: AwaitDeparture
) -> list[Measured]:
    windows = (turn.request.window_ns for turn in turns)
    cohort.hosts.settle(min(filter(None, windows), default=0))
    timed = scheduled(turns, time.monotonic_ns() + cohort.lead_ns)
    cohort.hosts.order([(_hosted(turn).at, turn.request) for turn in timed])
    last = timed[-1]
    accounts = _accounts(timed, host) if _joins(last) else []
    accounting = None if accounts else _opened(last, host)
    results = cohort.hosts.results(_hosted(last).ended_ns(last.request))
    still_there = departed(last.group)
    accounts = accounts or [Account(closed(last.group, accounting), time.monotonic_ns())]
    by_turn = [_of_slice(results, at) for at in range(len(timed))]
    skews = [skew_ns(turn.request, slices) for turn, slices in zip(timed, by_turn, strict=True)]
    cohort.hosts.note_skew([ns for ns in skews if ns is not None])
    rows = zip(timed, accounts, by_turn, strict=True)
    return [_measured(cohort.hosts, *row, round_, still_there) for row in rows]


def _of_slice(results: Sequence[Sequence[HostSlice]], at: int) -> list[HostSlice]:
    """One slice of the batch, of the hosts that have clients of its variant."""
    return [own[at] for own in results if own[at].recorded.replies]


def scheduled(turns: Sequence[Turn], first_ns: int) -> list[Turn]:
    """The turns with the start of each: clients are armed while the one before is collected."""
    found, at = [], first_ns
    for turn in turns:
        at += ClientGroup.arming_ns(turn.group, turn.request)
        found.append(turn._replace(request=turn.request._replace(start_ns=at)))
        at = _closes_ns(found[-1]) + _hosted(turn).spacing_ns()
    return found


def _hosted(turn: Turn) -> HostedGroup:
    assert isinstance(turn.group, HostedGroup)
    return turn.group


def _closes_ns(turn: Turn) -> int:
    request = turn.request
    return request.start_ns + request.lead_in_ns + request.window_ns


class Account(NamedTuple):
    """What this machine counted over a slice, until `ended_ns`."""

    counted: SliceAccount | None
    ended_ns: int


def _accounts(timed: Sequence[Turn], host: Host | None) -> list[Account]:
    """The account over each slice of a batch."""
    ends_by: list[int | None] = [turn.request.start_ns for turn in timed[1:]]
    return [_accounted(turn, host, by_ns) for turn, by_ns in zip(timed, [*ends_by, None], strict=True)]


def _accounted(turn: Turn, host: Host | None, by_ns: int | None = None) -> Account:
    """The account over a slice that ends at a known time, with the operations under way then. Void if
    it is closed after `by_ns`, when the next slice begins.
    """
    look_up()  # between two slices: a short one leaves `sleep_until` no time for it
    accounting, ends_ns = _opened(turn, host), _closes_ns(turn) + _hosted(turn).late_ns
    sleep_until(ends_ns)
    return Account(closed(turn.group, accounting, by_ns), ends_ns)


def _opened(turn: Turn, host: Host | None) -> SliceAccounting | None:
    """The account of a slice, from just before its start; from earlier, if this process does not run
    then. None if it did not run before either: the account would be of a part of the slice.
    """
    if host is None:
        return None
    early = SliceAccounting(host, turn.group.processes())
    if time.monotonic_ns() > turn.request.start_ns:
        turn.group.totals.lack_a_slice()
        return None
    sleep_until(turn.request.start_ns - _READ_NS)
    accounting = SliceAccounting(host, turn.group.processes())
    return accounting if time.monotonic_ns() <= turn.request.start_ns else early


def sleep_until(moment_ns: int) -> None:
    """Returns at that time. Looks for a cancel before, if there is time: that asks a database."""
    while (left_s := (moment_ns - time.monotonic_ns()) / 1e9) > 0:
        if left_s > _LOOK_S:
            look_up()
            left_s = max(0.0, (moment_ns - time.monotonic_ns()) / 1e9)
        time.sleep(min(_NAP_S, left_s))


def _measured(
    hosts: LoadHosts,
    turn: Turn,
    account: Account,
    slices: Sequence[HostSlice],
    round_: int,
    still_there: str,
) -> Measured:
    group, request = turn.group, turn.request
    recorded = joined(group.variant, [each.recorded for each in slices])
    place = SlicePlace(round_, turn.position, request.start_ns - _READ_NS)
    record, window = slice_record(group, request, recorded, place, account.counted, still_there)
    taking_part = hosts.machines[: len(slices)]
    together = cpu_together(record, slices, taking_part, hosts.own_machine)
    here = account.counted if hosts.own_machine not in taking_part and group.server_pids else None
    return Measured(
        turn,
        replace(record, **together),
        window,
        account.ended_ns,
        server_slice(here, record),
        [each.cpu for each in slices],
    )


def skew_ns(request: protocol.Slice, slices: Sequence[HostSlice]) -> int | None:
    """By how much the first operations of the hosts began at different times, at most. None with
    fewer than two hosts that had an operation.

    A closed loop reports the end of its first operation. An open loop reports its intended start,
    which is the same on all hosts: what differs is the lag of the first operation.
    """
    first = _first_lag_ns if request.rate else _first_ns
    firsts = [found for each in slices if (found := first(each.recorded)) is not None]
    return max(firsts) - min(firsts) if len(firsts) > 1 else None


def _first_ns(recorded: Recorded) -> int:
    return min(reply.first_ns for reply in recorded.replies)


def _first_lag_ns(recorded: Recorded) -> int | None:
    """None where nothing was due."""
    rows = zip(recorded.replies, recorded.phases, strict=True)
    lags = [phases[reply.phases.index(protocol.LAG)] for reply, phases in rows]
    return min((int(own[0]) for own in lags if len(own)), default=None)


def accounts(
    groups: Iterable[ClientGroup], own: Callable[[Variant], Mapping[str, Any]]
) -> dict[Variant, dict[str, Any]]:
    """What was counted in a block of the machines that each variant has, and of its processes; {}
    without load hosts. `own`: the same of this machine, as if it had none.
    """
    every = list(groups)
    shared = [group for group in every if isinstance(group, HostedGroup)]
    if not shared:
        return {}
    hosts = shared[0].hosted.hosts
    rows = zip(hosts.names, hosts.machines, hosts.network_mbit, hosts.totals(), strict=True)
    counting = [CountingHost(*row) for row in rows]
    return {group.variant: _account_of(group, counting, hosts.own_machine, own) for group in every}


def _account_of(
    group: ClientGroup,
    counting: Sequence[CountingHost],
    own_machine: str,
    own: Callable[[Variant], Mapping[str, Any]],
) -> dict[str, Any]:
    given = group.totals.to_json(), counting, own_machine, own(group.variant)
    return variant_account(group.at, *given) if isinstance(group, HostedGroup) else owner_account(*given)


def placement_refusal(hosts: LoadHosts | None, plan: Plan) -> str:
    """Why nothing is to be pinned on this machine: no client runs here. "" where some do."""
    if hosts is None or hosts.own_machine in hosts.machines or not all(each.hosts for each in plan.variants):
        return ""
    return "all clients are on other machines"


def percentile(values: Sequence[int], share: float) -> float | None:
    """For facts about a run; None without values."""
    return float(np.quantile(np.array(values), share)) if values else None
