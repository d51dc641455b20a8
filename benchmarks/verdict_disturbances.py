"""The disturbances of benchmarks.verdict_cells: what happens while pgperf measures a cell.

    with disturbance(column, design) as running:
        ...  # pgperf measures
        running.proof(verdict)  # that the cell was disturbed as its column says

pgperf is not changed for it. Rivals are processes of their own. A quota's group gets the processes
that pgperf finds for a role, when it has found them: after their start and warm-up, and before the
first slice. Steal is replayed into what pgperf reads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from unittest.mock import patch

from benchmarks.quota_group import QuotaGroup, Throttled, quota_group, times_us
from benchmarks.replayed_steal import replayed_steal
from benchmarks.rival import Rival, halves, rivals
from benchmarks.verdict_cells import QUIET, QUOTA, RIVALS, RIVALS_ON_OWN, STOLEN, Design
from pgperf.analysis.grade import Disturbance, Source
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.verdict import Verdict
from pgperf.runner.server.probe import ServerProbe

#: A window under a quota has room for so many of its periods.
_PERIODS = 4
#: The least part of the replayed steal that the grade must show: windows cut ticks.
_SEEN = 0.7
#: At least this share of what a rival wants shows that it was there.
_HAD = 1 / 3


@dataclass(frozen=True)
class Proof:
    """What shows the disturbance, and what is lacking ("" if nothing is)."""

    shown: str = ""
    lacking: str = ""


class Running(Protocol):
    def proof(self, verdict: Verdict) -> Proof: ...


def disturbance(column: str, design: Design | None) -> AbstractContextManager[Running]:
    """Raises NoQuota where a control group with a quota is not possible."""
    if column == QUIET or design is None:
        return _quiet()
    if column == QUOTA:
        return _with_quota(design)
    return _with_rival(column, design) if column in RIVALS else _with_steal(column)


def settings(column: str, design: Design | None) -> Mapping[str, Any]:
    """Fields of the definition that a column changes: windows that are long enough for a quota."""
    if column != QUOTA or design is None:
        return {}
    _quota_us, period_us = times_us(design.quota)
    return {"slice_ms": max(150, _PERIODS * period_us // 1000)}


class _Quiet:
    def proof(self, _verdict: Verdict) -> Proof:
        return Proof()


@dataclass(frozen=True)
class _Rivalled:
    rivals: Mapping[int, Rival]  # by CPU
    wanted: float
    role: str  # that competes with them for its CPU; "" elsewhere

    def proof(self, verdict: Verdict) -> Proof:
        had = min(each.had() for each in self.rivals.values())
        found = rival_proof(had, self.wanted, [*self.rivals])
        return competed(found, self.role, verdict) if self.role else found


@dataclass(frozen=True)
class _Throttling:
    group: QuotaGroup
    role: str

    def proof(self, verdict: Verdict) -> Proof:
        return quota_proof(self.group.throttled(), self.role, verdict)


@dataclass(frozen=True)
class _Stealing:
    share: float

    def proof(self, verdict: Verdict) -> Proof:
        return steal_proof(self.share, verdict)


def rival_proof(had: float, wanted: float, cpus: Sequence[int]) -> Proof:
    """The rival had a good part of each CPU that it wanted; what it competes with has the rest."""
    lacking = "" if had >= _HAD * wanted else "the rival had hardly any of its CPU"
    return Proof(f"the rival had {in_percent(had)} of CPU {', '.join(map(str, cpus))}", lacking)


def competed(found: Proof, role: str, verdict: Verdict) -> Proof:
    """The rival's proof, and that the role had to wait for its CPU."""
    queued = verdict.numbers.queue_us.get(role) or 0.0
    without = "" if queued else f"no run delay of the {role}"
    return Proof(
        f"{found.shown}; per operation {queued:.0f} µs of the {role}'s run delay",
        "; ".join(filter(None, (found.lacking, without))),
    )


def quota_proof(throttled: Throttled, role: str, verdict: Verdict) -> Proof:
    """The quota binds, the grade calls it throttling of that role, and it is run delay, not steal."""
    found, steal = _found(verdict, Source.THROTTLING), _found(verdict, Source.STEAL)
    us = (found.us if found else None) or 0.0
    stolen = (steal.us if steal else None) or 0.0
    queued = verdict.numbers.queue_us.get(role) or 0.0
    lacking = {
        "the quota did not bind": throttled.periods == 0,
        f"the grade does not say that the {role} was throttled": found is None or found.where != role,
        f"no run delay of the {role}": queued == 0,
        "the grade has as much steal as throttling": stolen >= max(us, 1.0),
    }
    shown = (
        f"throttled in {throttled.periods} periods for {throttled.seconds:.1f} s; per operation {us:.0f} µs of"
        f" throttling, {queued:.0f} µs of the {role}'s run delay, at most {stolen:.0f} µs of steal"
    )
    return Proof(shown, "; ".join(why for why, is_lacking in lacking.items() if is_lacking))


def steal_proof(share: float, verdict: Verdict) -> Proof:
    """The grade shows the replayed steal."""
    found = _found(verdict, Source.STEAL)
    seen = (found.share if found else None) or 0.0
    shown = f"{in_percent(share)} replayed, {in_percent(seen, 1)} in the grade"
    return Proof(shown, "" if seen >= _SEEN * share else "the grade does not show the replayed steal")


def entering(
    finder: Callable[..., Callable[[list[Any]], None]], enter: Callable[[Iterable[int]], None], role: str
) -> Callable[..., Callable[[list[Any]], None]]:
    """`ServerProbe.finder`, whose search ends with moving the role's processes into the group."""

    def changed(probe: ServerProbe, cpu_placement: Any) -> Callable[[list[Any]], None]:
        find = finder(probe, cpu_placement)

        def found(groups: list[Any]) -> None:
            find(groups)
            enter({pid for group in groups for pid in group.processes().of(role) or ()})

        return found

    return changed


@contextmanager
def _quiet() -> Iterator[Running]:
    yield _Quiet()


@contextmanager
def _with_rival(column: str, design: Design) -> Iterator[Running]:
    role = _ROLE[design.rival_side(column)] if column in RIVALS_ON_OWN else ""
    with rivals(rival_cpus(column, design), RIVALS[column]) as running:
        yield _Rivalled(running, RIVALS[column], role)


#: The role that works on a side's CPUs.
_ROLE = {"clients": "client", "server": "server"}


def rival_cpus(column: str, design: Design) -> list[int]:
    """One CPU where the bottleneck sits elsewhere; all of its own, or it would move to another."""
    clients, server = halves()
    cpus = clients if design.rival_side(column) == "clients" else server
    return cpus if column in RIVALS_ON_OWN else cpus[:1]


@contextmanager
def _with_quota(design: Design) -> Iterator[Running]:
    with quota_group("pgperf-verdicts") as group:
        group.allow(design.quota)
        changed = entering(ServerProbe.finder, group.enter, design.throttled)
        with patch.object(ServerProbe, "finder", changed):
            yield _Throttling(group, design.throttled)


@contextmanager
def _with_steal(column: str) -> Iterator[Running]:
    with replayed_steal(STOLEN[column]):
        yield _Stealing(STOLEN[column])


def _found(verdict: Verdict, source: str) -> Disturbance | None:
    return next((each for each in verdict.grade.disturbances if each.source == source), None)
