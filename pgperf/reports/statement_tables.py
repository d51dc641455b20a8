"""What one operation sends, statement by statement: calls, rows, plan, and where it was measured
the time of each on the server and in each layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.core.layers import LAYERS
from pgperf.core.records import (
    CAPTURES,
    PAGE_PARTS,
    STATEMENT_TIMES,
    PageParts,
    StatementTime,
    StatementTimes,
)
from pgperf.reports import number_format
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import colour, layer_title
from pgperf.reports.table import (
    Cell,
    Column,
    Note,
    Table,
    count,
    number,
    percent,
    text_column,
    time_column,
    words,
)

#: As many calls of one text are worth a remark.
MANY = 3
#: Characters of a statement in a chart.
_SHORT = 24
#: The variables of pgperf.css that colour the parts of a page's time.
_PART_COLOURS = {
    "statements": "cpu-server",
    "query_compilation": "cpu-client_sys",
    "object_construction": "cpu-client_user",
    "template": "cpu-web",
    "rest": "cpu-unattributed",
}


@dataclass(frozen=True)
class Repeated:
    """The statements of an operation that have the same text, values masked."""

    numbers: tuple[int, ...]
    text: str
    rows: int
    plan: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        return len(self.numbers)


def tables(environment: Mapping[str, Any]) -> list[Table]:
    """One table for each workload, route and mode that was measured; one without times for a
    workload whose statements were not.
    """
    times = stored_times(environment)
    return [
        table
        for name, capture in environment.get(CAPTURES, {}).items()
        for table in _of_workload(name, capture, [each for each in times if each.workload == name])
    ]


def stored_times(environment: Mapping[str, Any]) -> list[StatementTimes]:
    """The times of statements that the run measured."""
    return [StatementTimes.from_json(each) for each in environment.get(STATEMENT_TIMES, [])]


def part_tables(environment: Mapping[str, Any]) -> list[Table]:
    """The parts of each page's time, with the cost of the instruments."""
    return [_parts(PageParts(**each)) for each in environment.get(PAGE_PARTS, [])]


def charts(environment: Mapping[str, Any]) -> list[tuple[str, Chart]]:
    """The same as charts with their titles: the parts of each page's time, and the time of each
    statement in the uppermost layer.
    """
    times = stored_times(environment)
    return [
        *(_parts_chart(PageParts(**each)) for each in environment.get(PAGE_PARTS, [])),
        *(
            _times_chart(repeated(capture), own[-1])
            for name, capture in environment.get(CAPTURES, {}).items()
            for own in by_setting([each for each in times if each.workload == name])
        ),
    ]


def _parts_chart(found: PageParts) -> tuple[str, Chart]:
    place = {"name": found.workload, "route": found.route, "mode": found.mode}
    title = _("One request of %(name)s over %(route)s, mode %(mode)s") % place
    known = {part: us for part in _PART_COLOURS if (us := found.parts_us.get(part)) is not None}
    titles = _part_titles()
    return title, of_times(
        {
            "kind": "stack",
            "label": _("%s: its time by part.") % title,
            "axis": _("%s per request, with instruments"),
            "rows": [[found.workload]],
            "series": [
                {"name": titles[part], "colour": _PART_COLOURS[part], "values": [us]}
                for part, us in known.items()
            ],
            "whiskers": [],
            "ends": [sum(known.values())],
        }
    )


