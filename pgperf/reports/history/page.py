"""A history as charts and tables for its page and for the command."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.change_points import LEAST_AFTER, LEAST_BEFORE
from pgperf.analysis.definition_diff import Difference
from pgperf.models import ChangePoint
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.fact_names import difference_cells
from pgperf.reports.history import History, HistoryRun
from pgperf.reports.labels import colour
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    interval,
    interval_column,
    number,
    ratio,
    ratio_interval,
    text_column,
    time_column,
    words,
)
from pgperf.runs.change_text import day, layers, levels, sentence, since, step_title, told
from pgperf.runs.step_series import Point, Step

#: More runs than that are drawn without their intervals.
MOST_INTERVALS = 100
_MOST_DIFFERENCES, _MOST_TEXT = 3, 80


@dataclass(frozen=True)
class ShownChange:
    """A change in words, with its run to link to; `layers` say which steps changed with it."""

    text: str
    levels: str
    layers: tuple[str, ...]
    run: int


def changes(history: History) -> list[ShownChange]:
    """Without the steps that a change of the headline figure names."""
    return [
        ShownChange(sentence(each), levels(each), tuple(layers(each)), each.run_id)
        for each in told(history.changes)
    ]


def no_changes(history: History) -> str:
    """What it means that there are none: too few runs to look for any, or no change."""
    count, least = history.line.count, LEAST_BEFORE + LEAST_AFTER
    if count < least:
        text = _("There are too few runs to look for change points: %(count)d of %(least)d.")
        return text % {"count": count, "least": least}
    return _("No step has changed its level in these runs.")


def charts(history: History, step: Step) -> list[tuple[str, Chart]]:
    """Title and chart: the step as a time, then its ratio where there is a layer below."""
    common = _common(history, step)
    times = of_times({**common, **_curves(history, step, _us, "%s")})
    title = _("Step in %s") if step.below else _("Time in %s")
    found = [(title % times["unit"], _labelled(times))]
    if step.below:
        ratios = _curves(history, step, _ratio, _("times the layer below"))
        found.append((_("Ratio"), _labelled({**common, **ratios})))
    return found


def _labelled(chart: Chart) -> Chart:
    """With what a screen reader says."""
    count = len(chart["x"])
    label = ngettext(
        "%(step)s over %(count)d run, in %(axis)s. The table below has the numbers.",
        "%(step)s over %(count)d runs, in %(axis)s. The table below has the numbers.",
        count,
    )
    about = {"step": chart["series"][0]["name"], "count": count, "axis": chart["axis"]}
    return {**chart, "label": label % about}


def note(history: History) -> str:
    """How many runs the chart shows, and what it leaves out."""
    count = len(history.runs)
    is_latest = history.runs[-1].pk == history.line.last
    latest = ngettext("%(count)d run", "The latest %(count)d runs", count)
    text = latest if is_latest else ngettext("%(count)d run", "%(count)d earlier runs", count)
    told = [text % {"count": count} + "."]
    if count > MOST_INTERVALS:
        told.append(_("The charts leave out the intervals; the table has them."))
    return " ".join(told)


def listed(history: History) -> str:
    """Which runs the table has, where it has not all of them."""
    first, last = history.listed[0].pk, history.listed[-1].pk
    if not history.earlier_listed and not history.later:
        return ""
    return _("The table has the runs #%(first)d to #%(last)d.") % {"first": first, "last": last}


def run_table(history: History, step: Step) -> Table:
    """A row for each run, the newest first."""
    columns = (
        text_column(_("Run")),
        time_column(_("Step") if step.below else _("Time")),
        interval_column(),
        *([Column(_("Ratio")), interval_column()] if step.below else []),
        text_column(_("What happened")),
    )
    events = _events(history, step)
    rows = [_run_row(history, step, run, events) for run in reversed(history.listed)]
    return Table(step_title(step), columns, rows, "history")


def step_table(history: History) -> Table:
    """Every step as it is now, with its last change."""
    columns = (
        text_column(_("Step")),
        time_column(_("Now")),
        interval_column(),
        Column(_("Ratio")),
        text_column(_("Last change")),
    )
    rows = [_step_row(history, step) for step in history.steps]
    return Table(_("All steps"), columns, rows, "history")


def environment_table(history: History, runs: Sequence[HistoryRun]) -> Table | None:
    """What differs from the run before, of these runs, the newest first."""
    columns = tuple(map(text_column, (_("Run"), _("What"), _("Before"), _("After"))))
    rows = [
        (words(_run_title(run)), *difference_cells(each))
        for run in reversed(runs)
        for each in history.environment_changes.get(run.pk, ())
    ]
    return Table(_("Changes of the environment"), columns, rows, "environment") if rows else None


def _run_row(history: History, step: Step, run: HistoryRun, events: "_Events") -> tuple[Cell, ...]:
    point = history.series[step].get(run.pk)
    happened = words("; ".join(events.of(run)))
    if point is None:
        unknown = Cell(_("not measured"))
        return (words(_run_title(run)), unknown, *[Cell("")] * (3 if step.below else 1), happened)
    ratios = (ratio(point.ratio), ratio_interval(point.low_ratio, point.high_ratio)) if step.below else ()
    return (
        words(_run_title(run)),
        number(point.us),
        interval(point.low_us, point.high_us),
        *ratios,
        happened,
    )


def _step_row(history: History, step: Step) -> tuple[Cell, ...]:
    point, changed = history.now.get(step), history.changes_of(step)
    return (
        words(step_title(step)),
        number(point.us if point else None),
        interval(point.low_us, point.high_us) if point else Cell(""),
        ratio(point.ratio) if point and point.ratio is not None else Cell("–"),
        words(_short(changed[0]) if changed else "–"),
    )


def _short(change: ChangePoint) -> str:
    """The change without the name of the step."""
    return since(change.before_us, change.after_us, change.run)


@dataclass(frozen=True)
class _Events:
    """What happened in the runs of a step: `changes` by the run with which a level begins."""

    changes: Mapping[int, Sequence[ChangePoint]]
    disturbed: Collection[int]
    environment: Mapping[int, Sequence[Difference]]

    def of(self, run: HistoryRun) -> list[str]:
        """A disturbance, the changes of this step and of the environment, and the run's note."""
        found = [_("much disturbed")] if run.pk in self.disturbed else []
        found += [_short(each) for each in self.changes.get(run.pk, ())]
        differences = self.environment.get(run.pk, ())
        found += [_difference(each) for each in differences[:_MOST_DIFFERENCES]]
        if (more := len(differences) - _MOST_DIFFERENCES) > 0:
            found.append(ngettext("%d more difference", "%d more differences", more) % more)
        return [*found, *filter(None, [_first_line(run.notes) if run.notes else ""])]

    def kinds(self, run: HistoryRun) -> list[str]:
        """Those of its marks."""
        marked = {
            "change": run.pk in self.changes,
            "environment": run.pk in self.environment,
            "note": bool(run.notes.strip()),
        }
        return [kind for kind, is_there in marked.items() if is_there]


