"""The host while a run measured: its CPUs over time, and the output of top for each variant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.cpu_account import WEB_ROLES
from pgperf.analysis.timeline import Moment, Timeline
from pgperf.analysis.top import HostLine, Process, Top
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import lacking, measured, role_names, role_title, variant_title
from pgperf.reports.scaling import SHOWN, percents, whole
from pgperf.reports.table import Cell, Column, Table, count, interval, number, percent, text_column, words

_COLOURS = {"clients": "cpu-client_user"}
_MIB = 2**20
#: Rows of the timeline's table: each is the mean of consecutive points.
_TABLE_ROWS = 20
#: Of a variant's processes the page shows so many; the download has all that were kept.
_PROCESSES = 12


@dataclass(frozen=True)
class Processes:
    """One variant's processes; `more` says how many the page leaves out; the download of
    the processes has them.
    """

    title: str
    table: Table
    more: str = ""

    @property
    def nameless(self) -> Table:
        """The table without the users of the processes, for a file that is sent."""
        return self.table.without(_("User"))


def timeline(line: Timeline, variants: Sequence[VariantResult]) -> Chart:
    """The host's CPUs over the run."""
    names, moments = role_names(), list(_with_pauses(line.moments))
    titles = {row.label: variant_title(row) for row in variants}
    shares = [each.share for each in moments]
    return {
        "kind": "area",
        "label": _("Shares of the host's CPUs while the run measured. The table below has the numbers."),
        "axis": _("share of the host's CPUs, %"),
        "x_axis": _("seconds"),
        "x": [each.seconds for each in moments],
        "x_min": 0,
        "titles": [titles.get(each.variant, each.variant) if each.variant else "" for each in moments],
        "max": whole(shares),
        "series": [
            {
                "name": names[role],
                "colour": _COLOURS.get(role, f"cpu-{role}"),
                "values": percents(shares, role),
            }
            for role in SHOWN
            if any(getattr(share, role) for share in shares)
        ],
    }


def _with_pauses(moments: Sequence[Moment]) -> Iterator[Moment]:
    """The same with an unknown moment between two blocks, so that the chart draws no line over the
    gap.
    """
    for before, after in pairwise(moments):
        yield before
        if before.block != after.block:
            yield Moment((before.seconds + after.seconds) / 2)
    yield from moments[-1:]


