"""How long a plan takes, step by step: predicted from the plan, and by the slices that a pilot
chose (pure).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pgperf.core import protocol
from pgperf.core.delayed_routes import apart
from pgperf.core.layers import LAYERS, ORM_LAYER
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Cohort, Definition, Plan, Variant, WorkloadDefinition
from pgperf.runner import slice_length
from pgperf.runner.plan import sharing, warm_up_turns

#: The parts of a cohort's block. Web servers start anew where a hook does that. In a cold block the
#: first client of each variant starts alone.
RESTART, START, COLD_START, WARM_UP, PILOT, ROUND, DIAGNOSTIC = (
    "restart", "start", "cold_start", "warm_up", "pilot", "round", "diagnostic",
)  # fmt: skip

#: What a promise has beyond the least time: three times as much, a minute at most, and half at least.
_LATE_TIMES, _LATE_S, _LATE_SHARE = 3, 60.0, 0.5
_FIXED_S = 2.0  # to probe the server, and to store the results
_STARTING_CPUS = 2  # clients start together on all CPUs; a prediction takes two
_END_S = 0.005  # to end a client
_CHECKPOINT_S = 0.2  # before a block of workloads that insert rows
_TRIAL_OPS = 3  # of each client before the warm-up, from which its length follows
_ARMING_S, _ARMING_EACH_S = 0.025, 0.001  # to start several clients together: once, and per client
_SLICE_OVERHEAD_S = 0.003
_DEPARTURE_S = 0.015  # until the backends of a slice have left, where they pass
_SETTLE_S = 0.020  # to count the rows of a slice and to truncate their table
_QUERIES_S = 0.15  # to read the counters before and after a diagnostic slice


class Step(NamedTuple):
    """A part of one cohort's blocks; a run does it once or several times."""

    cohort: int
    part: str


def steps(plan: Plan, *, diagnoses: bool) -> Counter[Step]:
    """How often the run does each of its steps. `diagnoses`: can there be diagnostic slices?"""
    definition, found = plan.definition, Counter[Step]()
    cold = min(definition.cold_blocks, definition.blocks)
    for at, cohort in enumerate(plan.cohorts):
        times = {
            RESTART: definition.blocks if restarted(definition, cohort) else 0,
            COLD_START: cold,
            START: definition.blocks - cold,
            WARM_UP: definition.blocks,
            PILOT: 1,
            ROUND: definition.blocks * definition.rounds,
            DIAGNOSTIC: len(cohort.diagnosed) if definition.diagnostic_ms and diagnoses else 0,
        }
        found.update({Step(at, part): count for part, count in times.items()})
    return found


def seconds(plan: Plan) -> float:
    """The predicted wall time of all blocks and rounds."""
    return (
        _FIXED_S
        + _captures_s(plan.definition)
        + sum(times * predicted_s(plan, step) for step, times in steps(plan, diagnoses=True).items())
    )


def _captures_s(definition: Definition) -> float:
    """To capture the statements of the site's own calls: a client of the ORM, then one of each
    layer that repeats them.
    """
    own = [work for work in definition.workloads if work.is_site]
    return sum(_client_start_s(layer, work) for work in own for layer in (ORM_LAYER, *definition.layers))


def promised_s(plan: Plan) -> float:
    """The wall time that the run may take: its time budget, else the predicted time. A run that may
    stop early has more than the least time: a busy machine takes several times as long, and no
    prediction knows the time of a query.
    """
    if plan.definition.budget_s or plan.definition.is_fixed:
        return plan.definition.budget_s or seconds(plan)
    return with_reserve_s(plan)


def with_reserve_s(plan: Plan) -> float:
    """The predicted wall time, at least the least time with its reserve."""
    least = least_s(plan)
    more = max(min(_LATE_TIMES * least, _LATE_S), _LATE_SHARE * least)
    return max(seconds(plan), least + more)


def least_s(plan: Plan) -> float:
    """The predicted wall time of six blocks with one round each."""
    least = replace(plan.definition, blocks=LEAST_BLOCKS, rounds=1)
    return seconds(replace(plan, definition=least))


def predicted_s(plan: Plan, step: Step) -> float:
    """The wall time of a step, each time that the run does it."""
    cohort = plan.cohorts[step.cohort]
    predict = {
        RESTART: _restart_s,
        START: _start_s,
        COLD_START: _cold_start_s,
        WARM_UP: _warm_up_s,
        PILOT: _pilot_s,
        ROUND: predicted_round_s,
        DIAGNOSTIC: lambda definition, _cohort: diagnostic_s(definition),
    }
    return predict[step.part](plan.definition, cohort)


def restarted(definition: Definition, cohort: Cohort) -> set[str]:
    """The routes whose web servers start anew before each block of the cohort. A delayed route has
    those of the route itself.
    """
    routes = {variant.route for variant in cohort.variants} & {*definition.web_routes}
    return {apart(route)[0] for route in routes} if definition.restart_s else set()


