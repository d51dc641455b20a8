"""What the ORM, the layers, the steps, the workloads or the environments add."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.ladder import Ladder
from pgperf.analysis.samples import ROUNDS
from pgperf.reports import comparisons, ladders, staircases, suite
from pgperf.reports.answer import orm
from pgperf.reports.answer.judged import suite_settings
from pgperf.reports.answer.point import Point
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import CAUTION, Note

#: Steps of a web site that the answer names; the section has all.
MOST_STEPS = 3


def points(rows: RunRows) -> Iterator[Point]:
    """With a caution where the ratios are those of a single block."""
    found = list(_added(rows))
    if found and _has_one_block(rows):
        found[0] = replace(found[0], lines=(*found[0].lines, Note(_of_one_block(), CAUTION)))
    yield from found


def _has_one_block(rows: RunRows) -> bool:
    return {row.sample for row in rows.comparisons} == {ROUNDS}


def _of_one_block() -> str:
    return _(
        "One block was measured. Its rounds alone make the intervals, which do not tell how far another block"
        " would differ."
    )


def _added(rows: RunRows) -> Iterator[Point]:
    if rows.is_suite:
        if told := suite.headlines(suite_settings(rows)):
            lines = tuple(map(Note, told[1:]))
            yield Point(_("How the layers compare"), tuple(told[:1]), lines, anchor="suite")
    else:
        if rows.ladders and not staircases.alone(rows):
            yield from _layers(ladders.first_load(rows.ladders), rows)
        yield from _steps(staircases.found(rows))
    if told := comparisons.workload_headlines(rows.comparisons):
        yield Point(_("Between the workloads"), tuple(told), anchor="comparisons")
    if told := comparisons.environment_headlines(rows.comparisons):
        yield Point(_("What the Python environment changes"), tuple(told), anchor="comparisons")


def _layers(shown: Sequence[Ladder], rows: RunRows) -> Iterator[Point]:
    """What the ORM adds, else what all layers do; none of ladders with one layer each."""
    if point := orm.point(shown, rows):
        yield point
    elif sentences := tuple(ladders.headlines(shown, rows.ladders)):
        yield Point(_("What the layers add"), sentences, anchor="ladder")


def _steps(found: Sequence[staircases.Staircase]) -> Iterator[Point]:
    """None of steps that make no difference."""
    told, others = staircases.largest(found, MOST_STEPS)
    if told:
        text = ngettext(
            "%d more step makes a smaller difference.", "%d more steps make smaller differences.", others
        )
        lines = (Note(text % others),) if others else ()
        yield Point(_("What each step changes"), tuple(told), lines, anchor="staircase")