def timeline_table(line: Timeline) -> Table:
    """The timeline in at most `_TABLE_ROWS` rows, each the mean of consecutive moments."""
    names, moments = role_names(), line.moments
    there = [role for role in result_keys.SHARE if _known(moments, role)]
    asked = [role for role in result_keys.SHARE if role in there or role not in WEB_ROLES]
    step = -(-len(moments) // _TABLE_ROWS)
    parts = (moments[at : at + step] for at in range(0, len(moments), step))
    rows = [(words(_seconds(part)), *(percent(_mean(part, role)) for role in there)) for part in parts]
    caption = lacking(_("Shares of the host's CPUs while the run measured"), asked, there)
    columns = (text_column(_("Seconds")), *(Column(capfirst(names[role])) for role in there))
    return Table(caption, columns, rows, "timeline")


def host_table(variants: Sequence[VariantResult]) -> Table:
    """The host's line of top for each variant: % of the time of all CPUs, and the load averages."""
    rows = [cells for row, top in _with_top(variants) for cells in _host_lines(row, top)]
    loads = (_("Load, 1 min"), _("Load, 5 min"), _("Load, 15 min"))
    columns = (
        text_column(_("Variant")),
        *(Column(key, "%") for key in result_keys.HOST[:-3]),
        *(Column(title) for title in loads),
    )
    return Table(_("The host, as top shows it"), columns, rows, "top")


def _host_lines(row: VariantResult, top: Top) -> Iterator[tuple[Cell, ...]]:
    """The owner's, and the server's where that is another host and its agent sampled it."""
    title = variant_title(row)
    yield _host_cells(_top_title(row), top.host)
    if top.server_host:
        yield _host_cells(_("%s, the server's host") % title, top.server_host)


def _top_title(row: VariantResult) -> str:
    """The variant whose slice `top` shows. It looks at the owner's host, also where the clients are on
    load hosts.
    """
    title = variant_title(row)
    return _("%s, the owner's host") % title if row.hosts else title


def _host_cells(title: str, line: HostLine) -> tuple[Cell, ...]:
    return words(title), *(number(getattr(line, key)) for key in result_keys.HOST)


def role_table(variants: Sequence[VariantResult]) -> Table:
    """The processes of each variant by role, from the least to the most."""
    columns = (
        text_column(_("Variant")),
        text_column(_("Role")),
        text_column(_("Program")),
        Column(_("Processes")),
        Column(_("Of one CPU"), "%"),
        Column(_("Memory"), "MiB"),
    )
    rows = [cells for row, top in _with_top(variants) for cells in _role_rows(variant_title(row), top)]
    return Table(_("Processes by role, from the least to the most"), columns, rows, "processes")


def process_tables(variants: Sequence[VariantResult]) -> list[Processes]:
    """Each variant's processes, the busiest first."""
    return [_processes(variant_title(row), top) for row, top in _with_top(variants) if top.processes]


def _with_top(variants: Sequence[VariantResult]) -> list[tuple[VariantResult, Top]]:
    return [(row, top) for row in measured(variants) if (top := row.record.top)]


def _processes(title: str, top: Top) -> Processes:
    columns = (
        text_column(_("Process")),
        Column(_("PID")),
        text_column(_("User")),
        text_column(_("Role")),
        Column(_("Of one CPU"), "%"),
        Column(_("Memory"), "MiB"),
        Column(_("CPU time so far"), "s"),
    )
    busiest = sorted(top.processes, key=lambda each: -(each.cpu_percent or 0))
    left = len(busiest) - _PROCESSES
    more = ngettext("%d more is not shown.", "%d more are not shown.", left) % left if left > 0 else ""
    rows = [_process(each) for each in busiest[:_PROCESSES]]
    return Processes(title, Table(_("Processes of %s") % title, columns, rows, "processes"), more)


def _process(each: Process) -> tuple[Cell, ...]:
    return (
        words(_name(each)),
        words(str(each.pid or "–")),
        words(each.user or "–"),
        words(role_title(each.role)),
        number(each.cpu_percent),
        number(_mib(each)),
        number(each.cpu_s),
    )


def _role_rows(title: str, top: Top) -> Iterator[tuple[Cell, ...]]:
    ordered = sorted(top.processes, key=lambda each: _order(each.role))
    for role, members in groupby(ordered, key=lambda each: each.role):
        own = list(members)
        yield (
            words(title),
            words(role_title(role)),
            words(", ".join(dict.fromkeys(map(_name, own)))),
            count(len(own)),
            _range([each.cpu_percent for each in own]),
            _range([_mib(each) for each in own]),
        )


def _order(role: str | None) -> int:
    order = ("client", "clients", "proxy", "web", "pooler", "server", "auxiliaries", "runner", "other")
    return order.index(role) if role in order else len(order)


def _name(process: Process) -> str:
    return process.name or _("unknown")


def _range(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return number(None)
    low, high = min(known), max(known)
    return number(low) if low == high else interval(low, high)


def _mib(process: Process) -> float | None:
    return None if process.rss_bytes is None else float(process.rss_bytes) / _MIB


def _seconds(part: Sequence[Moment]) -> str:
    ends = dict.fromkeys((part[0].seconds, part[-1].seconds))
    return " … ".join(map(number_format.number, ends))


def _mean(part: Sequence[Moment], role: str) -> float | None:
    known = _known(part, role)
    return sum(known) / len(known) if known else None


def _known(part: Iterable[Moment], role: str) -> list[float]:
    return [share for each in part if (share := getattr(each.share, role)) is not None]
