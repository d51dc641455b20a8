"""Ladders as charts, tables and sentences: what each layer adds to the time of one operation."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.ladder import Ladder, Step
from pgperf.core.layers import LAYERS, Rung, place_of
from pgperf.reports import labels, number_format
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.labels import colour, hosts_title, layer_title, rate_title
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    interval,
    interval_column,
    number,
    ratio,
    ratio_interval,
    signed,
    text_column,
    time_column,
    words,
)

#: Connections, connection mode, rate and load hosts.
Load = tuple[int, str, float | None, int]
#: What a ladder's title has after the route, where it tells the ladders of a run apart.
_TELLING = ("workload", "mode", "clients", "connect", "rate", "hosts", "placement", "environment", "driver")


def note(*, one_fit: bool) -> str:
    """How times, steps and ratios belong together, if they come from one fit."""
    if not one_fit:
        return _(
            "An older version of pgperf made this run: its times, steps and ratios are separate estimates"
            " from the blocks, so the quotient of two times can differ slightly from the ratio beside them."
        )
    return _(
        "Times, steps and ratios come from one fit: a step is the difference of two times, and a ratio is"
        " their quotient. Changes of the machine’s speed cancel in the intervals of ratios, and are part of"
        " the intervals of times. So a difference can be significant although the intervals of two times"
        " overlap."
    )


def time_split(ladders: Sequence[Ladder], among: Sequence[Ladder] = ()) -> Chart:
    """Where a query's time goes: one bar per ladder, one segment per layer, µs per operation. What all
    web servers of a ladder add is one.

    `among`: all ladders of the run where these are some of them, so that titles tell them apart.
    """
    parts = dict.fromkeys(place_of(step.layer) for ladder in ladders for step in ladder.steps)
    chart = of_times(
        {
            "kind": "stack",
            "label": _(
                "Time per operation, split by layer, for each route. The tables of the ladder have the numbers."
            ),
            "axis": _("%s per operation"),
            "rows": [_lines(ladder, among or ladders) for ladder in ladders],
            "series": [_split_series(part, ladders) for part in sorted(parts, key=_height)],
            "whiskers": [whisker(ladder.steps[-1].low, ladder.steps[-1].high) for ladder in ladders],
            "interval_title": _("95 % interval of the whole"),
            "ends": [ladder.steps[-1].us for ladder in ladders],
            "max": _shared_maximum(ladders),
        }
    )
    return {**chart, "ends": [_whole(chart, row, end) for row, end in enumerate(chart["ends"])]}


def ladder_chart(ladder: Ladder, ladders: Sequence[Ladder], among: Sequence[Ladder] = ()) -> Chart:
    """One ladder as a staircase: each rung stands on the one below, side rungs on the first.

    `stands_on` is the index of the rung below (-1: the ground). All `ladders` share one scale;
    `among` as above.
    """
    rungs = [*ladder.steps, *ladder.side]
    climbed = len(ladder.steps)
    chart = of_times(
        {
            "kind": "ladder",
            "label": _("Ladder of %s: time per operation of each layer. The table below has the numbers.")
            % ladder_title(ladder, among or ladders),
            "axis": _("%s per operation"),
            "rows": [rung_lines(rung, beside=index >= climbed) for index, rung in enumerate(rungs)],
            "stands_on": [index - 1 if index < climbed else 0 for index in range(len(rungs))],
            "values": [rung.us for rung in rungs],
            "colours": [colour(rung.layer) for rung in rungs],
            "whiskers": [whisker(rung.low, rung.high) for rung in rungs],
            "ends": [rung.us for rung in rungs],
            "max": _shared_maximum(ladders),
        }
    )
    return {**chart, "ends": [chart["ends"][0], *(_end(chart, at, rungs[at]) for at in range(1, len(rungs)))]}


def rung_lines(rung: Step, *, beside: bool) -> list[str]:
    """A rung's name over one or two lines."""
    return [layer_title(rung.layer), *filter(None, [rung.server, _("alternative") if beside else ""])]


