"""The connections, memory and time that a plan needs, checked before a run starts anything."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pgperf.core import limits, protocol
from pgperf.core.exceptions import FEWER_ROWS, PreflightRefused
from pgperf.core.layers import LAYERS
from pgperf.core.records import Cohort, Definition, Plan, Variant
from pgperf.runner import slice_length
from pgperf.runner.memory import MIB, owners, start_bytes
from pgperf.runner.plan import make_plan

_ARMING_S, _ARMING_EACH_S = 0.025, 0.001  # to start several clients together: once, and per client
_FIXED_SECONDS = 2.0
_SLICE_OVERHEAD_S = 0.003
_QUERIES_S = 0.15  # to read the counters before and after a diagnostic slice


@dataclass(frozen=True)
class ResourceEstimate:
    """The needs of a plan: wall time in seconds, simultaneous connections, resident memory in
    bytes.
    """

    seconds: float
    connections: int
    memory_bytes: int


@dataclass(frozen=True)
class Headroom:
    """Free connection slots of the server, and the memory in bytes that the clients may take.

    `memory_rule`: where that number comes from.
    """

    free_connections: int
    memory_bytes: int
    memory_rule: str = "half of what is free"


@dataclass(frozen=True)
class ResultSize:
    """The result of one operation by the server's plan: rows, and bytes per row."""

    rows: int
    width: int

    @property
    def bytes(self) -> int:
        return self.rows * self.width


def estimate(plan: Plan) -> ResourceEstimate:
    """Predict from the plan alone.

    The run needs one control connection, and two more for diagnostics.
    """
    connections = [sum(v.connections for v in owners(cohort)) for cohort in plan.cohorts]
    memory = [start_bytes(cohort) for cohort in plan.cohorts]
    own = 3 if plan.definition.diagnostic_ms else 1
    return ResourceEstimate(_seconds(plan), max(connections) + own, max(memory))


def check(plan: Plan, headroom: Headroom, connection_share: float, max_seconds: float) -> ResourceEstimate:
    """The estimate.

    Raises PreflightRefused with the numbers, the remedy and a smaller plan that fits.
    """
    need = estimate(plan)
    problem = _problem(need, headroom, connection_share, max_seconds)
    if not problem:
        return need

    def fits(smaller: Plan) -> bool:
        return not _problem(estimate(smaller), headroom, connection_share, max_seconds)

    offered = " or with ".join(offers(plan, fits))
    raise PreflightRefused(f"{problem}. It fits with {offered}" if offered else problem)


def most_workers(plan: Plan) -> int:
    """The most workers that a client process of the plan has."""
    return max(variant.workers for variant in plan.variants)


def check_results(results: Mapping[str, ResultSize], client_bytes: int, workers: int = 1) -> None:
    """Raises PreflightRefused if one result for each worker exceeds what each client may take.

    `results`: the server's estimates for one operation of each workload.
    """
    each = f" for each of its {workers} workers" if workers > 1 else ""
    for workload, result in results.items():
        if result.bytes * workers > client_bytes:
            raise PreflightRefused(
                f"memory: by the server's plan, one operation of {workload} returns {result.rows:,} rows of "
                f"{result.width:,} bytes, about {result.bytes // MIB} MiB{each}; each client may take "
                f"{client_bytes // MIB} MiB. {FEWER_ROWS}"
            )


def offers(plan: Plan, fits: Callable[[Plan], bool]) -> list[str]:
    """The nearest smaller plans that fit, as text: one with fewer clients, workers or routes each."""
    definition = plan.definition
    fewer_clients = (replace(definition, clients=clients) for clients in _fewer_clients(plan))
    fewer_workers = (replace(definition, workers=workers) for workers in _halves(definition.workers))
    fewer_routes = (replace(definition, routes=routes) for routes in _fewer_routes(plan))
    found = []
    for smaller in fewer_clients:
        if fits(make_plan(smaller, plan.skipped)):
            found.append(f"clients {', '.join(map(str, smaller.clients))}")
            break
    for smaller in fewer_workers:
        if fits(make_plan(smaller, plan.skipped)):
            found.append(f"workers {smaller.workers}")
            break
    for smaller in fewer_routes:
        if fits(make_plan(smaller, plan.skipped)):
            found.append(f"routes {', '.join(smaller.routes)}")
            break
    return found


def _fewer_clients(plan: Plan) -> Iterator[tuple[int, ...]]:
    """The list without its largest numbers, then half the smallest number, repeatedly."""
    asked = sorted(plan.definition.clients)
    yield from (tuple(asked[:count]) for count in range(len(asked) - 1, 0, -1))
    yield from ((clients,) for clients in _halves(asked[0]))