def _times_chart(found: Sequence[Repeated], top: StatementTimes) -> tuple[str, Chart]:
    place = {"name": top.workload, "layer": layer_title(top.layer), "route": top.route, "mode": top.mode}
    title = _("Statements of %(name)s through %(layer)s over %(route)s, mode %(mode)s") % place
    times = {each.numbers[0]: each for each in top.each}
    values = [us_of_all_calls(each, times) for each in found]
    return title, of_times(
        {
            "kind": "bars",
            "label": _("%s: the time of all calls of each.") % title,
            "axis": _("%s per operation"),
            "rows": [[_places(each.numbers), _shortened(each.text)] for each in found],
            "values": values,
            "colours": [colour(top.layer) for _each in found],
            "ends": values,
        }
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _part_titles() -> dict[str, str]:
    return {
        "statements": _("statements: cursor, driver, server"),
        "query_compilation": _("query compilation"),
        "object_construction": _("object construction"),
        "template": _("template"),
        "rest": _("the rest: view, middleware, ORM"),
    }


def _parts(found: PageParts) -> Table:
    total = sum(found.parts_us.values())
    caption = _(
        "One request of %(name)s over %(route)s, mode %(mode)s: %(total)s %(unit)s with instruments,"
        " %(plain)s %(unit)s without"
    )
    place = {"name": found.workload, "route": found.route, "mode": found.mode}
    shown = number_format.in_one_unit(total=total, plain=found.plain_us)
    rows = [
        (words(title), number(us), percent(us / total if total else None))
        for part, title in _part_titles().items()
        if (us := found.parts_us.get(part)) is not None
    ]
    columns = text_column(_("Part of ORM, view and template")), time_column(_("Time")), Column(_("Share"))
    return Table(caption % {**place, **shown}, columns, rows, "capture")


def notes(environment: Mapping[str, Any]) -> list[str]:
    """What a reader must know of captures: values that change, and statements that are repeated."""
    found: list[str] = []
    for name, capture in environment.get(CAPTURES, {}).items():
        found += [f"{name}: {note}"] if (note := capture.get("note")) else []
        found += [_remark(name, each) for each in repeated(capture) if each.calls >= MANY]
    return found


def repeated(capture: Mapping[str, Any]) -> list[Repeated]:
    """The statements of a capture by their text, in the order of the first of each."""
    places: dict[str, list[int]] = {}
    for place, each in enumerate(capture["each"], 1):
        places.setdefault(each["sql"], []).append(place)
    plans = capture.get("plans") or {}
    return [
        Repeated(
            tuple(numbers),
            text,
            sum(capture["each"][number - 1]["rows"] for number in numbers),
            tuple(plans.get(text, ())),
        )
        for text, numbers in places.items()
    ]


def _remark(name: str, each: Repeated) -> str:
    return _(
        "%(name)s: one statement is sent %(calls)d times in one operation (%(places)s). Related "
        "rows that are read one by one are an N+1 problem: select_related or prefetch_related reads them together."
    ) % {"name": name, "calls": each.calls, "places": _places(each.numbers)}


def _of_workload(name: str, capture: Mapping[str, Any], times: Sequence[StatementTimes]) -> Iterable[Table]:
    found = repeated(capture)
    if not times:
        yield Table(_caption(name, capture), _columns(()), [_plain(each) for each in found], "capture")
    for own in by_setting(times):
        route, mode = own[0].route, own[0].mode
        caption = _("%(operation)s; over %(route)s, mode %(mode)s, all calls of a statement together")
        place = {"operation": _caption(name, capture), "route": route, "mode": mode}
        rows = _timed_rows(found, [{each.numbers[0]: each for each in layer.each} for layer in own])
        yield Table(caption % place, _columns([each.layer for each in own]), rows, "capture")


def by_setting(times: Sequence[StatementTimes]) -> Iterable[list[StatementTimes]]:
    """The times of each route and mode, the lowest layer first."""
    for key in dict.fromkeys((each.route, each.mode) for each in times):
        yield sorted((t for t in times if (t.route, t.mode) == key), key=lambda t: _rank(t.layer))


def _rank(layer: str) -> int:
    return list(LAYERS).index(layer) if layer in LAYERS else len(LAYERS)


def _columns(layers: Sequence[str]) -> tuple[Column, ...]:
    plain = (
        text_column(_("Statement")),
        text_column(_("Text, values masked")),
        Column(_("Calls")),
        Column(_("Rows")),
    )
    if not layers:
        return plain
    timed = (time_column(layer_title(layer), follows=True) for layer in layers)
    return (*plain, time_column(_("CPU of the server")), *timed, Column(_("Share")))


def _plain(each: Repeated) -> tuple[Cell, ...]:
    lines = tuple(Note(line) for line in each.plan)
    return words(_places(each.numbers)), words(each.text, notes=lines), count(each.calls), count(each.rows)


def _timed_rows(
    found: Sequence[Repeated], layers: Sequence[Mapping[int, StatementTime]]
) -> list[tuple[Cell, ...]]:
    """A row for each text. The server's time is that under the first layer, the lowest one; the
    shares are those of the last.
    """
    spent = [[us_of_all_calls(each, layer) for layer in layers] for each in found]
    totals = [each[-1] for each in spent]
    total = None if None in totals else sum(filter(None, totals))
    return [
        (
            *_plain(each),
            number(_server_us(each, layers[0])),
            *(number(us) for us in row),
            percent(row[-1] / total if total and row[-1] is not None else None),
        )
        for each, row in zip(found, spent, strict=True)
    ]


def us_of_all_calls(each: Repeated, times: Mapping[int, StatementTime]) -> float | None:
    """The time of all its calls; None where it was not measured."""
    own = times.get(each.numbers[0])
    return own.us * each.calls if own else None


def _server_us(each: Repeated, times: Mapping[int, StatementTime]) -> float | None:
    own = times.get(each.numbers[0])
    return own.server_us * each.calls if own and own.server_us is not None else None


def _places(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 as "1–3, 5"."""
    runs: list[list[int]] = []
    for number_ in numbers:
        if runs and runs[-1][-1] == number_ - 1:
            runs[-1].append(number_)
        else:
            runs.append([number_])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _caption(name: str, capture: Mapping[str, Any]) -> str:
    sent = ngettext("%d statement", "%d statements", capture["statements"]) % capture["statements"]
    rows = ngettext("%d row", "%d rows", capture["rows"]) % capture["rows"]
    return _("One operation of %(name)s: %(sent)s, %(rows)s") % {"name": name, "sent": sent, "rows": rows}
