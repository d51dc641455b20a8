"""What to do next."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from django.utils.translation import gettext as _

from pgperf.analysis.grade import GradeWord
from pgperf.reports import run_ending
from pgperf.reports.answer.grades import worst
from pgperf.reports.answer.judged import judged, load_of
from pgperf.reports.answer.more import more
from pgperf.reports.answer.point import Point
from pgperf.reports.answer.routes import grouped, of_routes
from pgperf.reports.labels import measured
from pgperf.reports.next_steps import ShownStep, remedy, shown_step
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Note

#: Pieces of advice, and sentences on what distance costs; the verdicts have all.
_MOST, _MOST_DISTANCES = 3, 2


def points(rows: RunRows) -> Iterator[Point]:
    question = _("What to do next")
    if rows.is_suite:
        yield Point(question, tuple(_of_suite(rows)), anchor="suite")
        return
    shown = judged(rows)
    told = {row.pk: shown_step(row, rows.variants, rows.savings) for row in shown}
    groups = grouped((told[row.pk].advice, row) for row in shown if told[row.pk].advice)
    sentences, lines = [], []
    for advice, own in islice(groups.items(), _MOST):
        saving = told[own[0].pk].saving
        text = " ".join(filter(None, (advice, saving)))
        sentences.append(of_routes(text, own, shown, load_of(own, rows)))
        lines += [Note(_("The saving is that of %s.") % own[0].route)] if saving and len(own) > 1 else []
    lines += map(Note, more(len(groups) - _MOST))
    sentences += islice(_besides(rows, told), _MOST - len(sentences))
    sentences += islice(_distances(rows, told), _MOST_DISTANCES)
    sentences += [] if any(each.repeats for each in told.values()) else _narrower(rows)
    if sentences:
        names = dict.fromkeys(chain.from_iterable(told[row.pk].benchmarks for row in shown))
        anchor = "verdicts" if groups else ""
        yield Point(question, tuple(sentences), tuple(lines), anchor=anchor, benchmarks=tuple(names))


def _besides(rows: RunRows, told: Mapping[int, ShownStep]) -> Iterator[str]:
    """Advice on connections beside the main one."""
    shown = judged(rows)
    for row in shown:
        if text := told[row.pk].besides:
            yield of_routes(text, [row], shown, load_of([row], rows))


def _distances(rows: RunRows, told: Mapping[int, ShownStep]) -> Iterator[str]:
    shown = judged(rows)
    for row in shown:
        yield from (of_routes(text, [row], shown, load_of([row], rows)) for text in told[row.pk].distances)


def _narrower(rows: RunRows) -> Iterator[str]:
    """What a run needed that ended before its ratios were known well enough."""
    if needed := run_ending.remedy(rows.run):
        yield _("For narrower intervals: %s") % needed


def _of_suite(rows: RunRows) -> Iterator[str]:
    """The ratios of a much disturbed run are no advice."""
    _row, grade = worst(measured(rows.variants))
    if grade.word == GradeWord.POOR:
        yield remedy(grade)
        return
    yield _("Open Layers, and read the row of the workload that is most like yours.")
    yield from _narrower(rows)
