"""Results as files: one row per variant, and one per comparison, named as in `run --json`, flattened.

Numbers stay numbers, negative ones too; text that a spreadsheet would take for a formula is quoted.
"""

from collections.abc import Iterable
from typing import Any

import tablib
from django.db.models import QuerySet
from import_export import fields, resources
from import_export.formats.base_formats import CSV, XLSX

from pgperf.analysis.scheduler_states import PARTS
from pgperf.models import Run, VariantResult
from pgperf.reports import csv_files, result_keys
from pgperf.reports.comparisons import all_comparisons
from pgperf.reports.csv_files import cell_text
from pgperf.reports.run_json import time_us_per_op
from pgperf.reports.verdicts import verdict_json

CSV_TYPE = f"{CSV.CONTENT_TYPE}; charset=utf-8"
XLSX_TYPE = XLSX.CONTENT_TYPE

_RUN = {
    "run_id": "run_id",
    "benchmark": "run__benchmark_name",
    "database": "run__database_name",
    "status": "run__status",
    "quick": "run__quick",
    "started": "run__started_at",
    "finished": "run__finished_at",
    "definition_hash": "run__definition_hash",
}
#: JSON of the run that no column shows.
_HEAVY = ("run__definition", "run__environment", "run__summary", "run__timings")
_VARIANT = (
    "label", "workload", "layer", "mode", "route", "clients", "placement", "connect", "control", "slices",
    "ops", "rows", "errors", "ops_per_s", "rows_per_s", "us_per_op", "us_per_op_low", "us_per_op_high",
)  # fmt: skip
_VERDICT = (
    ("verdict", "word"),
    ("verdict", "certainty"),
    ("verdict", "evidence"),
    ("verdict", "intervention"),
    ("verdict", "checks", "capacity", "withheld"),
    ("verdict", "checks", "capacity", "why"),
)


class Column(fields.Field):
    """A cell that keeps its type: null is empty, times are ISO 8601, text is made harmless."""

    def export(self, instance: Any, **_kwargs: Any) -> Any:
        value = self.get_value(instance)
        if value is None or isinstance(value, int | float):
            return value
        return cell_text(value.isoformat() if hasattr(value, "isoformat") else str(value))


class TimePart(Column):
    """One of the parts of an operation's time, µs."""

    def __init__(self, part: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._part = part

    def get_value(self, instance: VariantResult) -> float | None:
        return time_us_per_op(instance)[self._part]


class VerdictPart(Column):
    """A value of the verdict as `run --json` has it."""

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(column_name="_".join(path))
        self._path = path

    def get_value(self, instance: VariantResult) -> Any:
        found: Any = {"verdict": verdict_json(instance.record.verdict)}
        for key in self._path:
            found = found[key] if found else None
        return found


def _columns(attributes: dict[str, str]) -> dict[str, Column]:
    return {name: Column(attribute=attribute, column_name=name) for name, attribute in attributes.items()}


def _nested(field: str, names: Iterable[str]) -> dict[str, str]:
    return {f"{field}__{key}".replace("__", "_"): f"{field}__{key}" for key in names}


class VariantResource(resources.Resource):
    """One row per variant of each run."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fields = _columns(
            _RUN
            | {name: name for name in _VARIANT}
            | _nested("latency_us", result_keys.LATENCY)
            | _nested("cold_us", result_keys.COLD)
            | _nested("cpu_us_per_op", result_keys.CPU)
        )
        self.fields |= {
            f"time_us_per_op_{part}": TimePart(column_name=f"time_us_per_op_{part}", part=part)
            for part in PARTS
        }
        self.fields |= _columns(
            _nested("cpu_account", ("cpus", "elapsed_s", "source"))
            | _nested("cpu_account__share", result_keys.SHARE)
            | _nested("cpu_account__wait_us_per_op", result_keys.WAIT)
            | _nested("cpu_account__switches_per_op", result_keys.SWITCHES)
            | _nested("cpu_account__system_share", result_keys.WAIT)
            | _nested("cpu_account__busiest", result_keys.WAIT)
            | _nested("cpu_account__server_host", ("cpus", "elapsed_s"))
            | _nested("cpu_account__server_host__share", result_keys.SHARE)
            | _nested("diagnostics", ("seconds", "samples"))
            | _nested("diagnostics__wait_events", result_keys.WAIT_EVENTS)
            | _nested("diagnostics__pooler", result_keys.POOLER)
            | _nested("diagnostics__statements", result_keys.STATEMENTS)
        )
        self.fields |= {"_".join(path): VerdictPart(path) for path in _VERDICT}


def variants_csv(*runs: Run) -> str:
    """CSV with a header line, one row per variant, in the runs' order."""
    return str(_variants(runs).export("csv"))


def comparisons_csv(*runs: Run) -> str:
    """CSV with a header line, one row per comparison, in the runs' order."""
    return csv_files.csv(_newest_first(runs), all_comparisons, csv_files.long_lead)


def variants_xlsx(*runs: Run) -> bytes:
    """A workbook with one sheet: the rows of `variants_csv`."""
    return bytes(XLSX().export_data(_variants(runs)))


def comparisons_xlsx(*runs: Run) -> bytes:
    """A workbook with one sheet: the rows of `comparisons_csv`."""
    return csv_files.xlsx(_newest_first(runs), all_comparisons, csv_files.long_lead)


def _variants(runs: Iterable[Run]) -> tablib.Dataset:
    return VariantResource().export(_rows(VariantResult.objects.all(), runs))


def _newest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: -run.pk)


def _rows(queryset: QuerySet[Any], runs: Iterable[Run]) -> QuerySet[Any]:
    return (
        queryset.filter(run__in=[run.pk for run in runs])
        .select_related("run")
        .defer(*_HEAVY)
        .order_by("-run", "position")
    )
