"""The diagnostic slices that end a block, and the times of single statements and of parts of pages."""

import time
from dataclasses import replace
from functools import partial

from pgperf.core.records import StatementTimes, WorkloadDefinition
from pgperf.runner import page_parts, run_time, statement_times
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_hosts import in_time
from pgperf.runner.plan import round_order
from pgperf.runner.rounds import slice_request
from pgperf.runner.run_context import Diagnosis, RunContext, VariantMeasurements
from pgperf.runner.server.diagnostics import DiagnosticConnections, DiagnosticResult


def diagnose(
    context: RunContext,
    connections: DiagnosticConnections,
    groups: list[ClientGroup],
    cohort: int,
    measured: list[VariantMeasurements],
) -> None:
    """Run one diagnostic slice of each variant, in random order, and repeat those that others
    disturbed, and those with failed requests.
    """
    definition = context.plan.definition
    block = context.pace.diagnosed_block
    whole = round_order(context.plan, cohort, block, definition.rounds)
    order = [index for index in whole if not groups[index].variant.is_search]
    for index in order:
        measured[index].diagnosis = _diagnosed(context, connections, cohort, groups[index])
        context.diagnosed += 1
        context.progress.ended(cohort, run_time.DIAGNOSTIC)
        context.between_rounds(
            f"diagnostic slice {context.diagnosed} of {context.progress.diagnostic} is taken"
        )
    for index in filter(lambda index: _is_poor(measured[index].diagnosis.found), order):
        if not context.pace.has_time_to_repeat(cohort, block):
            return
        _repeat_diagnosis(context, connections, cohort, groups[index], measured[index])


def _is_poor(found: DiagnosticResult) -> bool:
    return found.is_disturbed or found.has_failures


def _repeat_diagnosis(
    context: RunContext,
    connections: DiagnosticConnections,
    cohort: int,
    group: ClientGroup,
    measurements: VariantMeasurements,
) -> None:
    """Run the variant's diagnostic slice again, and keep the better one."""
    first, again = measurements.diagnosis.found, _diagnosed(context, connections, cohort, group)
    if again.found.badness < first.badness:
        found = again.found.instead_of(first) if first.is_disturbed else again.found
        measurements.diagnosis = replace(again, found=found)
    context.repeated += 1
    context.progress.ended(cohort, run_time.DIAGNOSTIC)
    context.between_rounds(f"the diagnostic slice of {group.variant.label} is repeated")


def _diagnosed(
    context: RunContext, connections: DiagnosticConnections, cohort: int, group: ClientGroup
) -> Diagnosis:
    return in_time(group, partial(_examined, context, connections, cohort, group))


def _examined(
    context: RunContext, connections: DiagnosticConnections, cohort: int, group: ClientGroup
) -> Diagnosis:
    definition = context.plan.definition
    window_ns = definition.diagnostic_ms * 1_000_000
    request = slice_request(context, cohort, group, "diagnostic")._replace(window_ns=window_ns, count=0)
    begin_ns = time.monotonic_ns()
    found = connections.examine(group, request, _statements_of(definition.work(group.variant.workload)))
    context.departed(group)
    context.written.empty()
    return Diagnosis(found, (begin_ns, time.monotonic_ns()))


def time_statements(context: RunContext, groups: list[ClientGroup]) -> None:
    """Measure each statement of the operations with several, and the parts of pages, on the variants
    that can: once, although each cohort has the reference.
    """
    timed = {(each.workload, each.layer, each.mode, each.route) for each in context.statement_times}
    parted = {(each.workload, each.mode, each.route) for each in context.page_parts}
    for group in groups:
        variant = group.variant
        work, place = context.plan.definition.work(variant.workload), (variant.mode, variant.route)
        if statement_times.are_timed(variant, work):
            if (key := (variant.workload, variant.layer, *place)) not in timed:
                each = statement_times.measured(group, work, context.host)
                context.statement_times.append(StatementTimes(*key, each))
                context.between_rounds(f"the statements of {variant.label} are timed one by one")
        elif page_parts.are_measured(variant) and (variant.workload, *place) not in parted:
            context.page_parts.append(page_parts.measured(group))
            context.between_rounds(f"the parts of the page are timed for {variant.label}")


def _statements_of(work: WorkloadDefinition) -> int | None:
    """The number of statements of one operation; None for a workload of the site that was not
    captured.
    """
    return len(work.statements) or (1 if work.sql else None)
