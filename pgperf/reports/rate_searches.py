"""Searches for the highest rate: what each found, and the latency over the rate."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.grade import Grade
from pgperf.analysis.rate_search import Outcome, Point, RateSearch
from pgperf.analysis.verdict_kinds import grade_sentence
from pgperf.models import VariantResult
from pgperf.reports import number_format
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import variant_title
from pgperf.reports.next_steps import remedy
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    at_least,
    count,
    exact,
    file_columns,
    interval,
    interval_column,
    number,
    percent,
    text_column,
    time_column,
    words,
)
from pgperf.reports.verdicts import grade_title

#: The fields that tell a search from the run's others, as files name them.
_NAMED = (
    "workload", "layer", "mode", "route", "clients", "workers", "connect", "environment", "schedule", "hosts",
)  # fmt: skip
_PERCENTILES = ("p50_us", "p90_us", "p99_us")


def sentences(rows: RunRows) -> list[str]:
    """What each search found, or why there is no number."""
    return [_sentence(rows, search) for search in rows.rate_searches]


def _sentence(rows: RunRows, search: RateSearch) -> str:
    rates = [step.rate for step in search.steps]
    return _texts()[search.outcome] % {
        "variant": title(rows, search),
        "limit": f"{search.limit_ms:g}",
        "rate": number_format.number(search.rate),
        "interval": number_format.interval(search.low, search.high),
        "share": number_format.percent(search.share),
        "capacity": number_format.number(search.capacity),
        "lowest": number_format.number(min(rates, default=None)),
        "highest": number_format.number(max(rates, default=None)),
        "disturbed": _disturbed(rows, search),
        "remedy": _remedy(rows, search),
    }


def _texts() -> dict[str, str]:
    return {
        Outcome.FOUND: _(
            "%(variant)s: up to %(rate)s operations/s (95 %% interval %(interval)s) the 99th percentile of the"
            " latency stays under %(limit)s ms. That is %(share)s of the %(capacity)s operations/s that the"
            " closed loop reaches."
        ),
        Outcome.DISTURBED: _(
            "%(variant)s: no highest rate for %(limit)s ms, because the measurement was much disturbed%(disturbed)s."
            " %(remedy)s"
        ),
        Outcome.NONE_HOLDS: _(
            "%(variant)s: the 99th percentile of the latency exceeds %(limit)s ms at every rate that was tried,"
            " from %(lowest)s operations/s on."
        ),
        Outcome.ALL_HOLD: _(
            "%(variant)s: the 99th percentile of the latency stays under %(limit)s ms at every rate that was"
            " tried, up to %(highest)s operations/s."
        ),
        Outcome.UNKNOWN: _("%(variant)s: too little was measured for a highest rate."),
    }


def _disturbed(rows: RunRows, search: RateSearch) -> str:
    """By whom, as far as it is known."""
    row = _reference(rows, search)
    verdict = row.record.verdict if row else None
    evidence = grade_sentence(verdict.grade) if verdict else ""
    return f": {evidence}" if evidence else ""


def _remedy(rows: RunRows, search: RateSearch) -> str:
    row = _reference(rows, search)
    verdict = row.record.verdict if row else None
    return remedy(verdict.grade if verdict else Grade())


def title(rows: RunRows, search: RateSearch) -> str:
    """The closed loop that the search is beside, as people know it."""
    row = _reference(rows, search)
    return variant_title(row) if row else search.reference


def _reference(rows: RunRows, search: RateSearch) -> VariantResult | None:
    return next((row for row in rows.variants if row.label == search.reference), None)


def note() -> str:
    """How the figures are to be read."""
    return _(
        "Latency is timed from the intended start of each operation. A rate holds the limit where at most 1 %"
        " of the operations that were due are over it. Shares are of what the closed loop reached in the same"
        " block. A dashed line marks the found rate, and a band its 95 % interval; the other dashed line is"
        " the limit. “≥” marks a percentile that is a lower bound: operations that had not begun when the"
        " windows closed count with the time that they had waited by then."
    )


def search_table(rows: RunRows) -> Table:
    """A row for each search."""
    columns = (
        text_column(_("Variant"), "variant"),
        text_column(_("Result"), "outcome"),
        Column(_("99th percentile under"), "ms", keys=("limit_ms",)),
        Column(_("Highest rate"), _("operations/s"), keys=("rate",)),
        interval_column("low", "high"),
        Column(_("Of the closed loop"), keys=("share",)),
        interval_column("share_low", "share_high"),
        Column(_("Closed loop"), _("operations/s"), keys=("capacity",)),
        text_column(_("Measurement"), "grade"),
        Column(_("Slices"), keys=("slices",)),
        *file_columns((*_NAMED, "reference")),
    )
    found = [_row(rows, search) for search in rows.rate_searches]
    return Table(_("The highest rate"), columns, found, "rate-search")


def _row(rows: RunRows, search: RateSearch) -> tuple[Cell, ...]:
    return (
        words(title(rows, search), search.variant),
        words(outcome_title(search.outcome), search.outcome),
        Cell(f"{search.limit_ms:g}", (search.limit_ms,)),
        _found(search, number(search.rate)),
        _found(search, interval(search.low, search.high)),
        _found(search, percent(search.share)),
        _found(search, _percents(search.share_low, search.share_high)),
        number(search.capacity),
        words(grade_title(search.grade), search.grade),
        count(len(search.steps)),
        *(exact(getattr(search, name)) for name in (*_NAMED, "reference")),
    )


def _found(search: RateSearch, cell: Cell) -> Cell:
    """A dash where the search has no number, which its result explains."""
    return cell if search.outcome == Outcome.FOUND else Cell("–", cell.values)


def _percents(low: float | None, high: float | None) -> Cell:
    if low is None or high is None:
        return interval(low, high)
    return Cell(f"{number_format.percent(low)} … {number_format.percent(high)}", (low, high))


def outcome_title(outcome: str) -> str:
    """The result of a search in a word or two."""
    titles = {
        Outcome.FOUND: _("found"),
        Outcome.DISTURBED: _("disturbed"),
        Outcome.NONE_HOLDS: _("no rate holds it"),
        Outcome.ALL_HOLD: _("every rate holds it"),
    }
    return titles.get(Outcome(outcome), _("unknown"))


def curves(rows: RunRows) -> list[tuple[str, Chart]]:
    """The latency over the rate: a chart for each search."""
    return [(title(rows, each), _curve(rows, each)) for each in rows.rate_searches if each.points()]


def _curve(rows: RunRows, search: RateSearch) -> Chart:
    points = search.points()
    return of_times(
        {
            "kind": "knee",
            "label": _("%(title)s: latency over the rate. The table below has the numbers.")
            % {"title": title(rows, search)},
            "told": _sentence(rows, search),
            "axis": _("%s, logarithmic"),
            "x_axis": _("operations/s"),
            "x": [point.rate for point in points],
            "x_min": 0,
            "titles": [
                _("%(share)s of the closed loop") % {"share": number_format.percent(point.share)}
                for point in points
            ],
            "log": True,
            "limit": search.limit_ms * 1000,
            "knee": [search.low, search.rate, search.high],
            "series": _percentiles(points),
        }
    )


def _percentiles(points: Sequence[Point]) -> list[dict[str, Any]]:
    names = {"p50_us": _("median"), "p90_us": "p90", "p99_us": "p99"}
    return [
        {
            "name": names[key],
            "colour": key.removesuffix("_us"),
            "shape": at,
            "values": [getattr(point, key) for point in points],
        }
        for at, key in enumerate(_PERCENTILES)
    ]


def curve_table(rows: RunRows) -> Table:
    """The numbers of the curves."""
    columns = (
        text_column(_("Variant")),
        Column(_("Rate"), _("operations/s")),
        Column(_("Of the closed loop")),
        Column(_("Slices")),
        Column(_("Operations due")),
        Column(_("Over the limit")),
        time_column("p50"),
        time_column("p90"),
        time_column("p99"),
    )
    found = [_point(title(rows, each), point) for each in rows.rate_searches for point in each.points()]
    return Table(_("Latency over the rate"), columns, found, "rate-curve")


def _point(name: str, point: Point) -> tuple[Cell, ...]:
    return (
        words(name),
        number(point.rate),
        percent(point.share),
        count(point.slices),
        count(point.due),
        percent(point.over_share),
        *(_percentile(point, key) for key in _PERCENTILES),
    )


def _percentile(point: Point, key: str) -> Cell:
    """One that operations reach that had not begun is a lower bound."""
    us = getattr(point, key)
    return at_least(us) if point.is_lower_bound(float(key[1:].removesuffix("_us"))) else number(us)


def step_table(rows: RunRows) -> Table:
    """A row for each slice of each search, for files."""
    own = ("block", "round", "rate", "capacity", "share", "due", "over", "holds", *_PERCENTILES, "backlog")
    found = [
        (exact(each.variant), *(exact(getattr(step, name)) for name in own))
        for each in rows.rate_searches
        for step in each.steps
    ]
    return Table(_("Steps of the searches"), file_columns(("variant", *own)), found, "rate-steps")


def tables(rows: RunRows) -> Sequence[Table]:
    """Those of the terminal and of a ticket."""
    return [search_table(rows), curve_table(rows)] if rows.rate_searches else []
