"""Results of runs as OpenMetrics text, for Prometheus and what reads its formats.

Every family is a gauge: the figure of the newest done run. A figure that is not known has no
sample. No sample has a time, because a collector would drop figures of last week; the family
`pgperf_run_finished_timestamp_seconds` tells how old they are.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, QuerySet

from pgperf.access import permissions
from pgperf.models import ComparisonResult, Run, VariantResult
from pgperf.reports import result_keys
from pgperf.reports.run_rows import read

#: The fields of a variant that identify it.
_IDENTITY = (
    "workload", "layer", "mode", "route", "clients", "workers", "connect", "environment", "rate", "schedule", "hosts",
    "placement", "control",
)  # fmt: skip
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_S_PER_US = 1e-6

Labels = Mapping[str, Any]
Sample = tuple[Labels, float | None]


@dataclass(frozen=True)
class Family:
    """A name without the prefix, which ends with the unit if there is one, and its help text."""

    name: str
    help: str
    unit: str = ""


FINISHED = Family("run_finished_timestamp_seconds", "End of the run, in seconds since 1970.", "seconds")
OPERATION = Family("operation_seconds", "Time per operation.", "seconds")
OPERATION_LOW = Family("operation_low_seconds", "Low end of its 95 % interval.", "seconds")
OPERATION_HIGH = Family("operation_high_seconds", "High end of its 95 % interval.", "seconds")
RATE = Family("operations_per_second", "Operations per second of all clients.")
CPU = Family("operation_cpu_seconds", "CPU time per operation, by role.", "seconds")
ERRORS = Family("failed_operations", "Operations that failed in the run.")
RATIO = Family("comparison_ratio", "Time per operation over that of the baseline.", "ratio")
RATIO_LOW = Family("comparison_low_ratio", "Low end of its 95 % interval.", "ratio")
RATIO_HIGH = Family("comparison_high_ratio", "High end of its 95 % interval.", "ratio")
#: In the order of the text.
FAMILIES = (
    FINISHED, OPERATION, OPERATION_LOW, OPERATION_HIGH, RATE, CPU, ERRORS, RATIO, RATIO_LOW, RATIO_HIGH,
)  # fmt: skip


def newest_done(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Of these runs, the newest done one of each benchmark on each database; confirmations are no
    runs of the benchmark itself.
    """
    done = runs.filter(status=Run.Status.DONE, intervention="")
    kept = done.filter(benchmark__isnull=False, database__isnull=False).order_by()
    newest = kept.values("benchmark", "database").annotate(newest=Max("pk")).values("newest")
    found = runs.filter(pk__in=newest).select_related("benchmark", "database")
    return found.order_by("benchmark__name", "database__name")


def seen_by(user: Any) -> QuerySet[Run]:
    """The runs that the groups let the user see; an anonymous user sees those of no group."""
    return permissions.visible(Run.objects.all(), user)


def text(runs: Iterable[Run]) -> str:
    """The families with their samples, and the end mark. At most one run of each benchmark on each
    database.
    """
    found: dict[Family, list[Sample]] = {family: [] for family in FAMILIES}
    for run in runs:
        for family, labels, value in _samples(run):
            found[family].append((labels, value))
    return "".join([*(line for family in FAMILIES for line in _lines(family, found[family])), "# EOF\n"])


def _samples(run: Run) -> Iterator[tuple[Family, Labels, float | None]]:
    rows, of_run = read(run), _names(run)
    numbered = {**of_run, "run": run.pk, "quick": str(run.quick).lower()}
    yield FINISHED, numbered, run.finished_at.timestamp() if run.finished_at else None
    for row in rows.variants:
        yield from _of_variant(row, {**of_run, **_identity(row)})
    for each in rows.comparisons:
        yield from _of_comparison(
            each, {**of_run, **_identity(each.variant), "baseline": each.baseline.label}
        )


def _names(run: Run) -> Labels:
    """As they are now: a stored name may be that of another benchmark by now."""
    return {
        "benchmark": run.benchmark.name if run.benchmark else run.benchmark_name,
        "database": run.database.name if run.database else run.database_name,
    }


def _of_variant(row: VariantResult, labels: Labels) -> Iterator[tuple[Family, Labels, float | None]]:
    yield OPERATION, labels, _seconds(row.us_per_op)
    yield OPERATION_LOW, labels, _seconds(row.us_per_op_low)
    yield OPERATION_HIGH, labels, _seconds(row.us_per_op_high)
    yield RATE, labels, row.ops_per_s
    yield ERRORS, labels, row.errors
    for role in result_keys.CPU:
        yield CPU, {**labels, "role": role}, _seconds(row.cpu_us_per_op.get(role))


def _of_comparison(row: ComparisonResult, labels: Labels) -> Iterator[tuple[Family, Labels, float | None]]:
    yield RATIO, labels, row.ratio
    yield RATIO_LOW, labels, row.low
    yield RATIO_HIGH, labels, row.high


def _identity(row: VariantResult) -> Labels:
    """An empty label is as good as none: a closed loop has no rate."""
    found = {name: getattr(row, name) for name in _IDENTITY}
    return {name: "" if value is None else value for name, value in found.items()}


def _seconds(us: float | None) -> float | None:
    return None if us is None else us * _S_PER_US


def _lines(family: Family, samples: Iterable[Sample]) -> Iterator[str]:
    """The family's metadata and samples; nothing without a known figure."""
    known = [(labels, value) for labels, value in samples if value is not None and math.isfinite(value)]
    if not known:
        return
    name = f"pgperf_{family.name}"
    yield f"# TYPE {name} gauge\n"
    yield f"# UNIT {name} {family.unit}\n" if family.unit else ""
    yield f"# HELP {name} {family.help.translate(_ESCAPES)}\n"
    for labels, value in known:
        yield f"{name}{{{_labels(labels)}}} {float(value)!r}\n"


def _labels(labels: Labels) -> str:
    return ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels.items())