def ladder_table(ladder: Ladder, ladders: Sequence[Ladder]) -> Table:
    """One ladder: the steps up to each rung, its own step, its ratio to the first; each with its
    95 % interval.
    """
    columns = (
        text_column(_("Layer")),
        time_column(_("Time per operation")),
        interval_column(),
        time_column(_("Step")),
        interval_column(),
        Column(_("Ratio to the first")),
        interval_column(),
    )
    climbed = len(ladder.steps)
    rows = [
        (
            words(", ".join(rung_lines(rung, beside=index >= climbed))),
            number(rung.us),
            interval(rung.low, rung.high),
            *_step_cells(rung, first=index == 0),
        )
        for index, rung in enumerate([*ladder.steps, *ladder.side])
    ]
    return Table(_caption(ladder, ladders), columns, rows, "ladder")


def _caption(ladder: Ladder, ladders: Sequence[Ladder]) -> str:
    return _(
        "Ladder over %(title)s: Django on %(driver)s, mode %(mode)s, %(clients)s, placement %(placement)s"
    ) % {
        "title": ladder_title(ladder, ladders),
        "driver": layer_title(ladder.driver),
        "mode": ladder.mode,
        "clients": load_title(ladder),
        "placement": ladder.placement,
    }


def load_title(ladder: Ladder) -> str:
    """Its number of clients; its number of connections where a process has several workers."""
    return labels.load_title(ladder.clients, ladder.workers)


def scale_title(ladder: Ladder, among: Sequence[Ladder]) -> str:
    """The number of clients; the connection mode, the rate and the load hosts, where ladders of the
    run differ in them.
    """
    parts = [load_title(ladder)]
    parts += [ladder.connect.replace("_", " ")] if len({other.connect for other in among}) > 1 else []
    parts += [rate_title(ladder.rate)] if len({other.rate for other in among}) > 1 else []
    parts += [hosts_title(ladder.hosts)] if len({other.hosts for other in among}) > 1 else []
    return " · ".join(parts)


def load(ladder: Ladder) -> Load:
    """What the ladders of one scale have in common."""
    return ladder.clients, ladder.connect, ladder.rate, ladder.hosts


def first_load(ladders: Sequence[Ladder]) -> list[Ladder]:
    """Those of the first number of clients, connection mode, rate and number of load hosts: bars of
    all could not share a scale.
    """
    return [each for each in ladders if load(each) == load(ladders[0])]


def headlines(ladders: Sequence[Ladder], among: Sequence[Ladder] = ()) -> list[str]:
    """Each ladder in one sentence."""
    return [_headline(ladder, among or ladders) for ladder in ladders if len(ladder.steps) > 1]


def ladder_title(ladder: Ladder, ladders: Sequence[Ladder]) -> str:
    """The route, and whatever else tells this ladder from the run's others."""
    return " · ".join(_title_parts(ladder, _what_differs(ladders)))


def ladder_titles(ladders: Sequence[Ladder]) -> list[str]:
    """That of each of them: what tells them apart is looked for once."""
    differs = _what_differs(ladders)
    return [" · ".join(_title_parts(ladder, differs)) for ladder in ladders]


def _title_parts(ladder: Ladder, differs: Sequence[str]) -> list[str]:
    named = {
        "workload": ladder.workload,
        "mode": ladder.mode,
        "clients": load_title(ladder),
        "connect": ladder.connect.replace("_", " "),
        "rate": rate_title(ladder.rate),
        "hosts": hosts_title(ladder.hosts),
        "placement": ladder.placement,
        "environment": ladder.environment,
        "driver": ladder.driver,
    }
    return [ladder.route, *(named[name] for name in differs)]


