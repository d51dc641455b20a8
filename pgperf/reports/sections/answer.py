"""The answer: a few sentences, and charts of where the time goes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.reports import answer, cpu_accounting, ladders, staircases, step_latency, suite, throughput
from pgperf.reports.answer.judged import judged, judged_column, suite_settings
from pgperf.reports.chart import Chart
from pgperf.reports.labels import load_title, measured
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


@dataclass(frozen=True)
class Figure:
    """A chart with its title. `name` is the last part of its anchor."""

    name: str
    title: str
    chart: Chart


def part(rows: RunRows) -> Part:
    points = answer.points(rows)
    return {"points": points, "figures": list(_figures(rows))} if points else {}


def _figures(rows: RunRows) -> Iterator[Figure]:
    steps = staircases.found(rows)
    if staircases.alone(rows):
        yield _of_steps(steps)
        if spent := cpu_accounting.spent_of(steps[0].shown):
            yield Figure("spent", _("Time of one request by resource"), spent)
    elif rows.is_suite:
        yield from _of_suite(rows)
    else:
        yield from _of_layers(rows)
        yield from [_of_steps(steps)] if steps else _of_resources(rows)


def _of_layers(rows: RunRows) -> Iterator[Figure]:
    if rows.ladders:
        shown = ladders.first_load(rows.ladders)
        several = len({ladders.load_title(each) for each in rows.ladders}) > 1
        titles = [_("Time by layer"), *([ladders.load_title(shown[0])] if several else [])]
        yield Figure("split", ", ".join(titles), ladders.time_split(shown, rows.ladders))
    elif known := [row for row in measured(rows.variants) if row.us_per_op is not None]:
        yield Figure("times", _("Time of one operation"), throughput.times(known))


def _of_resources(rows: RunRows) -> Iterator[Figure]:
    last = judged(rows)
    if spent := cpu_accounting.spent_of(last):
        loads = {load_title(row.identity.connections, row.workers) for row in last}
        titles = [_("Time by resource"), *(sorted(loads) if rows.scaling else [])]
        yield Figure("spent", ", ".join(titles), spent)


def _of_steps(found: Sequence[staircases.Staircase]) -> Figure:
    """Of the first load: the throughput; at a rate, which all steps have in common, what a visitor
    waits.
    """
    first, about = found[0], ""
    if len(found) > 1:
        about = f", {staircases.title(first, found)}"
    if percentiles := step_latency.percentiles(first):
        return Figure("steps", _("Percentiles of the response time of each step") + about, percentiles)
    return Figure("steps", _("Requests per second of each step") + about, staircases.throughput(first))


def _of_suite(rows: RunRows) -> Iterator[Figure]:
    """Of the setting that the answer is about: the mean of each layer, and the parts of the time of
    the judged layer in each workload.
    """
    found = suite_settings(rows)
    first, column = found[0], judged_column(rows)
    title = suite.setting_title(first, found)
    if first.means:
        count = len(first.means[0].workloads)
        over = ngettext(
            "%(title)s, mean of %(count)d workload", "%(title)s, mean of %(count)d workloads", count
        )
        name = over % {"title": title, "count": count}
        yield Figure("means", _("Time of each layer: %s") % name, suite.mean_chart(first))
    shown = [row for row in first.variants if (row.layer, row.workers) == column]
    if spent := cpu_accounting.spent_shares(shown):
        name = " · ".join([first.column_title(column), title])
        yield Figure("spent", _("Time by resource: %s") % name, spent)