def _halves(count: int) -> Iterator[int]:
    """Half of it, and half of that, down to 1."""
    while count > 1:
        count //= 2
        yield count


def _fewer_routes(plan: Plan) -> Iterator[tuple[str, ...]]:
    asked = plan.definition.routes
    yield from (asked[:count] for count in range(len(asked) - 1, 0, -1))


def _problem(need: ResourceEstimate, headroom: Headroom, connection_share: float, max_seconds: float) -> str:
    """The guardrail that refuses the plan, with its numbers; "" if none does."""
    allowed = int(headroom.free_connections * connection_share)
    if need.connections > allowed:
        return (
            f"connections: the run needs {need.connections} at once, allowed are {allowed} "
            f"({connection_share * 100:.0f} % of {headroom.free_connections} free slots); "
            "choose fewer routes, layers or clients"
        )
    if need.memory_bytes > headroom.memory_bytes:
        return (
            f"memory: the clients need about {need.memory_bytes // MIB} MiB, allowed are "
            f"{headroom.memory_bytes // MIB} MiB ({headroom.memory_rule}); choose fewer clients or layers"
        )
    if need.seconds > max_seconds:
        return (
            f"time: the run would take about {need.seconds:.0f} s, allowed are {max_seconds:.0f} s "
            "(PGPERF['MAX_RUN_SECONDS']); choose fewer blocks, rounds, routes or layers"
        )
    return ""


def _seconds(plan: Plan) -> float:
    definition = plan.definition
    total = _FIXED_SECONDS
    cold = min(definition.cold_blocks, definition.blocks)
    for cohort in plan.cohorts:
        together = sum(v.processes * LAYERS[v.layer].start_seconds for v in owners(cohort)) / 2
        # the first client of each variant starts alone in a cold block
        alone = sum(LAYERS[v.layer].start_seconds for v in owners(cohort)) / 2
        total += definition.blocks * (together + _warm_up_s(definition, cohort)) + cold * alone
        total += _pilot_s(definition, cohort)
        total += definition.blocks * definition.rounds * round_s(definition, cohort)
        total += len(cohort.variants) * diagnostic_s(definition)
    return total


def _warm_up_s(definition: Definition, cohort: Cohort) -> float:
    """All variants warm up at the same time; the slowest decides."""
    slowest_s = max(slice_length.predicted_op_s(definition, variant) for variant in cohort.variants)
    return max(
        definition.warm_up_ms / 1000, min(definition.warm_up_ops * slowest_s, slice_length.WARM_UP_MOST_S)
    )


def _pilot_s(definition: Definition, cohort: Cohort) -> float:
    """The pilot of variants whose time per operation is predicted; any other is over at once."""
    variants = [v for v in cohort.variants if not definition.work(v.workload).bulk]
    piloted = [v for v in variants if v.connections > 1 or not definition.slice_ms]
    ops = [slice_length.predicted_op_s(definition, variant) for variant in piloted]
    return sum(slice_length.length_s(slice_length.pilot_slice(op_s), op_s) for op_s in ops)


def round_s(definition: Definition, cohort: Cohort) -> float:
    """Duration of a round of the cohort in seconds.

    A query of unknown cost is taken for a fast one, whose slices are as short as slices can be.
    """
    by_workload: dict[str, list[Variant]] = {}
    for variant in cohort.variants:
        by_workload.setdefault(variant.workload, []).append(variant)
    requests = {name: slice_length.predicted(definition, own) for name, own in by_workload.items()}
    slices = [_slice_s(definition, variant, requests[variant.workload]) for variant in cohort.variants]
    return sum(slices) + _arming_s(cohort)


def _slice_s(definition: Definition, variant: Variant, request: protocol.Slice) -> float:
    own_s = slice_length.length_s(request, slice_length.predicted_op_s(definition, variant))
    return max(own_s + _SLICE_OVERHEAD_S, LAYERS[variant.layer].least_slice_s)


def _arming_s(cohort: Cohort) -> float:
    armed = [v.connections for v in cohort.variants if v.connections > 1]
    return len(armed) * _ARMING_S + sum(armed) * _ARMING_EACH_S


def slice_s(definition: Definition) -> float:
    """Duration of a timed slice of one client with a fast query in seconds."""
    return ((definition.slice_ms or limits.PILOT_MIN_MS) + definition.lead_in_ms) / 1000 + _SLICE_OVERHEAD_S


def diagnostic_s(definition: Definition) -> float:
    """Duration of a diagnostic slice in seconds; 0 without diagnostics."""
    return (
        (definition.diagnostic_ms + definition.lead_in_ms) / 1000 + _QUERIES_S
        if definition.diagnostic_ms
        else 0.0
    )
