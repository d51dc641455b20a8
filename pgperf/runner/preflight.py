"""What a plan will take, and whether it may: connections, memory, time. Refused before anything starts."""

from dataclasses import dataclass

from pgperf.exceptions import PreflightRefused
from pgperf.records import Plan, Variant

#: Rough resident megabytes of one client, and seconds to start one; predictions only.
_MEGABYTES = {"libpq": 8, "fake": 20, "psycopg2": 30, "psycopg": 40}
_START_SECONDS = {"libpq": 0.02, "fake": 0.08, "psycopg2": 0.1, "psycopg": 0.2}
_DJANGO_MEGABYTES, _DJANGO_START_SECONDS = 75, 0.4
_ASSUMED_WINDOW_MS = 50
_MEMORY_SHARE = 0.5
_FIXED_SECONDS = 2.0


@dataclass(frozen=True)
class Estimate:
    """What a plan will take: wall time in seconds, connections held at once, resident memory in bytes."""

    seconds: float
    connections: int
    memory_bytes: int


@dataclass(frozen=True)
class Headroom:
    """What there is: free connection slots of the server and free memory of this machine."""

    free_connections: int
    memory_bytes: int


def estimate(plan: Plan) -> Estimate:
    """Predict from the plan alone; one more connection is the monitor's."""
    clients = [sum(v.clients for v in cohort.variants) for cohort in plan.cohorts]
    memory = [sum(v.clients * _megabytes(v) for v in cohort.variants) for cohort in plan.cohorts]
    return Estimate(_seconds(plan), max(clients) + 1, max(memory) * 1024 * 1024)


def check(plan: Plan, headroom: Headroom, connection_share: float, max_seconds: float) -> Estimate:
    """The estimate. Raises PreflightRefused with the numbers and the remedy when a rail is in the way."""
    need = estimate(plan)
    allowed = int(headroom.free_connections * connection_share)
    if need.connections > allowed:
        raise PreflightRefused(
            f"connections: the run needs {need.connections} at once, allowed are {allowed} "
            f"({connection_share:.0%} of {headroom.free_connections} free slots); "
            "choose fewer routes, layers or clients"
        )
    if need.memory_bytes > headroom.memory_bytes * _MEMORY_SHARE:
        raise PreflightRefused(
            f"memory: the clients need about {need.memory_bytes >> 20} MiB, half of what is free is "
            f"{headroom.memory_bytes >> 21} MiB; choose fewer clients or layers"
        )
    if need.seconds > max_seconds:
        raise PreflightRefused(
            f"time: the run would take about {need.seconds:.0f} s, allowed are {max_seconds:.0f} s "
            "(PGPERF['MAX_RUN_SECONDS']); choose fewer blocks, rounds, routes or layers"
        )
    return need


def _seconds(plan: Plan) -> float:
    definition = plan.definition
    slice_s = ((definition.window_ms or _ASSUMED_WINDOW_MS) + definition.lead_in_ms) / 1000 + 0.003
    total = _FIXED_SECONDS
    for cohort in plan.cohorts:
        start = sum(v.clients * _start_seconds(v) for v in cohort.variants)
        cold = min(definition.cold_blocks, definition.blocks)
        total += cold * start + (definition.blocks - cold) * start / 2
        total += definition.blocks * (
            definition.warm_up_ms / 1000 + definition.rounds * len(cohort.variants) * slice_s
        )
    return total


def _megabytes(variant: Variant) -> int:
    return _MEGABYTES.get(variant.layer, _DJANGO_MEGABYTES)


def _start_seconds(variant: Variant) -> float:
    return _START_SECONDS.get(variant.layer, _DJANGO_START_SECONDS)
