"""The pilot: a few operations of each variant, once in a run, that choose how long slices are."""

from collections.abc import Sequence

from pgperf.core import protocol
from pgperf.core.records import Variant
from pgperf.runner import run_time
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_hosts import Turn, measured
from pgperf.runner.run_context import RunContext
from pgperf.runner.slice_length import (
    WINDOW_MAX_NS,
    Need,
    asked_slice,
    bulk_slice,
    fitting,
    pilot_slice,
    shortened,
)

#: With fewer rounds in a block, the slices of slow operations are shortened.
_FEW_ROUNDS = 2


def choose_windows(context: RunContext, cohort: int, groups: list[ClientGroup]) -> None:
    """Let a pilot choose the slice of each of the cohort's workloads, once in a run."""
    if cohort in context.windows:
        return
    definition, slices = context.plan.definition, {}
    op_s = {group.variant: group.op_s for group in groups}
    piloted: dict[str, list[Need]] = {}
    for workload in dict.fromkeys(group.variant.workload for group in groups):
        own = [group for group in groups if group.variant.workload == workload]
        if definition.work(workload).bulk:
            slices[workload] = bulk_slice(max(group.op_s for group in own))
            continue
        with context.clock.phase("pilot"):
            needs = _needs(context, own)
        piloted[workload] = list(needs.values())
        slices[workload] = _for_clocks(context, own, fitting(asked_slice(definition), piloted[workload]))
        op_s.update({variant: need.mean_ns / 1e9 for variant, need in needs.items()})
    context.progress.ended(cohort, run_time.PILOT)
    context.progress.piloted(cohort, slices, op_s)
    if _lacks_time(context, cohort):
        slices |= {workload: shortened(slices[workload], needs) for workload, needs in piloted.items()}
        context.progress.piloted(cohort, slices, op_s)
    context.windows[cohort] = slices


def _lacks_time(context: RunContext, cohort: int) -> bool:
    """Must the run do with fewer rounds than it asked for, and with few?"""
    definition = context.plan.definition
    few = min(_FEW_ROUNDS, definition.rounds)
    return not definition.slice_ms and context.pace.affordable_rounds(cohort, 0) < few


def _for_clocks(
    context: RunContext, groups: Sequence[ClientGroup], request: protocol.Slice
) -> protocol.Slice:
    """The slice with a window that is long for the error of the load hosts' clocks, unless the
    definition asks for one. Raises LoadHostFailed for a host whose clock the longest window does not
    allow.
    """
    asked = context.plan.definition.slice_ms or request.count
    if asked or context.load_hosts is None or not any(group.variant.hosts for group in groups):
        return request
    context.load_hosts.settle(WINDOW_MAX_NS)
    least_ns = min(WINDOW_MAX_NS, context.load_hosts.least_window_ns)
    return request._replace(window_ns=max(request.window_ns, least_ns))


def _needs(context: RunContext, groups: list[ClientGroup]) -> dict[Variant, Need]:
    """What the variants of a workload need, where a pilot has to find it out."""
    asked = asked_slice(context.plan.definition)
    uncertain = [group for group in groups if group.variant.connections > 1 or not asked.window_ns]
    return {group.variant: _need(context, group) for group in uncertain}


def _need(context: RunContext, group: ClientGroup) -> Need:
    """A variant's need by the pilot, which all its clients run at the same time."""
    request = pilot_slice(group.op_s, group.variant.connections)
    (found,) = measured([Turn(group, request, -1)], -1, None, context.departed)
    record, window = found.record, found.window
    mean_ns = record.us_per_op * 1000
    longest_ns = float(window.durations.max()) if len(window.durations) else mean_ns
    return Need(group.variant.connections, mean_ns, max(longest_ns, window.led_in_ns))
