"""What the catalog's benchmarks and fixtures are made of (standard library only)."""

from dataclasses import dataclass

from pgperf.core import limits
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import WorkloadDefinition


@dataclass(frozen=True)
class CatalogBenchmark:
    """A benchmark that ships with pgperf. pgperf.core.limits says what its numbers mean.

    A lower `rank` comes first. The first benchmark of a workload gives the workload its title; the
    workloads of a benchmark with several have their names in it.
    """

    name: str
    title: str
    description: str
    workloads: tuple[WorkloadDefinition, ...]
    layers: tuple[str, ...]
    routes: tuple[str, ...]
    modes: tuple[str, ...] = ("simple",)
    clients: tuple[int, ...] = (limits.CLIENTS.default,)
    connection_modes: tuple[str, ...] = ("persistent",)
    environments: tuple[str, ...] = (DEFAULT,)
    rate_search_ms: float = limits.RATE_SEARCH_MS.default
    load_hosts: tuple[int, ...] = (0,)
    workers: int = limits.WORKERS.default
    row_type: str = "tuple"
    transaction: str = "autocommit"
    bulk_api: str = "best"
    placement: str = "apart"
    idle: str = "awake"
    blocks: int = limits.BLOCKS.default
    rounds: int = limits.ROUNDS.default
    slice_ms: int = limits.SLICE_MS.default
    diagnostic_ms: int = limits.DIAGNOSTIC_MS.default
    precision: float = limits.PRECISION.default
    budget_s: int = limits.BUDGET_S.default
    rank: int = 100


@dataclass(frozen=True)
class Fixture:
    """Tables and rows a workload needs, in the schema `pgperf`.

    `create` are statements to run in order, each in its own transaction; running them again changes
    nothing. `probe` returns one row with `t` when the fixture is there, complete and of this
    version. `drop` removes it again.
    """

    name: str
    create: tuple[str, ...]
    probe: str
    drop: tuple[str, ...]
