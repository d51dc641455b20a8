"""What the catalog's benchmarks and fixtures are made of (standard library only)."""

from dataclasses import dataclass

from pgperf.core.records import Workload


@dataclass(frozen=True)
class CatalogBenchmark:
    """A benchmark that ships with pgperf. A `slice_ms` of 0 leaves the window's length to the pilot."""

    name: str
    title: str
    description: str
    workload: Workload
    layers: tuple[str, ...]
    routes: tuple[str, ...]
    modes: tuple[str, ...] = ("simple",)
    clients: tuple[int, ...] = (1,)
    placement: str = "apart"
    idle: str = "awake"
    blocks: int = 6
    rounds: int = 5
    slice_ms: int = 0
    diagnostic_ms: int = 1000


@dataclass(frozen=True)
class Fixture:
    """Tables and rows a workload needs, in the schema `pgperf`.

    `create` are statements to run in order, each in its own transaction; running them again changes nothing. `probe`
    returns one row with `t` when the fixture is there, complete and of this version. `drop` removes it again.
    """

    name: str
    create: tuple[str, ...]
    probe: str
    drop: tuple[str, ...]
