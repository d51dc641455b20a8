"""HTTP requests: their phases, failures, kept connections and the lengths of pages."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.http_requests import HttpRequests
from pgperf.models import VariantResult
from pgperf.reports import number_format
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import measured, variant_lines, variant_title
from pgperf.reports.open_loops import service_us
from pgperf.reports.table import Column, Table, Value, count, number, text_column, time_column, words

#: Phase -> its colour in charts, that of an operation's phase.
_COLOURS = {"connect": "phase-connect", "first_byte": "phase-operate", "receive": "phase-close"}


def requesting(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """Those whose operations are HTTP requests."""
    return [variant for variant in variants if variant.http]


def phases(variants: Sequence[VariantResult]) -> Chart:
    """The mean time of a request by phase, a bar for each variant."""
    shown = [variant for variant in measured(variants) if variant.phases_us]
    names = _phase_names()
    return of_times(
        {
            "kind": "stack",
            "label": _(
                "Connecting, first byte and receiving of each variant. The table below has the numbers."
            ),
            "axis": _("%s per request"),
            "rows": [variant_lines(variant) for variant in shown],
            "series": [
                {
                    "name": names[phase],
                    "colour": colour,
                    "values": [variant.phases_us[phase]["mean"] for variant in shown],
                }
                for phase, colour in _COLOURS.items()
            ],
            "whiskers": [],
            "ends": [service_us(variant) for variant in shown],
        }
    )


def phase_table(variants: Sequence[VariantResult]) -> Table:
    """The distribution of each phase, µs."""
    names, keys = _phase_names(), ("mean", "p50", "p95", "p99", "max")
    columns = (text_column(_("Variant")), text_column(_("Phase")), *(time_column(key) for key in keys))
    rows = [
        (words(variant_title(variant)), words(names[phase]), *(number(times.get(key)) for key in keys))
        for variant in variants
        for phase, times in _ordered(variant.phases_us)
    ]
    return Table(_("Connect, first byte and receive"), columns, rows, "request-phases")


def request_table(variants: Sequence[VariantResult]) -> Table:
    """What came of the requests."""
    columns = (
        text_column(_("Variant")),
        Column(_("Requests")),
        Column(_("Failed")),
        text_column(_("Reasons")),
        Column(_("Connections kept"), "%"),
        text_column(_("Length of the body, bytes")),
    )
    found = [(variant, HttpRequests.from_json(variant.http)) for variant in variants]
    rows = [
        (
            words(variant_title(variant)),
            count(each.requests),
            count(sum(each.errors.values())),
            words(_reasons(each)),
            number(None if each.kept is None else 100 * each.kept),
            words(_lengths(each)),
        )
        for variant, each in found
        if each
    ]
    return Table(_("Requests"), columns, rows, "requests")


def file_figures(variant: VariantResult) -> dict[str, Value]:
    """What came of the requests, each figure in a cell of its own; nothing for other layers."""
    found = HttpRequests.from_json(variant.http)
    if found is None:
        return {}
    return {
        "requests": found.requests,
        "errors": "; ".join(f"{reason} ({times})" for reason, times in sorted(found.errors.items())),
        "kept_share": found.kept,
        "least_bytes": found.least_bytes,
        "most_bytes": found.most_bytes,
    }


def _ordered(times: Mapping[str, Mapping[str, float | None]]) -> list[tuple[str, Mapping[str, float | None]]]:
    return [(phase, times[phase]) for phase in _COLOURS if phase in times]


def _reasons(found: HttpRequests) -> str:
    reasons = [f"{reason} ({number_format.whole(times)})" for reason, times in sorted(found.errors.items())]
    if not found.has_outcome:
        reasons.append(_("no outcome: more than 0.1 % failed"))
    return "; ".join(reasons)


def _lengths(found: HttpRequests) -> str:
    if found.least_bytes is None or found.most_bytes is None:
        return ""
    ends = dict.fromkeys((found.least_bytes, found.most_bytes))
    return _(" to ").join(number_format.whole(end) for end in ends)


def _phase_names() -> dict[str, str]:
    return {"connect": _("connect"), "first_byte": _("first byte"), "receive": _("receive")}
