"""The tables that are neither of variants nor of comparisons, as CSV: scaling, timeline, top. Text is made harmless."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tablib

from pgperf.models import Run, VariantResult
from pgperf.reports import csv_files, result_keys
from pgperf.reports.csv_files import cell_text
from pgperf.reports.scaling import scaling_table

_LEAD = ("run_id", "benchmark", "database")
_TIMELINE = ("seconds", "variant", *result_keys.SHARE)
_TOP = (
    "label", "seconds", *(f"host_{key}" for key in result_keys.HOST), *result_keys.PROCESS,
    *(f"server_host_{key}" for key in result_keys.HOST),
)  # fmt: skip

Row = tuple[Any, ...]


def scaling_csv(*runs: Run) -> str:
    """One row per number of clients of each layer over each route, with whose the host's processors were."""
    return csv_files.csv(runs, lambda rows: scaling_table(rows.scaling), csv_files.short_lead)


def timeline_csv(*runs: Run) -> str:
    """One row per moment: whose processor time it was, as shares of the host."""
    return _csv(_TIMELINE, _of_each(runs, _timeline))


def top_csv(*runs: Run) -> str:
    """One row per process in each variant's diagnostic slice, with the lines of the load host and of the server's."""
    return _csv(_TOP, _of_each(runs, _top))


def _timeline(run: Run) -> Iterator[Row]:
    line = run.summary.get("timeline") or {}
    variants, roles = line.get("variant", []), line.get("roles", {})
    for at, seconds in enumerate(line.get("seconds", [])):
        shares = (values[at] if (values := roles.get(role)) else None for role in result_keys.SHARE)
        yield seconds, variants[at] if variants else None, *shares


def _top(run: Run) -> Iterator[Row]:
    for variant in VariantResult.objects.filter(run=run).only("label", "top").order_by("position"):
        if variant.top:
            lead = (variant.label, variant.top.get("seconds"), *_line(variant.top))
            far = _line(variant.top.get("server_host") or {})
            for process in variant.top.get("processes") or [{}]:
                yield *lead, *(process.get(key) for key in result_keys.PROCESS), *far


def _line(top: Mapping[str, Any]) -> Row:
    """A host's line; that of the server's host is empty where it is the same one, or nobody looked."""
    host = top.get("host") or {}
    return tuple(host.get(key) for key in result_keys.HOST)


def _of_each(runs: Iterable[Run], rows: Callable[[Run], Iterable[Row]]) -> Iterator[Row]:
    for run in runs:
        yield from ((run.pk, run.benchmark_name, run.database_name, *row) for row in rows(run))


def _csv(columns: tuple[str, ...], rows: Iterable[Row]) -> str:
    data = tablib.Dataset(headers=[*_LEAD, *columns])
    for row in rows:
        data.append([cell_text(cell) if isinstance(cell, str) else cell for cell in row])
    return str(data.export("csv"))
