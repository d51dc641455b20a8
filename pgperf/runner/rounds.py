"""The timed rounds of a block: one slice of every variant in each."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from pgperf.core import protocol
from pgperf.core.records import Definition, SliceRecord
from pgperf.runner import run_time
from pgperf.runner.block_processes import find_processes
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_hosts import Measured, Turn, measured
from pgperf.runner.plan import round_order
from pgperf.runner.run_context import RunContext, VariantMeasurements
from pgperf.runner.slice_length import later_lead_in, scheduled, searched


def timed_rounds(
    context: RunContext, groups: list[ClientGroup], cohort: int, block: int
) -> list[VariantMeasurements]:
    found = [VariantMeasurements() for _ in groups]
    for group in groups:
        context.searches.begin_block(group.variant, group.op_s, context.plan.definition.rate_search_ms)
    for round_ in context.pace.rounds(cohort, block):
        checkpoints = context.written.checkpoints()
        order = round_order(context.plan, cohort, block, round_)
        for each in _slices_of(context, cohort, [groups[index] for index in order], (block, round_)):
            _keep(context, each, found[order[each.turn.position]])
            group = each.turn.group
            if group.look_again and group.backends_pass:
                find_processes(context, groups)  # the next slice may use the same server connections
        if context.written.overlapped(checkpoints):
            _mark_checkpoint(context.plan.definition, groups, found)
        if any(group.look_again for group in groups):
            find_processes(context, groups)
        _lead_in_longer(context.windows[cohort], groups, found)
        context.progress.ended(cohort, run_time.ROUND)
        context.between_rounds(f"round {round_ + 1} of {context.pace.planned_rounds} is timed")
    return found


def _slices_of(
    context: RunContext, cohort: int, groups: Sequence[ClientGroup], at: tuple[int, int]
) -> Iterator[Measured]:
    """The slices of a block's round, in their order. In the first round all closed loops have ended
    before a search has its first rate, also on load hosts, whose slices are ordered in batches.
    """
    block, round_ = at
    closed = sum(not group.variant.is_search for group in groups)
    edges = [0, len(groups)] if round_ else [0, closed, len(groups)]
    for first, end in pairwise(edges):
        turns = _turns(context, cohort, groups[first:end], f"{block}/{round_}", first)
        yield from measured(turns, round_, context.host, context.departed)


def _turns(
    context: RunContext, cohort: int, groups: Iterable[ClientGroup], turn: str, first: int
) -> Iterator[Turn]:
    """The slices of a round from its `first` one, each made when its turn comes: the rate of a search
    follows from those before it.
    """
    done = context.slices_done
    for position, group in enumerate(groups, first):
        rate = context.searches.next_rate(group.variant)
        ahead = position - first - (context.slices_done - done)
        yield Turn(group, slice_request(context, cohort, group, turn, ahead, rate), position, rate)


def slice_request(
    context: RunContext,
    cohort: int,
    group: ClientGroup,
    turn: str,
    ahead: int = 0,
    rate: float | None = None,
) -> protocol.Slice:
    """The group's slice that has so many `ahead` of it, of a search at that rate. The schedules of
    all variants in a turn have the same seed.

    Connections that share a window lead in with one operation, so as not to start late.
    """
    definition = context.plan.definition
    window = context.windows[cohort][group.variant.workload]
    request = window._replace(seq=context.slices_done + ahead + context.diagnosed + context.repeated + 1)
    if group.variant.is_open_loop:
        limit_ns = round(definition.latency_limit_ms * 1e6)
        seed = random.Random(f"{definition.seed}/{cohort}/{turn}").getrandbits(62)
        at_rate = (
            scheduled(request, group.variant)
            if rate is None
            else searched(request, group.variant, rate, definition.rate_search_ms)
        )
        return at_rate._replace(seed=seed, latency_limit_ns=limit_ns)
    armed = group.variant.connections > 1 or bool(group.variant.hosts)
    return request._replace(lead_in_ops=1) if armed else request


def _keep(context: RunContext, each: Measured, measurements: VariantMeasurements) -> None:
    """A slice that has ended, with its table as it was before."""
    record = context.searches.learned(each.turn.group.variant, each.record, each.window, each.turn.rate)
    _settle(context, each.turn.group, record)
    context.clock.spent["slices"] += (each.turn.request.lead_in_ns + each.record.window_ns) / 1e9
    measurements.ends_ns.append(each.ended_ns)
    measurements.records.append(record)
    measurements.windows.append(each.window)
    measurements.server_accounts.append(each.server_account)
    measurements.by_host.append(each.by_host)
    context.slices_done += 1


def _lead_in_longer(
    slices: dict[str, protocol.Slice], groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Give the next round a longer lead-in where clients were late for the window of this one."""
    for group, measurements in zip(groups, measured, strict=True):
        if group.variant.is_open_loop:
            continue
        workload = group.variant.workload
        slices[workload] = later_lead_in(slices[workload], measurements.windows[-1].led_in_ns)


def _settle(context: RunContext, group: ClientGroup, record: SliceRecord) -> None:
    """Check what a slice inserted, and put its table back as it was."""
    rows = (record.lead_in_ops + record.ops) * (group.ready[0].rows_per_op or 0)
    context.written.settle(group.variant.workload, rows)


def _mark_checkpoint(
    definition: Definition, groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Mark the round's slices that inserted rows."""
    for group, measurements in zip(groups, measured, strict=True):
        if definition.work(group.variant.workload).bulk:
            last = measurements.records[-1]
            why = "; ".join(filter(None, (last.disturbed, "a checkpoint ran during this round")))
            measurements.records[-1] = replace(last, disturbed=why)
