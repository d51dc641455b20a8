"""The tables of definitions and results: fields and constraints only.

`runs.state` changes the state of a Run. `runs.store` writes results.
"""

from pgperf.models.benchmark import Benchmark, BenchmarkWorkload
from pgperf.models.database import Database, Target
from pgperf.models.orders import LoadShare, Sampling
from pgperf.models.pause import Pause
from pgperf.models.results import BlockResult, ChangePoint, ComparisonResult, VariantResult
from pgperf.models.run import Run
from pgperf.models.schedule import Schedule
from pgperf.models.statement_list import StatementList
from pgperf.models.worker import MachineLook, Worker
from pgperf.models.workload import Workload

__all__ = [
    "Benchmark", "BenchmarkWorkload", "BlockResult", "ChangePoint", "ComparisonResult", "Database",
    "LoadShare", "MachineLook", "Pause", "Run", "Sampling", "Schedule", "StatementList", "Target",
    "VariantResult", "Worker", "Workload",
]  # fmt: skip
