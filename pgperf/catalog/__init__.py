"""The benchmarks that ship with pgperf; using one copies it.

A new benchmark is one module here with a CatalogBenchmark in it.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from pgperf.catalog.base import CatalogBenchmark, Fixture
from pgperf.catalog.fixtures import FIXTURES
from pgperf.core.records import WorkloadDefinition

__all__ = ["BENCHMARKS", "FIXTURES", "CatalogBenchmark", "Fixture", "find_benchmarks", "workloads"]

#: Modules of this package that use Django, which this list must not load.
_WITH_DJANGO = ("orm", "sync")


def find_benchmarks() -> dict[str, CatalogBenchmark]:
    """Every CatalogBenchmark of this package's modules by name, in the order of their ranks."""
    found = {benchmark.name: benchmark for module in _modules() for benchmark in _benchmarks_in(module)}
    return dict(sorted(found.items(), key=lambda item: (item[1].rank, item[0])))


def _modules() -> Iterator[str]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return (f"{__name__}.{name}" for name in names if name not in _WITH_DJANGO)


def _benchmarks_in(module: str) -> Iterator[CatalogBenchmark]:
    return (value for value in vars(import_module(module)).values() if isinstance(value, CatalogBenchmark))


BENCHMARKS = find_benchmarks()


def workloads() -> list[WorkloadDefinition]:
    """Every workload of the catalog once, in the order of its benchmarks."""
    return list({work.name: work for each in BENCHMARKS.values() for work in each.workloads}.values())
