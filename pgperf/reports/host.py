"""The host while a run measured: its CPUs over time, and the output of top for each variant."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import lacking, measured, role_names, variant_title
from pgperf.reports.scaling import SHOWN, percents, whole
from pgperf.reports.table import Cell, Column, Table, count, interval, number, percent, text_column, words

Timeline = Mapping[str, Any]
Process = Mapping[str, Any]

_COLOURS = {"clients": "cpu-client_user"}
_MIB = 2**20
#: Rows of the timeline's table: each is the mean of consecutive points.
_TABLE_ROWS = 20
#: Of a variant's processes the page shows so many; the file has all.
_PROCESSES = 12


@dataclass(frozen=True)
class Processes:
    """One variant's processes; `more` says how many the page leaves out."""

    title: str
    table: Table
    more: str = ""


def timeline(line: Timeline, variants: Sequence[VariantResult]) -> Chart | None:
    """The host's CPUs over the run; None for a run without CPU accounts."""
    roles = line.get("roles") or {}
    if not line.get("seconds") or not roles:
        return None
    names, line = role_names(), _with_pauses(line)
    titles = {row.label: variant_title(row) for row in variants}
    return {
        "kind": "area",
        "label": _("Shares of the host's CPUs while the run measured. The table below has the numbers."),
        "axis": _("share of the host's CPUs, %"),
        "x_axis": _("seconds"),
        "x": line["seconds"],
        "x_min": 0,
        "titles": [titles.get(label, label or "") for label in line.get("variant", [])],
        "max": whole(_moments(line)),
        "series": [
            {
                "name": names[role],
                "colour": _COLOURS.get(role, f"cpu-{role}"),
                "values": percents(_moments(line), role),
            }
            for role in SHOWN
            if any(roles.get(role) or ())
        ],
    }


def _with_pauses(line: Timeline) -> Timeline:
    """The same with an empty moment between two blocks, so that the chart draws no line over the
    gap.
    """
    seconds, blocks = line["seconds"], line.get("block") or ()
    new = [at for at, (before, after) in enumerate(pairwise(blocks), 1) if before != after]

    def spread(values: Sequence[Any], between: Callable[[int], Any]) -> list[Any]:
        found = list(values)
        for at in reversed(new):
            found.insert(at, between(at))
        return found

    return {
        "seconds": spread(seconds, lambda at: (seconds[at - 1] + seconds[at]) / 2),
        "variant": spread(line.get("variant", []), lambda at: None),
        "roles": {
            role: spread(values, lambda at: None) if values else values
            for role, values in line["roles"].items()
        },
    }