def _events(history: History, step: Step) -> _Events:
    changes: dict[int, list[ChangePoint]] = {}
    for each in history.changes_of(step):
        changes.setdefault(each.run_id, []).append(each)
    disturbed = {run for run, point in history.series[step].items() if point.is_disturbed}
    return _Events(changes, disturbed, history.environment_changes)


def _difference(found: Difference) -> str:
    what, before, after = (cell.text for cell in difference_cells(found))
    return f"{what}: {before} → {after}"


def _first_line(text: str) -> str:
    return Truncator(text.strip().partition("\n")[0]).chars(_MOST_TEXT)


def _run_title(run: HistoryRun) -> str:
    return f"#{run.pk} · {day(run)}"


@dataclass(frozen=True)
class _Measure:
    """A point's value with its interval; None where it has none."""

    name: str
    low: str
    high: str

    def value(self, point: Point | None) -> float | None:
        found: float | None = getattr(point, self.name) if point else None
        return found

    def interval(self, point: Point | None) -> list[float] | None:
        return whisker(getattr(point, self.low), getattr(point, self.high)) if point else None


_us = _Measure("us", "low_us", "high_us")
_ratio = _Measure("ratio", "low_ratio", "high_ratio")


def _common(history: History, step: Step) -> Chart:
    """What the charts of a step have in common."""
    events = _events(history, step)
    changes = [each for each in history.changes_of(step) if each.run_id in history.numbers]
    return {
        "kind": "history",
        "x_axis": _("run"),
        "x": [*range(len(history.runs))],
        "ticks": [run.pk for run in history.runs],
        "titles": [day(run) for run in history.runs],
        "happened": _marks(history.runs, events),
        "told": [sentence(each) for each in changes],
        "hollow": [run.pk in events.disturbed for run in history.runs],
    }


def _curves(history: History, step: Step, measure: _Measure, axis: str) -> Chart:
    """The values of the runs, and the median of each level."""
    points = [history.series[step].get(run.pk) for run in history.runs]
    values = [measure.value(point) for point in points]
    look = {"colour": colour(history.steps[step].layer), "shape": 0}
    series = {"name": step_title(step), "values": values, **look}
    if len(points) <= MOST_INTERVALS:
        series["intervals"] = [measure.interval(point) for point in points]
    begins = {each.run_id for each in history.changes_of(step)}
    level = _levels(values, [at for at, run in enumerate(history.runs) if run.pk in begins])
    curves = [series]
    if len(points) >= LEAST_BEFORE + LEAST_AFTER:
        curves.append({"name": _("median of the level"), "values": level, "is_level": True, **look})
    return {"axis": axis, "series": curves}


def _levels(values: Sequence[float | None], begins: Sequence[int]) -> list[float | None]:
    """For each run, the median between the changes around it."""
    found: list[float | None] = []
    for begin, end in pairwise([0, *begins, len(values)]):
        known = [value for value in values[begin:end] if value is not None]
        found += [statistics.median(known) if known else None] * (end - begin)
    return found


def _marks(runs: Sequence[HistoryRun], events: _Events) -> list[dict[str, object]]:
    """Where a level begins, where the environment differs, and which runs have a note."""
    told = ((at, events.kinds(run), events.of(run)) for at, run in enumerate(runs))
    return [{"at": at, "kinds": kinds, "texts": texts} for at, kinds, texts in told if texts]


def choices(history: History) -> list[tuple[str, str]]:
    """The name and the title of each step to choose."""
    return [(name, step_title(step)) for name, step in history.names.items()]
