"""A history as charts and tables for its page and for the command."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.change_points import LEAST_AFTER, LEAST_BEFORE
from pgperf.analysis.definition_diff import Difference
from pgperf.models import ChangePoint, Run
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.fact_names import difference_cells
from pgperf.reports.history import History
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
        text = _("There are too few runs to look for changes of level: %(count)d of %(least)d.")
        return text % {"count": count, "least": least}
    return _("No step has changed its level in these runs.")


def charts(history: History, step: Step) -> list[tuple[str, Chart]]:
    """Title and chart: the step as a time, then its ratio where there is a layer below."""
    times = of_times(_chart(history, step, _us, "%s"))
    title = _("Step in %s") if step.below else _("Time in %s")
    found = [(title % times["unit"], _labelled(times))]
    if step.below:
        found.append((_("Ratio"), _labelled(_chart(history, step, _ratio, _("times the layer below")))))
    return found


def _labelled(chart: Chart) -> Chart:
    """With what a screen reader says."""
    label = _("%(step)s over %(count)d runs, in %(axis)s. The table below has the numbers.")
    about = {"step": chart["series"][0]["name"], "count": len(chart["x"]), "axis": chart["axis"]}
    return {**chart, "label": label % about}


def note(history: History) -> str:
    """How many runs the page shows, and what it leaves out."""
    count = len(history.runs)
    text = ngettext("%(count)d run", "The latest %(count)d runs", count)
    if history.later:
        text = ngettext("%(count)d run", "%(count)d earlier runs", count)
    told = [text % {"count": count} + "."]
    if count > MOST_INTERVALS:
        told.append(_("The charts leave out the intervals; the table has them."))
    return " ".join(told)


def run_table(history: History, step: Step) -> Table:
    """A row for each run, the newest first."""
    columns = (
        text_column(_("Run")),
        time_column(_("step") if step.below else _("time")),
        interval_column(),
        *([Column(_("ratio")), interval_column()] if step.below else []),
        text_column(_("What happened")),
    )
    rows = [_run_row(history, step, run) for run in reversed(history.runs)]
    return Table(step_title(step), columns, rows, "history")


def step_table(history: History) -> Table:
    """Every step as it is now, with its last change."""
    columns = (
        text_column(_("Step")),
        time_column(_("now")),
        interval_column(),
        Column(_("ratio")),
        text_column(_("Last change")),
    )
    rows = [_step_row(history, step) for step in history.steps]
    return Table(_("All steps"), columns, rows, "history")


def environment_table(history: History) -> Table | None:
    """What differs from the run before, the newest run first."""
    columns = tuple(map(text_column, (_("Run"), _("What"), _("before"), _("after"))))
    rows = [
        (words(_run_title(run)), *difference_cells(each))
        for run in reversed(history.runs)
        for each in history.environment_changes.get(run.pk, ())
    ]
    return Table(_("Changes of the environment"), columns, rows, "environment") if rows else None


def _run_row(history: History, step: Step, run: Run) -> tuple[Cell, ...]:
    point = history.series[step].get(run.pk)
    happened = words("; ".join(_happened(history, step, run)))
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


def _happened(history: History, step: Step, run: Run) -> list[str]:
    """The changes of this step, a disturbance, the changes of the environment, and the run's note."""
    found = [_("much disturbed")] if history.is_disturbed(run.pk, step) else []
    found += [_short(each) for each in history.changes_of(step) if each.run_id == run.pk]
    differences = history.environment_changes.get(run.pk, [])
    found += [_difference(each) for each in differences[:_MOST_DIFFERENCES]]
    if (more := len(differences) - _MOST_DIFFERENCES) > 0:
        found.append(ngettext("%d more difference", "%d more differences", more) % more)
    return [*found, *filter(None, [_first_line(run.notes)])]


def _difference(found: Difference) -> str:
    what, before, after = (cell.text for cell in difference_cells(found))
    return f"{what}: {before} → {after}"


def _first_line(text: str) -> str:
    return Truncator(text.strip().partition("\n")[0]).chars(_MOST_TEXT)


def _run_title(run: Run) -> str:
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


def _chart(history: History, step: Step, measure: _Measure, axis: str) -> Chart:
    points = [history.series[step].get(run.pk) for run in history.runs]
    series = {
        "name": step_title(step),
        "values": [measure.value(point) for point in points],
        "colour": colour(history.steps[step].layer),
        "shape": 0,
        "hollow": [history.is_disturbed(run.pk, step) for run in history.runs],
    }
    if len(points) <= MOST_INTERVALS:
        series["intervals"] = [measure.interval(point) for point in points]
    return {
        "kind": "history",
        "axis": axis,
        "x_axis": _("run"),
        "x": [*range(len(points))],
        "ticks": [run.pk for run in history.runs],
        "titles": [day(run) for run in history.runs],
        "series": [series],
        "happened": _marks(history, step),
        "told": [sentence(each) for each in history.changes_of(step) if each.run_id in history.numbers],
    }


def _marks(history: History, step: Step) -> list[dict[str, object]]:
    """Where a level begins, where the environment differs, and which runs have a note."""
    begins = {each.run_id for each in history.changes_of(step)}
    found = [
        (at, run, [*_kinds(run, run.pk in begins, run.pk in history.environment_changes)])
        for at, run in enumerate(history.runs)
    ]
    told = ((at, kinds, _happened(history, step, run)) for at, run, kinds in found)
    return [{"at": at, "kinds": kinds, "texts": texts} for at, kinds, texts in told if texts]


def _kinds(run: Run, begins: bool, other_environment: bool) -> Iterator[str]:
    if begins:
        yield "change"
    if other_environment:
        yield "environment"
    if run.notes.strip():
        yield "note"


def choices(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """The label and the title of each variant to choose."""
    return [(step.variant, step_title(step)) for step in steps]
