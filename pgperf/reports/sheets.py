"""The tables that are neither of variants nor of comparisons, as CSV: scaling, timeline, top. Text is made harmless."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tablib

from pgperf.models import Run, VariantResult
from pgperf.reports import keys
from pgperf.reports.export import cell_text

_LEAD = ("run_id", "benchmark", "database")
_SERIES = ("workload", "layer", "mode", "route")
_POINT = ("clients", "ops_per_s", "low", "high", "p50_us", "p99_us", "efficiency")
_TIMELINE = ("seconds", "variant", *keys.SHARE)
_TOP = ("label", "seconds", *(f"host_{key}" for key in keys.HOST), *keys.PROCESS)

Row = tuple[Any, ...]


def scaling_csv(*runs: Run) -> str:
    """One row per number of clients of each layer over each route."""
    return _csv((*_SERIES, *_POINT), _of_each(runs, _scaling))


def timeline_csv(*runs: Run) -> str:
    """One row per moment: whose processor time it was, as shares of the host."""
    return _csv(_TIMELINE, _of_each(runs, _timeline))


def top_csv(*runs: Run) -> str:
    """One row per process in each variant's diagnostic slice, with the host's line beside it."""
    return _csv(_TOP, _of_each(runs, _top))


def _scaling(run: Run) -> Iterator[Row]:
    for series in run.summary.get("scaling", []):
        for point in series["points"]:
            yield *(series.get(key) for key in _SERIES), *(point.get(key) for key in _POINT)


def _timeline(run: Run) -> Iterator[Row]:
    line = run.summary.get("timeline") or {}
    variants, roles = line.get("variant", []), line.get("roles", {})
    for at, seconds in enumerate(line.get("seconds", [])):
        shares = (roles[role][at] if role in roles else None for role in keys.SHARE)
        yield seconds, variants[at] if variants else None, *shares


def _top(run: Run) -> Iterator[Row]:
    for variant in VariantResult.objects.filter(run=run).only("label", "top").order_by("position"):
        if variant.top:
            host = (variant.top.get("host", {}).get(key) for key in keys.HOST)
            lead = (variant.label, variant.top.get("seconds"), *host)
            for process in variant.top.get("processes") or [{}]:
                yield *lead, *(process.get(key) for key in keys.PROCESS)


def _of_each(runs: Iterable[Run], rows: Callable[[Run], Iterable[Row]]) -> Iterator[Row]:
    for run in runs:
        yield from ((run.pk, run.benchmark_name, run.database_name, *row) for row in rows(run))


def _csv(columns: tuple[str, ...], rows: Iterable[Row]) -> str:
    data = tablib.Dataset(headers=[*_LEAD, *columns])
    for row in rows:
        data.append([cell_text(cell) if isinstance(cell, str) else cell for cell in row])
    return str(data.export("csv"))
