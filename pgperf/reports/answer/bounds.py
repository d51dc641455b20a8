"""What bounds it."""

from collections.abc import Iterator, Sequence
from itertools import islice

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.reports import verdicts
from pgperf.reports.answer.claims import no_verdict, plain
from pgperf.reports.answer.judged import judged, load_of
from pgperf.reports.answer.point import Point
from pgperf.reports.answer.routes import grouped, of_routes
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import CAUTION, Note


def points(rows: RunRows) -> Iterator[Point]:
    question = _("What bounds it")
    if rows.is_suite:
        sentences = tuple(verdicts.suite_headlines(rows.variants))
        yield Point(question, sentences or (no_verdict(),), anchor="verdicts" if sentences else "")
        return
    shown = judged(rows)
    groups = grouped((plain(row), row) for row in shown)
    sentences = tuple(of_routes(text, own, shown, load_of(own, rows)) for text, own in groups.items())
    first = [own[0].label for own in groups.values()]
    anchor = "verdicts" if shown else ""
    yield Point(question, sentences or (no_verdict(),), tuple(_evidence(rows, first)), anchor=anchor)


def _evidence(rows: RunRows, labels: Sequence[str]) -> Iterator[Note]:
    """Of the variants with these labels, and the notes of all, one caution among them; those on
    disturbances belong to another question.
    """
    shown, disturbed = verdicts.headlines(rows.variants), verdicts.word_title(verdict_kinds.DISTURBED)
    for each in shown:
        if each.label in labels and each.word != disturbed:
            yield Note(_("%(variant)s: %(evidence)s") % {"variant": each.title, "evidence": each.short})
    notes = dict.fromkeys(n for each in shown for n in each.notes if n.text != each.disturbed_by)
    yield from (note for note in notes if note.mark != CAUTION)
    yield from islice((note for note in notes if note.mark == CAUTION), 1)
