"""The diagnostics of the server and its pooler, as a chart and tables."""

from collections.abc import Iterable, Mapping, Sequence

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.diagnostics import Diagnostics, StatementCounters
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import measured, variant_lines, variant_title
from pgperf.reports.table import Cell, Column, Table, count, number, percent, text_column, time_column, words

_EVENTS_SHOWN = 3

Sampled = tuple[VariantResult, Diagnostics, Mapping[str, float]]


def wait_chart(variants: Sequence[VariantResult]) -> Chart | None:
    """Activity of server processes: shares of the samples; None without samples."""
    shown = _sampled(variants)
    if not shown:
        return None
    titles = _event_titles()
    return {
        "kind": "stack",
        "label": _("Activity of the server processes in each variant. The table below has the numbers."),
        "axis": _("share of the samples, %"),
        "rows": [variant_lines(row) for row, _found, _shares in shown],
        "series": [
            {
                "name": titles.get(event, event),
                "colour": f"wait-{event}" if event in _COLOURED else "wait-other",
                "values": [_percent(shares.get(event, 0.0)) for _row, _found, shares in shown],
            }
            for event in _events(shown)
        ],
        "whiskers": [],
        "ends": [],
        "max": 100,
    }


def wait_table(variants: Sequence[VariantResult]) -> Table:
    """Shares of the samples by class of wait event, and the most frequent events."""
    shown, titles = _sampled(variants), _event_titles()
    events = _events(shown)
    columns = (
        text_column(_("Variant")),
        Column(_("Samples")),
        *(Column(capfirst(titles.get(event, event))) for event in events),
        text_column(_("Most frequent")),
    )
    rows = [
        (
            words(variant_title(row)),
            count(found.samples),
            *(percent(shares.get(event, 0.0)) for event in events),
            words(_most(found.events or {})),
        )
        for row, found, shares in shown
    ]
    return Table(_("Activity of the server processes"), columns, rows, "waits")


def pooler_table(variants: Sequence[VariantResult]) -> Table:
    """What the pooler counted."""
    shown = [(row, found.pooler) for row, found in _diagnosed(variants) if found.pooler]
    titles = {
        "queries": _("Queries"),
        "queries_per_op": _("Queries per operation"),
        "wait_us_per_query": _("Waiting for a server, per query"),
        "query_us_per_query": _("At the server, per query"),
        "sv_idle_min": _("Idle server connections, least"),
        "sv_active_max": _("Busy server connections, most"),
        "cl_active_max": _("Busy clients, most"),
        "cl_waiting_max": _("Waiting clients, most"),
        "maxwait_us_max": _("Longest wait"),
        "pool_mode": _("Pooling"),
    }
    known = [key for key in result_keys.POOLER if any(getattr(pool, key) is not None for _row, pool in shown)]
    columns = (
        text_column(_("Variant")),
        *(_pooler_column(key, titles[key]) for key in known),
    )
    rows = [
        (words(variant_title(row)), *(_figure(getattr(pool, key)) for key in known)) for row, pool in shown
    ]
    return Table(_("The pooler"), columns, rows, "pooler")


def statement_table(variants: Sequence[VariantResult]) -> Table:
    """What pg_stat_statements counted: the proof that all layers did the same work."""
    shown = [(row, found.statements) for row, found in _diagnosed(variants) if found.statements]
    columns = (
        text_column(_("Variant")),
        Column(_("Statements per operation")),
        Column(_("Rows per operation")),
        text_column(_("As expected")),
    )
    rows = [(words(variant_title(row)), *_statements(counted)) for row, counted in shown]
    return Table(_("Statements, as the server counted them"), columns, rows, "statements")


def notes(variants: Sequence[VariantResult]) -> list[str]:
    """Why something is not known: each reason once, with how many variants have it."""
    found: dict[tuple[str, str], int] = {}
    for _row, diagnosed in _diagnosed(variants):
        for part, why in diagnosed.notes.items():
            found[part, str(why)] = found.get((part, str(why)), 0) + 1
    titles = _part_titles()
    return [
        ngettext("%(part)s: %(why)s (%(count)d variant)", "%(part)s: %(why)s (%(count)d variants)", times)
        % {"part": titles.get(part, part), "why": why, "count": times}
        for (part, why), times in found.items()
    ]


def _diagnosed(variants: Sequence[VariantResult]) -> list[tuple[VariantResult, Diagnostics]]:
    return [(row, found) for row in measured(variants) if (found := row.record.diagnostics)]


def _sampled(variants: Sequence[VariantResult]) -> list[Sampled]:
    """Each variant with samples, its diagnostics and its shares of wait events."""
    return [(row, found, found.wait_events) for row, found in _diagnosed(variants) if found.wait_events]


def _events(shown: Iterable[Sampled]) -> list[str]:
    """The classes with samples, in their usual order; those that this version does not know come
    last.
    """
    found = {event for _row, _found, shares in shown for event, share in shares.items() if share}
    return [event for event in result_keys.WAIT_EVENTS if event in found] + sorted(
        found - set(result_keys.WAIT_EVENTS)
    )


_COLOURED = ("CPU", "Client", "IO", "LWLock", "Lock", "IPC")


def _event_titles() -> dict[str, str]:
    return {
        "CPU": _("on a CPU"),
        "Client": _("waiting for the client"),
        "IO": _("disk (IO)"),
        "LWLock": _("internal lock (LWLock)"),
        "Lock": _("lock (Lock)"),
        "IPC": _("other process (IPC)"),
    }


def _part_titles() -> dict[str, str]:
    return {
        "wait_events": _("wait events"),
        "events": _("wait events"),
        "pooler": _("pooler"),
        "statements": _("statements"),
    }


def _pooler_column(key: str, title: str) -> Column:
    return time_column(title) if "_us" in key else Column(title, numeric=key != "pool_mode")


def _most(events: Mapping[str, float | None]) -> str:
    """The events that were found most, with their shares: a database does not keep their order."""
    found = sorted(((share, name) for name, share in events.items() if share), reverse=True)
    return ", ".join(f"{name} {number_format.percent(share)}" for share, name in found[:_EVENTS_SHOWN]) or "–"


def _statements(counted: StatementCounters) -> tuple[Cell, ...]:
    answers = {
        True: Cell(_("yes")),
        False: Cell(_("no"), mark="differs"),
        None: Cell(_("unknown"), mark="unknown"),
    }
    return number(counted.calls_per_op), number(counted.rows_per_op), answers[counted.as_expected]


def _figure(value: float | str | None) -> Cell:
    if isinstance(value, str):
        return words(value)
    return count(value) if isinstance(value, int) else number(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