def _what_differs(ladders: Sequence[Ladder]) -> list[str]:
    """What tells these ladders apart beside the route."""
    return [name for name in _TELLING if len({_value(each, name) for each in ladders}) > 1]


def _value(ladder: Ladder, name: str) -> object:
    """As many processes as another ladder has workers are another load."""
    return (ladder.clients, ladder.workers) if name == "clients" else getattr(ladder, name)


def _lines(ladder: Ladder, ladders: Sequence[Ladder]) -> list[str]:
    route, *rest = _title_parts(ladder, _what_differs(ladders))
    return [route, " · ".join(rest)] if rest else [route]


def _split_series(part: str, ladders: Sequence[Ladder]) -> Chart:
    own = ([step.step_us for step in ladder.steps if place_of(step.layer) == part] for ladder in ladders)
    values = [sum(added) if added else None for added in own]
    return {"name": layer_title(part), "colour": colour(part), "values": values}


def _whole(chart: Chart, row: int, end: str) -> str:
    """The text at the end of a bar. Layers that are faster than the one below are drawn left of 0, so
    the bar ends further right than the whole: the text has both.
    """
    values = [series["values"][row] or 0.0 for series in chart["series"]]
    ends_at, whole = sum(value for value in values if value > 0), sum(values)
    right, left, shown = (
        number_format.number(value, chart["decimals"]) for value in (ends_at, ends_at - whole, whole)
    )
    return end if right == shown else f"{right} − {left} = {end}"


def _height(part: str) -> int:
    """Where a part of a ladder stands: drivers are on one level, above libpq and below Django."""
    return LAYERS[part].rung if part in LAYERS else Rung.DRIVER


def _end(chart: Chart, row: int, rung: Step) -> str:
    """The text at the end of a rung. A step that saves time is drawn from the end of the rung below
    back to its own, so the text has all three.
    """
    time, value, below = chart["ends"][row], chart["values"][row], chart["values"][chart["stands_on"][row]]
    begin, saved, end = (
        number_format.number(each, chart["decimals"]) for each in (below, below - value, value)
    )
    if value < below and begin != end:
        time = f"{begin} − {saved} = {time}"
    return f"{time}  {number_format.ratio(rung.ratio)}"


def _shared_maximum(ladders: Sequence[Ladder]) -> float:
    """The end of the longest whisker, but at most twice the longest bar: else no bar could be read."""
    rungs = [rung for ladder in ladders for rung in (*ladder.steps, *ladder.side)]
    longest = max((rung.us for rung in rungs), default=0.0)
    whiskers = max((rung.high or rung.us for rung in rungs), default=0.0)
    return float(min(whiskers, 2 * longest))


def _headline(ladder: Ladder, ladders: Sequence[Ladder]) -> str:
    first, last = ladder.steps[0], ladder.steps[-1]
    figures = {"top_us": last.us, "bottom_us": first.us}
    words = (
        _("%(route)s: %(top)s takes %(ratio)s the time of %(bottom)s, %(us)s %(unit)s more per operation.")
        if last.us >= first.us
        else _(
            "%(route)s: %(top)s takes %(ratio)s the time of %(bottom)s, %(us)s %(unit)s less per operation."
        )
    )
    return words % {
        "route": ladder_title(ladder, ladders),
        "top": " · ".join(rung_lines(last, beside=False)),
        "ratio": number_format.ratio(last.ratio),
        "bottom": layer_title(first.layer),
        **number_format.differences_in_one_unit(figures, us=abs(last.us - first.us)),
    }


def _step_cells(step: Step, *, first: bool) -> tuple[Cell, ...]:
    if first:
        return Cell("–"), Cell("–"), ratio(1.0), Cell("–")
    below_us = step.us - step.step_us
    return (
        signed(step.step_us, step.us, below_us),
        interval(step.step_low_us, step.step_high_us, step.us, below_us),
        ratio(step.ratio),
        ratio_interval(step.ratio_low, step.ratio_high),
    )
