"""The connections, memory and time that a plan needs, checked before a run starts anything."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pgperf.core.exceptions import (
    ASKED_BUDGET,
    FEWER_ROWS,
    BudgetTooShort,
    InvalidDefinition,
    PreflightRefused,
)
from pgperf.core.layers import over_http
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Plan
from pgperf.runner import run_time
from pgperf.runner.memory import MIB, owners, start_bytes
from pgperf.runner.plan import make_plan

#: What a refused run should ask for, over the time that it seems to need.
_RESERVE = 1.1
_MOST = "PGPERF['MAX_RUN_SECONDS']"


@dataclass(frozen=True)
class ResourceEstimate:
    """The needs of a plan: wall time in seconds, predicted or the time budget; simultaneous
    connections; resident memory in bytes.
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

    The run needs one control connection, two more for diagnostics, and one for tables that it fills.
    """
    connections = [
        sum(v.connections for v in owners(cohort) if not over_http(v.layer)) for cohort in plan.cohorts
    ]
    memory = [start_bytes(cohort) for cohort in plan.cohorts]
    fills = any(plan.definition.work(variant.workload).bulk for variant in plan.variants)
    own = 1 + 2 * bool(plan.definition.diagnostic_ms) + fills
    seconds = plan.definition.budget_s or run_time.seconds(plan)
    return ResourceEstimate(seconds, max(connections) + own, max(memory))


def check(plan: Plan, headroom: Headroom, connection_share: float, max_seconds: float) -> ResourceEstimate:
    """The estimate.

    Raises PreflightRefused with the numbers, the remedy and a smaller plan that fits, and
    BudgetTooShort where six blocks exceed the time budget.
    """
    need = estimate(plan)
    if not plan.definition.is_fixed and (least_s := run_time.least_s(plan)) > need.seconds:
        raise too_short(least_s, need.seconds)
    problem = _problem(need, headroom, connection_share, max_seconds)
    if not problem:
        return need

    def fits(smaller: Plan) -> bool:
        return not _problem(estimate(smaller), headroom, connection_share, max_seconds)

    offered = " or with ".join(offers(plan, fits))
    raise PreflightRefused(f"{problem}. It fits with {offered}" if offered else problem)


def time_refusal(plan: Plan, max_seconds: float) -> str:
    """Why six blocks of the plan cannot fit into its time budget or into what is allowed; "" if they
    can, and for a run of a fixed length.
    """
    if plan.definition.is_fixed:
        return ""
    least_s, budget_s = run_time.least_s(plan), plan.definition.budget_s or math.inf
    if least_s > min(budget_s, max_seconds):
        return (
            str(too_short(least_s, budget_s)) if least_s <= max_seconds else _too_long(least_s, max_seconds)
        )
    return ""


def _too_long(least_s: float, max_seconds: float) -> str:
    return (
        f"time: {LEAST_BLOCKS} blocks take at least {lasting(math.ceil(least_s))}, allowed are {lasting(max_seconds)}"
        f" ({_MOST}); choose fewer routes, layers or clients"
    )


def too_short(least_s: float, budget_s: float, *, chosen: bool = True) -> BudgetTooShort:
    """The refusal of a run whose six blocks take at least `least_s`. `chosen`: by a user, who can
    choose another budget or plan.
    """
    asked = ASKED_BUDGET.format(math.ceil(least_s * _RESERVE))
    smaller = f"{asked}, or choose fewer layers, routes or clients"
    return BudgetTooShort(
        f"time budget: {LEAST_BLOCKS} blocks take at least {lasting(math.ceil(least_s))} on this machine, and the run"
        f" has {lasting(budget_s)}; {smaller if chosen else 'try again when the machine is quieter'}"
    )


def lasting(seconds: float) -> str:
    """Such as "95 s (1 min 35 s)": the fields of a form take seconds."""
    whole = round(seconds)
    return f"{whole} s" + (f" ({whole // 60} min {whole % 60} s)" if whole >= 60 else "")


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
    fewer: dict[str, Iterable[Any]] = {
        "clients": _fewer_clients(plan),
        "workers": _halves(plan.definition.workers),
        "routes": _fewer_routes(plan),
    }
    found = []
    for name, values in fewer.items():
        for value in values:
            smaller = _smaller(plan, name, value)
            if smaller and fits(smaller):
                found.append(f"{name} {', '.join(map(str, value)) if isinstance(value, tuple) else value}")
                break
    return found


def _smaller(plan: Plan, name: str, value: Any) -> Plan | None:
    """The plan with another value; None where nothing is left that can run."""
    try:
        return make_plan(replace(plan.definition, **{name: value}), plan.skipped)
    except InvalidDefinition:
        return None


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
            f"time: the run would take about {lasting(need.seconds)}, allowed are {lasting(max_seconds)} "
            f"({_MOST}); choose fewer blocks, rounds, routes or layers"
        )
    return ""