def round_s(
    definition: Definition, slices: Mapping[str, protocol.Slice], op_s: Mapping[Variant, float]
) -> float:
    """A round with these slices, by workload, and times of an operation, by variant."""
    lengths = _slice_s(definition, slices, op_s)
    return sum(length_s + _overhead_s(definition, variant) for variant, length_s in lengths.items())


def _slice_s(
    definition: Definition, slices: Mapping[str, protocol.Slice], op_s: Mapping[Variant, float]
) -> dict[Variant, float]:
    search_ms = definition.rate_search_ms
    return {
        variant: slice_length.length_s(slices[variant.workload], each_s, variant, search_ms)
        for variant, each_s in op_s.items()
    }


def predicted_slice_s(definition: Definition, cohort: Cohort) -> dict[Variant, float]:
    """The lead-in and window of each variant's slices before any pilot."""
    return _slice_s(definition, predicted_slices(definition, cohort), _predicted_ops(definition, cohort))


def predicted_round_s(definition: Definition, cohort: Cohort) -> float:
    """A round before any pilot. A query of unknown cost is taken for a fast one, whose slices are as
    short as slices can be.
    """
    return round_s(definition, predicted_slices(definition, cohort), _predicted_ops(definition, cohort))


def predicted_slices(definition: Definition, cohort: Cohort) -> dict[str, protocol.Slice]:
    by_workload: dict[str, list[Variant]] = {}
    for variant in cohort.variants:
        by_workload.setdefault(variant.workload, []).append(variant)
    return {name: slice_length.predicted(definition, own) for name, own in by_workload.items()}


def diagnostic_s(definition: Definition, op_s: float = 0.0) -> float:
    """A diagnostic slice; 0 without diagnostics. Its lead-in has one operation at least, and the last
    one of its window ends when it ends.
    """
    if not definition.diagnostic_ms:
        return 0.0
    lead_in_s = max(definition.lead_in_ms / 1000, op_s)
    return lead_in_s + definition.diagnostic_ms / 1000 + op_s + _QUERIES_S


def _overhead_s(definition: Definition, variant: Variant) -> float:
    """The time of a slice beside its lead-in and window."""
    armed = variant.connections > 1 or variant.is_open_loop
    several = variant.connections if armed else 0
    arming_s = _ARMING_S + several * _ARMING_EACH_S if several else 0.0
    settling_s = _SETTLE_S if definition.work(variant.workload).bulk else 0.0
    return _SLICE_OVERHEAD_S + arming_s + settling_s + (_DEPARTURE_S if variant.backends_pass else 0.0)


def _restart_s(definition: Definition, cohort: Cohort) -> float:
    return definition.restart_s * len(restarted(definition, cohort))


def _start_s(definition: Definition, cohort: Cohort) -> float:
    """To start all clients together, and to end them."""
    clients = [(own.processes, _alone_s(definition, own)) for own in sharing(cohort.variants)]
    return sum(count * (each_s / _STARTING_CPUS + _END_S) for count, each_s in clients)


def _alone_s(definition: Definition, variant: Variant) -> float:
    return _client_start_s(variant.layer, definition.work(variant.workload))


def _client_start_s(layer: str, work: WorkloadDefinition) -> float:
    """Of one client alone: at least that of the site where it starts the site."""
    least_s = LAYERS[layer].start_seconds
    return max(least_s, work.start_s) if LAYERS[layer].needs_site else least_s


def _cold_start_s(definition: Definition, cohort: Cohort) -> float:
    alone_s = sum(_alone_s(definition, own) for own in sharing(cohort.variants))
    return _start_s(definition, cohort) + alone_s * (1 - 1 / _STARTING_CPUS)


def _warm_up_s(definition: Definition, cohort: Cohort) -> float:
    checkpoint = any(definition.work(variant.workload).bulk for variant in cohort.variants)
    turns_s = sum(_turn_s(definition, turn) for turn in warm_up_turns(sharing(cohort.variants)))
    return turns_s + (_CHECKPOINT_S if checkpoint else 0.0)


def _turn_s(definition: Definition, variants: Iterable[Variant]) -> float:
    """Clients that warm up at the same time, so operations that connect wait for each other."""
    op_s = sum(slice_length.predicted_op_s(definition, own) for own in variants)
    least_s, most_s = definition.warm_up_ms / 1000, slice_length.warm_up_most_s(definition)
    return _TRIAL_OPS * op_s + max(least_s, min(definition.warm_up_ops * op_s, most_s))


def _pilot_s(definition: Definition, cohort: Cohort) -> float:
    variants = [v for v in cohort.variants if not definition.work(v.workload).bulk]
    piloted = [v for v in variants if v.connections > 1 or not definition.slice_ms]
    ops = _predicted_ops(definition, cohort)
    return sum(
        slice_length.length_s(slice_length.pilot_slice(ops[v], v.connections), ops[v], v.closed)
        + _overhead_s(definition, v)
        for v in piloted
    )


def _predicted_ops(definition: Definition, cohort: Cohort) -> dict[Variant, float]:
    return {variant: slice_length.predicted_op_s(definition, variant) for variant in cohort.variants}
