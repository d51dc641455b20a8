"""`pgperf list`: benchmarks, databases with their targets, the site's workloads, and the layers.

For each layer it says whether this machine can run it.
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf.cli import text_table
from pgperf.reports import listing
from pgperf.reports.table import Table

_NO_BENCHMARKS = "Benchmarks: none. `manage.py migrate` copies those of the catalog."
_NO_TARGETS = "Targets: none. Add a database with its targets in the admin."
_NO_WORKLOADS = "Workloads of this site: none. Register one with @workload in an app's pgperf_workloads.py."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    found = {
        "benchmarks": listing.benchmarks(),
        "databases": listing.databases(),
        "workloads": listing.workloads(),
        "layers": listing.abilities(),
    }
    out.write(json.dumps(found, indent=2) if options["json"] else text_table.report(_parts(found)))


def _parts(found: dict[str, listing.Rows]) -> Iterator[Table | str]:
    yield _or(listing.benchmark_table(found["benchmarks"]), _NO_BENCHMARKS)
    yield _or(listing.target_table(found["databases"]), _NO_TARGETS)
    yield _or(listing.workload_table(found["workloads"]), _NO_WORKLOADS)
    yield listing.layer_table(found["layers"])


def _or(table: Table, otherwise: str) -> Table | str:
    return table if table.rows else otherwise
