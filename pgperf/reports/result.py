"""Everything a run's page shows of its results, put together from charts and tables."""

from dataclasses import dataclass, field
from typing import Any

from pgperf.models import Run
from pgperf.reports import charts, tables
from pgperf.reports.charts import Chart
from pgperf.reports.tables import Table


@dataclass(frozen=True)
class Rungs:
    """One ladder: its title, its chart, its table."""

    title: str
    chart: Chart
    table: Table


@dataclass(frozen=True)
class Result:
    """What there is to show; parts that a run did not reach are empty."""

    headlines: list[str] = field(default_factory=list)
    time_split: Chart | None = None
    ladders: list[Rungs] = field(default_factory=list)
    throughput: Chart | None = None
    cpu: Chart | None = None
    throughput_table: Table | None = None
    cpu_table: Table | None = None
    latency: Chart | None = None
    latency_table: Table | None = None
    cold_table: Table | None = None
    saved: list[str] = field(default_factory=list)
    comparisons: list[Table] = field(default_factory=list)
    controls: Table | None = None
    timings: Table | None = None
    environment: list[Table] = field(default_factory=list)
    captures: list[Table] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    idle: str = ""  # "awake" or "system"; "" where the run does not know


def result(run: Run) -> Result:
    """A finished run's charts and tables, in two queries."""
    ladders = run.summary.get("ladders", [])
    ladders = [ladder for ladder in ladders if ladder["steps"]]
    about: dict[str, Any] = {
        "environment": tables.environment_tables(run.environment),
        "captures": tables.capture_tables(run.environment),
        "timings": tables.timings_table(run.timings) if run.timings else None,
        "skipped": {charts.left_out_title(name): why for name, why in run.summary.get("skipped", {}).items()},
        "partial": bool(run.summary.get("partial", False)),
        "idle": run.environment.get("idle", {}).get("idle", ""),
    }
    return Result(**_ladder_parts(ladders), **_variant_parts(run), **_comparison_parts(run), **about)


def _ladder_parts(ladders: list[charts.Ladder]) -> dict[str, Any]:
    return {
        "headlines": tables.headlines(ladders),
        "time_split": charts.time_split(ladders) if ladders else None,
        "ladders": [
            Rungs(
                charts.ladder_title(ladder, ladders),
                charts.ladder_chart(ladder, ladders),
                tables.ladder_table(ladder, ladders),
            )
            for ladder in ladders
        ],
    }


def _variant_parts(run: Run) -> dict[str, Any]:
    variants = list(run.variants.all())
    if not variants:
        return {}
    latency = charts.latency(variants)
    cold = tables.cold_table(variants)
    return {
        "throughput": charts.throughput(variants),
        "cpu": charts.cpu(variants),
        "throughput_table": tables.throughput_table(variants),
        "cpu_table": tables.cpu_table(variants),
        "latency": latency if latency["rows"] else None,
        "latency_table": tables.latency_table(variants),
        "cold_table": cold if cold.rows else None,
    }


def _comparison_parts(run: Run) -> dict[str, Any]:
    rows = list(run.comparisons.all())
    controls = tables.control_table(rows)
    return {
        "comparisons": tables.comparison_tables(rows),
        "saved": tables.workload_headlines(rows),
        "controls": controls if controls.rows else None,
    }
