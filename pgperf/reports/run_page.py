"""Everything a run's page shows of its results, section by section, in the page's order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.ladder import Ladder
from pgperf.models import Run
from pgperf.reports import (
    comparisons,
    cpu_accounting,
    environment,
    host,
    ladders,
    scaling,
    server,
    throughput,
    verdicts,
)
from pgperf.reports.chart import Chart
from pgperf.reports.labels import left_out_title
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.table import Table

Part = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """One part of the page. `name` is its anchor, and its template under templates/pgperf/sections/."""

    name: str
    title: str
    part: Part

    @property
    def template(self) -> str:
        return f"pgperf/sections/{self.name}.html"


@dataclass(frozen=True)
class Rungs:
    """One ladder: its title, its chart, its table."""

    title: str
    chart: Chart
    table: Table


@dataclass(frozen=True)
class Result:
    """What there is to show; a section that a run has nothing for is not there."""

    sections: list[Section] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    measured: bool = False  # is there anything to compare or to download?

    def part(self, name: str) -> Part | None:
        """The data of one section."""
        return next((section.part for section in self.sections if section.name == name), None)


def result(run: Run) -> Result:
    """A finished run's charts and tables, in two queries."""
    rows = read(run)
    return Result(
        sections=list(_sections(rows)),
        skipped={left_out_title(name): why for name, why in run.summary.get("skipped", {}).items()},
        partial=bool(run.summary.get("partial", False)),
        measured=bool(rows.variants or rows.ladders),
    )


def _sections(rows: RunRows) -> Iterator[Section]:
    """In the page's order; a maker without anything to show returns nothing."""
    makers: dict[str, tuple[str, Callable[[RunRows], Part]]] = {
        "verdicts": (_("What bounds it"), _verdicts),
        "layers": (_("Where a query's time goes"), _layers),
        "spent": (_("Where the time is spent"), _spent),
        "ladder": (_("The ladder"), _ladder),
        "reading": (_("How to read this"), _reading),
        "scaling": (_("More clients"), _scaling),
        "speed": (_("Throughput and processor time"), _speed),
        "latency": (_("Latency"), _latency),
        "host": (_("The host"), _host),
        "server": (_("The server"), _server),
        "cold": (_("Cold phases"), _cold),
        "comparisons": (_("Comparisons"), _comparisons),
        "captures": (_("What one operation sends"), _captures),
        "environment": (_("Environment"), _environment),
    }
    for name, (title, make) in makers.items():
        if part := make(rows):
            yield Section(name, title, part)


def _verdicts(rows: RunRows) -> Part:
    found = verdicts.verdicts(rows.variants)
    if not found:
        return {}
    return {
        "headlines": verdicts.headlines(rows.variants),
        "verdicts": found,
        "broken": verdicts.broken_laws(rows.variants),
    }


def _layers(rows: RunRows) -> Part:
    """Of several numbers of clients the first one's: bars of all could not share a scale."""
    if not rows.ladders:
        return {}
    first = [ladder for ladder in rows.ladders if ladder.clients == rows.ladders[0].clients]
    return {
        "headlines": ladders.headlines(first, rows.ladders),
        "saved": comparisons.workload_headlines(rows.comparisons),
        "chart": ladders.time_split(first, rows.ladders),
    }


def _spent(rows: RunRows) -> Part:
    charts = cpu_accounting.spent(rows.variants)
    return {"charts": charts, "table": cpu_accounting.spent_table(rows.variants)} if charts else {}


def _ladder(rows: RunRows) -> Part:
    """The ladders by number of clients, each number with a scale of its own."""
    counts = dict.fromkeys(ladder.clients for ladder in rows.ladders)
    alike = {count: [ladder for ladder in rows.ladders if ladder.clients == count] for count in counts}
    return {"groups": [(count, _rungs(own, rows.ladders)) for count, own in alike.items()]} if counts else {}


def _rungs(alike: Sequence[Ladder], among: Sequence[Ladder]) -> list[Rungs]:
    return [
        Rungs(
            ladders.ladder_title(ladder, among),
            ladders.ladder_chart(ladder, alike, among),
            ladders.ladder_table(ladder, among),
        )
        for ladder in alike
    ]


def _reading(rows: RunRows) -> Part:
    """`idle`: "awake" or "system"; "" where the run does not know."""
    return {"idle": rows.run.environment.get("idle", {}).get("idle", "")} if rows.ladders else {}


def _scaling(rows: RunRows) -> Part:
    series = [each for each in rows.scaling if len(each.points) > 1]
    if not series:
        return {}
    return {
        "curves": scaling.curves(series),
        "cpu": scaling.cpu_curves(series),
        "table": scaling.scaling_table(series),
    }


def _speed(rows: RunRows) -> Part:
    if not rows.variants:
        return {}
    return {
        "throughput": throughput.throughput(rows.variants),
        "cpu": cpu_accounting.cpu(rows.variants),
        "tables": [throughput.throughput_table(rows.variants), cpu_accounting.cpu_table(rows.variants)],
        "cpu_account": [table for table in _account_tables(rows) if table.rows],
    }


def _account_tables(rows: RunRows) -> list[Table]:
    return [
        cpu_accounting.share_table(rows.variants),
        cpu_accounting.server_share_table(rows.variants),
        cpu_accounting.queue_table(rows.variants),
    ]


def _latency(rows: RunRows) -> Part:
    if not rows.variants:
        return {}
    chart = throughput.latency(rows.variants)
    return {"chart": chart if chart["rows"] else None, "table": throughput.latency_table(rows.variants)}


def _host(rows: RunRows) -> Part:
    line = rows.run.summary.get("timeline") or {}
    chart = host.timeline(line, rows.variants)
    topped = any(variant.top for variant in rows.variants)
    if not chart and not topped:
        return {}
    return {
        "timeline": chart,
        "timeline_table": host.timeline_table(line) if chart else None,
        "tops": [host.host_table(rows.variants), host.role_table(rows.variants)] if topped else [],
        "processes": host.process_tables(rows.variants),
    }


def _server(rows: RunRows) -> Part:
    tables = (
        server.wait_table(rows.variants),
        server.pooler_table(rows.variants),
        server.statement_table(rows.variants),
    )
    part = {
        "chart": server.wait_chart(rows.variants),
        "tables": [table for table in tables if table.rows],
        "notes": server.notes(rows.variants),
    }
    return part if any(part.values()) else {}


def _cold(rows: RunRows) -> Part:
    table = throughput.cold_table(rows.variants)
    return {"table": table} if table.rows else {}


def _comparisons(rows: RunRows) -> Part:
    controls = comparisons.control_table(rows.comparisons)
    part = {
        "tables": comparisons.comparison_tables(rows.comparisons),
        "controls": controls if controls.rows else None,
    }
    return part if any(part.values()) else {}


def _captures(rows: RunRows) -> Part:
    tables = environment.capture_tables(rows.run.environment)
    return {"tables": tables} if tables else {}


def _environment(rows: RunRows) -> Part:
    timings = [environment.timings_table(rows.run.timings)] if rows.run.timings else []
    tables = [*timings, *environment.environment_tables(rows.run.environment)]
    return {"tables": tables} if tables else {}
