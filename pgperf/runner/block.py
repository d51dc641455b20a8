"""One block of one cohort: fresh processes and connections, warm-up, pilot, rounds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pgperf.core.layers import over_http
from pgperf.core.records import Variant, VariantBlock
from pgperf.runner import run_time
from pgperf.runner.block_processes import (
    bound_sides,
    close_process_cpu,
    find_processes,
    others_by_side,
    process_cpu_of,
)
from pgperf.runner.block_results import complete_remote, fold, own_counts
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_startup import started
from pgperf.runner.diagnostic_slices import diagnose, time_statements
from pgperf.runner.load_hosts import accounts, hosted
from pgperf.runner.pilot import choose_windows
from pgperf.runner.rounds import timed_rounds
from pgperf.runner.run_context import RunContext
from pgperf.runner.warm_up import warm_up


def run_block(
    context: RunContext, cohort: int, block: int, done: Callable[[list[VariantBlock]], None]
) -> None:
    """Measure every variant of the cohort in one block; `done` gets the results, in the cohort's
    order.

    The diagnosed block ends with the diagnostic slices. If one of them fails, `done` still gets the
    timed slices.
    """
    with _resident(context, cohort, block) as groups:
        with context.clock.phase("warm_up"):
            warm_up(context.plan.definition, groups)
            for group in groups:
                context.departed(group)
            context.written.begin_block()
        context.progress.ended(cohort, run_time.WARM_UP)
        find_processes(context, groups)
        choose_windows(context, cohort, groups)
        process_cpu = process_cpu_of(context.host, groups)
        bound = bound_sides(context.cpu_placement, groups)
        measured = timed_rounds(context, groups, cohort, block)
        counted = close_process_cpu(process_cpu, groups)
        sides = {over: others_by_side(process_cpu, each) for over, each in bound.items()}
        of_variant = partial(_counts_of, context, counted, sides)
        with_hosts = accounts(groups, of_variant)
        try:
            if context.diagnostic_connections and context.pace.diagnoses(cohort, block):
                with context.clock.phase("diagnostics"):
                    diagnose(context, context.diagnostic_connections, groups, cohort, measured)
                    time_statements(context, groups)
        finally:
            complete_remote(context.agent, groups, measured)
            pairs = zip(groups, measured, strict=True)
            done(
                [
                    fold(
                        group,
                        cohort,
                        block,
                        measurements,
                        with_hosts.get(group.variant) or own_counts(of_variant(group.variant), group),
                    )
                    for group, measurements in pairs
                ]
            )


def _counts_of(
    context: RunContext, counted: dict[str, Any], sides: dict[bool, dict[str, Any]], variant: Variant
) -> dict[str, Any]:
    """What was counted in the block of all processes, with the CPUs that the variant's roles had, and
    who else ran there. `sides`: that, by whether a variant's clients request pages.
    """
    over = over_http(variant.layer)
    return {**counted, **sides[over], "role_cpus": context.cpu_placement.role_cpus(over)}


@contextmanager
def _resident(context: RunContext, cohort: int, block: int) -> Iterator[list[ClientGroup]]:
    plan = context.plan
    everyone = plan.variants
    named = [(v, f"{context.application}-{everyone.index(v)}") for v in plan.cohorts[cohort].variants]
    own = [(variant, name) for variant, name in named if not variant.hosts]
    cold = block < plan.definition.cold_blocks
    start = partial(
        started, plan.definition, own, context.routes, context.build_dir, cold, context.cpu_placement,
        interpreters=context.interpreters, memory_bytes=context.client_bytes,
        places=context.places.in_block(block) if context.places else None,
        turn=f"{cohort}/{block}",
    )  # fmt: skip
    begin = time.monotonic()
    context.before_block(block, list(dict.fromkeys(v.route for v in plan.cohorts[cohort].variants)))
    if run_time.restarted(plan.definition, plan.cohorts[cohort]):
        context.progress.ended(cohort, run_time.RESTART)
    with start() as here, hosted(context.load_hosts, cohort, block, named, cold) as away:
        by_variant = {group.variant: group for group in (*here, *away)}
        groups = [by_variant[variant] for variant, _name in named]
        context.clock.spent["startup"] += time.monotonic() - begin
        context.unlimited.update(reason for group in groups for reason in group.unlimited())
        context.progress.ended(cohort, run_time.COLD_START if cold else run_time.START)
        yield groups
