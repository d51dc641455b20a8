"""Whether it became slower since the run before."""

from collections.abc import Iterator
from dataclasses import replace

from django.utils.translation import gettext as _

from pgperf.analysis.run_comparison import TIME
from pgperf.models import Run
from pgperf.reports import earlier_run
from pgperf.reports.answer.judged import judged, load_of
from pgperf.reports.answer.point import Point
from pgperf.reports.answer.routes import grouped, of_routes
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Note


def points(rows: RunRows) -> Iterator[Point]:
    """What the answer is about, set against the run before, with the last change that lasted, or that
    there is none in enough runs; of a suite the latter only.
    """
    question = _("Since the last run")
    if rows.is_first and not rows.run.intervention:
        alone = _("You see no earlier completed run of this definition on this database.")
        yield Point(question, (alone,), longest=rows.longest)
    if rows.before is None:
        return
    sentences, lines = ((), ()) if rows.is_suite else _beside(rows.before, rows)
    change = earlier_run.newest(rows.changes, _concerned(rows))
    if change is None and (steady := earlier_run.no_change(rows.counted)):
        sentences += (steady,)
    if sentences or change:
        yield Point(question, sentences, lines, before=rows.before, change=change)


def _beside(before: Run, rows: RunRows) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """Sentences and evidence; none of runs without a judged variant in common."""
    about = judged(rows)
    changes = earlier_run.found(before, rows.run, {row.label for row in about})
    shown = [row for row in about if (row.label, TIME) in changes]
    groups = grouped((earlier_run.sentence(changes[row.label, TIME], before), row) for row in shown)
    sentences = tuple(of_routes(text, own, shown, load_of(own, rows)) for text, own in groups.items())
    lines = (Note(earlier_run.evidence(earlier_run.largest(shown, changes), changes)),) if shown else ()
    return sentences, lines


def _concerned(rows: RunRows) -> set[str]:
    """The labels of the variants that the answer is about, and of the layers below, whose steps are
    part of their times; all of a suite, with that of its headline figure, which names no workload.
    """
    if rows.is_suite:
        variants = [row.identity for row in rows.originals]
        return {each.label for one in variants for each in (one, replace(one, named=False))}
    labels = {row.label for row in judged(rows)}
    rungs = [{step.label for step in ladder.steps} for ladder in rows.ladders]
    return labels.union(*(each for each in rungs if labels & each))
