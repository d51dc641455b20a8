"""What the server and its pooler said in the diagnostic rounds, as a chart and tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import measured, variant_lines, variant_title
from pgperf.reports.table import Cell, Column, Table, count, number, percent, text_column, words

_EVENTS_SHOWN = 3


def wait_chart(variants: Sequence[VariantResult]) -> Chart | None:
    """What server processes were found doing: shares of the samples; None where nothing was sampled."""
    shown = _sampled(variants)
    if not shown:
        return None
    titles = _event_titles()
    return {
        "kind": "stack",
        "label": _(
            "What server processes were found doing, for each variant. The table below has the numbers."
        ),
        "axis": _("share of the samples, %"),
        "rows": [variant_lines(variant) for variant in shown],
        "series": [
            {
                "name": titles.get(event, event),
                "colour": f"wait-{event}" if event in _COLOURED else "wait-other",
                "values": [_percent(variant.diagnostics["wait_events"].get(event, 0.0)) for variant in shown],
            }
            for event in _events(shown)
        ],
        "whiskers": [],
        "ends": [],
        "max": 100,
    }


def wait_table(variants: Sequence[VariantResult]) -> Table:
    """Shares of the samples by class of wait event, and the events that were found most."""
    shown, titles = _sampled(variants), _event_titles()
    events = _events(shown)
    columns = (
        text_column(_("Variant")),
        Column(_("samples")),
        *(Column(titles.get(event, event)) for event in events),
        text_column(_("most found")),
    )
    rows = [
        (
            words(variant_title(row)),
            count(row.diagnostics.get("samples")),
            *(percent(row.diagnostics["wait_events"].get(event, 0.0)) for event in events),
            words(_most(row.diagnostics.get("events") or {})),
        )
        for row in shown
    ]
    return Table(_("What server processes were found doing"), columns, rows, "waits")


def pooler_table(variants: Sequence[VariantResult]) -> Table:
    """What the pooler counted."""
    shown = [row for row in measured(variants) if row.diagnostics.get("pooler")]
    titles = {
        "queries": _("queries"),
        "queries_per_op": _("queries per operation"),
        "wait_us_per_query": _("waiting for a server, µs per query"),
        "query_us_per_query": _("at the server, µs per query"),
        "sv_idle_min": _("idle server connections, least"),
        "sv_active_max": _("busy server connections, most"),
        "cl_active_max": _("busy clients, most"),
        "cl_waiting_max": _("waiting clients, most"),
        "maxwait_us_max": _("longest wait, µs"),
        "pool_mode": _("pooling"),
    }
    known = [key for key in result_keys.POOLER if any(key in row.diagnostics["pooler"] for row in shown)]
    columns = (
        text_column(_("Variant")),
        *(Column(titles[key], numeric=key != "pool_mode") for key in known),
    )
    rows = [
        (words(variant_title(row)), *(_figure(row.diagnostics["pooler"].get(key)) for key in known))
        for row in shown
    ]
    return Table(_("The pooler"), columns, rows, "pooler")


def statement_table(variants: Sequence[VariantResult]) -> Table:
    """What pg_stat_statements counted: the proof that all layers did the same work."""
    shown = [row for row in measured(variants) if row.diagnostics.get("statements")]
    columns = (
        text_column(_("Variant")),
        Column(_("statements per operation")),
        Column(_("rows per operation")),
        text_column(_("as expected")),
    )
    rows = [(words(variant_title(row)), *_statements(row.diagnostics["statements"])) for row in shown]
    return Table(_("Statements, as the server counted them"), columns, rows, "statements")


def notes(variants: Sequence[VariantResult]) -> list[str]:
    """Why something is not known: each reason once, with how many variants have it."""
    found: dict[tuple[str, str], int] = {}
    for row in measured(variants):
        for part, why in (row.diagnostics.get("notes") or {}).items():
            found[part, str(why)] = found.get((part, str(why)), 0) + 1
    titles = _part_titles()
    return [
        _("%(part)s: %(why)s (%(count)d variants)")
        % {"part": titles.get(part, part), "why": why, "count": times}
        for (part, why), times in found.items()
    ]


def _sampled(variants: Sequence[VariantResult]) -> list[VariantResult]:
    return [row for row in measured(variants) if row.diagnostics.get("wait_events")]


def _events(shown: Iterable[VariantResult]) -> list[str]:
    """The classes that were found at all, in their usual order; those that this version does not know come last."""
    found = {event for row in shown for event, share in row.diagnostics["wait_events"].items() if share}
    return [event for event in result_keys.WAIT_EVENTS if event in found] + sorted(
        found - set(result_keys.WAIT_EVENTS)
    )


_COLOURED = ("CPU", "Client", "IO", "LWLock", "Lock", "IPC")


def _event_titles() -> dict[str, str]:
    return {
        "CPU": _("on a processor"),
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


def _most(events: Mapping[str, float | None]) -> str:
    """The events that were found most, with their shares: a database does not keep their order."""
    found = sorted(((share, name) for name, share in events.items() if share), reverse=True)
    return ", ".join(f"{name} {number_format.percent(share)}" for share, name in found[:_EVENTS_SHOWN]) or "–"


def _statements(counted: Mapping[str, Any]) -> tuple[Cell, ...]:
    answers = {
        True: Cell(_("yes")),
        False: Cell(_("no"), mark="differs"),
        None: Cell(_("unknown"), mark="unknown"),
    }
    expected: bool | None = counted.get("as_expected")
    return number(counted.get("calls_per_op")), number(counted.get("rows_per_op")), answers[expected]


def _figure(value: float | str | None) -> Cell:
    if isinstance(value, str):
        return words(value)
    return count(value) if isinstance(value, int) else number(value)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