def timeline_table(line: Timeline) -> Table:
    """The timeline in at most `_TABLE_ROWS` rows, each the mean of consecutive moments."""
    names, roles, seconds = role_names(), line["roles"], line["seconds"]
    there = [role for role in result_keys.SHARE if any(value is not None for value in roles.get(role) or ())]
    step = -(-len(seconds) // _TABLE_ROWS)
    rows = [
        (
            words(_seconds(seconds, at, step)),
            *(percent(_mean(roles[role][at : at + step])) for role in there),
        )
        for at in range(0, len(seconds), step)
    ]
    caption = lacking(_("Shares of the host's CPUs while the run measured"), result_keys.SHARE, there)
    return Table(
        caption, (text_column(_("Seconds")), *(Column(names[role]) for role in there)), rows, "timeline"
    )


def host_table(variants: Sequence[VariantResult]) -> Table:
    """The host's line of top for each variant: % of the time of all CPUs, and the load averages."""
    rows = [cells for row in _with_top(variants) for cells in _host_lines(row)]
    loads = (_("load, 1 min"), _("load, 5 min"), _("load, 15 min"))
    columns = (
        text_column(_("Variant")),
        *(Column(key, "%") for key in result_keys.HOST[:-3]),
        *(Column(title) for title in loads),
    )
    return Table(_("The host, as top shows it"), columns, rows, "top")


def _host_lines(row: VariantResult) -> Iterator[tuple[Cell, ...]]:
    """The load host's, and the server's where that is another host and its agent sampled it."""
    title = variant_title(row)
    lines = {title: row.top.get("host") or {}}
    if server := row.top.get("server_host"):
        lines[_("%s, the server's host") % title] = server.get("host") or {}
    for name, line in lines.items():
        yield (words(name), *(number(line.get(key)) for key in result_keys.HOST))


def role_table(variants: Sequence[VariantResult]) -> Table:
    """The processes of each variant by role, from the least to the most."""
    columns = (
        text_column(_("Variant")),
        text_column(_("role")),
        text_column(_("program")),
        Column(_("processes")),
        Column(_("of one CPU"), "%"),
        Column(_("memory"), "MiB"),
    )
    rows = [cells for row in _with_top(variants) for cells in _role_rows(row)]
    return Table(_("Processes by role, from the least to the most"), columns, rows, "processes")


def process_tables(variants: Sequence[VariantResult]) -> list[Processes]:
    """Each variant's processes, the busiest first."""
    return [_processes(row) for row in _with_top(variants) if row.top.get("processes")]


def _with_top(variants: Sequence[VariantResult]) -> list[VariantResult]:
    return [variant for variant in measured(variants) if variant.top]


def _processes(row: VariantResult) -> Processes:
    columns = (
        text_column(_("Process")),
        Column(_("pid")),
        text_column(_("role")),
        Column(_("of one CPU"), "%"),
        Column(_("memory"), "MiB"),
        Column(_("CPU time so far"), "s"),
    )
    busiest = sorted(row.top["processes"], key=lambda each: -(each.get("cpu_percent") or 0))
    left = len(busiest) - _PROCESSES
    more = ngettext("%d more is in the file.", "%d more are in the file.", left) % left if left > 0 else ""
    rows = [_process(each) for each in busiest[:_PROCESSES]]
    title = variant_title(row)
    return Processes(title, Table(_("Processes of %s") % title, columns, rows, "processes"), more)


def _process(each: Process) -> tuple[Cell, ...]:
    return (
        words(str(each.get("name") or _("unknown"))),
        words(str(each.get("pid") or "–")),
        words(role_title(each.get("role"))),
        number(each.get("cpu_percent")),
        number(_mib(each)),
        number(each.get("cpu_s")),
    )


def _role_rows(row: VariantResult) -> Iterator[tuple[Cell, ...]]:
    processes = row.top.get("processes") or []
    ordered = sorted(processes, key=lambda each: _order(each.get("role")))
    for role, members in groupby(ordered, key=lambda each: each.get("role")):
        own = list(members)
        programs = ", ".join(dict.fromkeys(str(each.get("name") or _("unknown")) for each in own))
        yield (
            words(variant_title(row)),
            words(role_title(role)),
            words(programs),
            count(len(own)),
            _range([each.get("cpu_percent") for each in own]),
            _range([_mib(each) for each in own]),
        )


def role_title(role: Any) -> str:
    """A role of top as people read it; its own name where this version does not know it."""
    return role_names().get(str(role), str(role))


def _order(role: Any) -> int:
    order = ("client", "clients", "pooler", "server", "auxiliaries", "other")
    return order.index(role) if role in order else len(order)


def _range(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return number(None)
    low, high = min(known), max(known)
    return number(low) if low == high else interval(low, high)


def _mib(each: Process) -> float | None:
    rss = each.get("rss_bytes")
    return None if rss is None else float(rss) / _MIB


def _moments(line: Timeline) -> list[dict[str, float | None]]:
    roles = line["roles"]
    return [{role: values[at] for role, values in roles.items()} for at in range(len(line["seconds"]))]


def _seconds(seconds: Sequence[float], at: int, step: int) -> str:
    last = min(at + step, len(seconds)) - 1
    ends = [number_format.number(seconds[end]) for end in dict.fromkeys((at, last))]
    return " … ".join(ends)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
