"""Variants with a rate: what was due, what ended, and how late it began."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.open_loop import OpenLoop
from pgperf.models import VariantResult
from pgperf.reports import number_format
from pgperf.reports.labels import variant_title
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    at_least,
    count,
    number,
    percent,
    text_column,
    time_column,
    words,
)


def with_rate(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """Those whose operations began by a schedule."""
    return [variant for variant in variants if variant.open_loop]


def service_us(variant: VariantResult) -> float | None:
    """The mean time from the real start of an operation to its end, µs."""
    return variant.phases_us.get("service", variant.latency_us)["mean"]


def latency(row: VariantResult, key: str) -> Cell:
    """One of the `latency_us`; a percentile in which operations that had not begun may be is a lower
    bound.
    """
    value = row.latency_us.get(key)
    return at_least(value) if is_lower_bound(row, key) else number(value)


def is_lower_bound(row: VariantResult, key: str) -> bool:
    """May one of the `latency_us` be that of operations that had not begun?"""
    found = row.record.open_loop
    return found is not None and key.startswith("p") and found.is_lower_bound(float(key[1:]))


def note() -> str:
    """How the columns of the table belong together."""
    return _(
        "Latency is timed from the intended start of each operation. It is the lag, which is the time until"
        " a connection was free and the client awake, and the service time. Late operations ended after the"
        " latency limit; skipped ones would have begun after it. A rate is sustained if at least 98 % of the"
        " scheduled operations ended in the window, after an allowance for operations that the ends of slices"
        " cut off (see Method). Operations that had not begun when a window closed count in the latency with"
        " the time that they had waited by then; “≥” marks a percentile that is a lower bound for that"
        " reason. What is due scatters around the rate if its gaps are exponential. The columns “due” and"
        " “ended” count all slices together; throughput is that of a typical slice, so it can differ from"
        " what ended."
    )


def sentences(variants: Sequence[VariantResult]) -> list[str]:
    """A sentence for each variant with a rate that did not sustain it."""
    failed = _("%(variant)s: each slice had a failed request, so none counts.")
    lost = [row for row in variants if row.rate is not None and row.record.open_loop is None]
    return [*_not_held(variants), *(failed % {"variant": variant_title(row)} for row in lost)]


def _not_held(variants: Sequence[VariantResult]) -> list[str]:
    short = _(
        "%(variant)s could not sustain its rate: %(due)s operations/s were due, and %(ended)s/s ended."
        " Skipped: %(skipped)s; not begun when the windows closed: %(backlog)s."
    )
    return [
        short
        % {
            "variant": variant_title(row),
            "due": number_format.number(found.offered_per_s),
            "ended": number_format.number(found.achieved_per_s),
            "skipped": number_format.whole(found.skipped),
            "backlog": number_format.whole(found.backlog),
        }
        for row in variants
        if (found := row.record.open_loop) and not found.is_held
    ]


def rate_table(variants: Sequence[VariantResult]) -> Table:
    """What became of each rate. Latencies are from the intended start."""
    columns = (
        text_column(_("Variant")),
        Column(_("Due"), _("operations/s")),
        Column(_("Ended"), _("operations/s")),
        text_column(_("Sustained")),
        time_column(_("Lag p50")),
        time_column(_("Lag p99")),
        time_column(_("Service time, mean")),
        time_column(_("Latency p50")),
        time_column(_("Latency p99")),
        Column(_("Late or skipped")),
        Column(_("Skipped"), _("operations")),
        Column(_("Backlog"), _("operations")),
    )
    rows = [_row(row, found) for row in variants if (found := row.record.open_loop)]
    return Table(_("Operations at a given rate"), columns, rows, "rate")


def _row(row: VariantResult, found: OpenLoop) -> tuple[Cell, ...]:
    return (
        words(variant_title(row)),
        number(found.offered_per_s),
        number(found.achieved_per_s),
        words(_("yes") if found.is_held else _("no")),
        number(row.phases_us["lag"].get("p50")),
        number(row.phases_us["lag"].get("p99")),
        number(service_us(row)),
        latency(row, "p50"),
        latency(row, "p99"),
        words("–") if found.late_share is None else percent(found.late_share),
        count(found.skipped),
        count(found.backlog),
    )
