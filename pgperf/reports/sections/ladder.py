"""The ladders as charts and tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgperf.analysis.ladder import Ladder
from pgperf.reports import ladders
from pgperf.reports.chart import Chart
from pgperf.reports.ladders import Load
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part
from pgperf.reports.table import Table


@dataclass(frozen=True)
class Rungs:
    """One ladder: its title, its chart, its table."""

    title: str
    chart: Chart
    table: Table


def part(rows: RunRows) -> Part:
    """The ladders by number of clients and connection mode, each with a scale of its own; none of a
    suite, which would have one for each workload.
    """
    if rows.is_suite:
        return {}
    alike: dict[Load, list[Ladder]] = {}
    for ladder in rows.ladders:
        alike.setdefault(ladders.load(ladder), []).append(ladder)
    groups = [
        (ladders.scale_title(own[0], rows.ladders), _rungs(own, rows.ladders)) for own in alike.values()
    ]
    return {"groups": groups, "note": ladders.note(one_fit=rows.has_one_fit)} if groups else {}


def _rungs(alike: Sequence[Ladder], among: Sequence[Ladder]) -> list[Rungs]:
    return [
        Rungs(
            ladders.ladder_title(ladder, among),
            ladders.ladder_chart(ladder, alike, among),
            ladders.ladder_table(ladder, among),
        )
        for ladder in alike
    ]
