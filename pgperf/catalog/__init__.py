"""The benchmarks that ship with pgperf, one file each; using one copies it."""

from pgperf.catalog.base import CatalogBenchmark, Fixture
from pgperf.catalog.client_scaling import CLIENT_SCALING
from pgperf.catalog.fixtures import FIXTURES
from pgperf.catalog.layers_and_modes import LAYERS_AND_MODES
from pgperf.catalog.orm_overhead import ORM_OVERHEAD
from pgperf.catalog.published_a import EIGHT_CLIENTS, PUBLISHED_A

__all__ = ["BENCHMARKS", "FIXTURES", "CatalogBenchmark", "Fixture"]

BENCHMARKS: dict[str, CatalogBenchmark] = {
    benchmark.name: benchmark
    for benchmark in (ORM_OVERHEAD, LAYERS_AND_MODES, CLIENT_SCALING, PUBLISHED_A, EIGHT_CLIENTS)
}
