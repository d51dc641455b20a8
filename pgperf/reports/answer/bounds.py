"""The bottleneck."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.models import VariantResult
from pgperf.reports import verdicts
from pgperf.reports.answer.claims import no_verdict, plain
from pgperf.reports.answer.judged import judged, load_of
from pgperf.reports.answer.point import Point
from pgperf.reports.answer.routes import of_routes
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import CAUTION, Note


def points(rows: RunRows) -> Iterator[Point]:
    question = _("Bottleneck")
    if rows.is_suite:
        sentences = tuple(verdicts.suite_headlines(rows.variants))
        yield Point(question, sentences or (no_verdict(),), anchor="verdicts" if sentences else "")
        return
    shown = judged(rows)
    groups = _of_one_claim(shown)
    sentences = tuple(of_routes(plain(own[0]), own, shown, load_of(own, rows)) for own in groups)
    lines = (*_evidence(rows, [own[0].label for own in groups]), *_withheld(rows))
    yield Point(question, sentences or (no_verdict(),), lines, anchor="verdicts" if shown else "")


def _of_one_claim(shown: Sequence[VariantResult]) -> list[list[VariantResult]]:
    """The variants in groups of one claim: “A or B” is “B or A”."""
    groups: dict[tuple[str, verdicts.Words], list[VariantResult]] = {}
    for row in shown:
        verdict, text = row.record.verdict, plain(row)
        named = verdicts.words_of(verdict) if verdict else ()
        alike = text.replace(verdicts.either(verdict), "") if verdict and len(named) > 1 else text
        groups.setdefault((alike, named), []).append(row)
    return list(groups.values())


def _withheld(rows: RunRows) -> Iterator[Note]:
    if text := verdicts.withheld(rows.variants):
        yield Note(text, CAUTION)


def _evidence(rows: RunRows, labels: Sequence[str]) -> Iterator[Note]:
    """Of the variants with these labels, and the notes of all; those on disturbances belong to another
    question.
    """
    shown, disturbed = verdicts.headlines(rows.variants), verdicts.word_title(verdict_kinds.DISTURBED)
    for each in shown:
        if each.label in labels and each.word != disturbed:
            yield Note(_("%(variant)s: %(evidence)s") % {"variant": each.title, "evidence": each.short})
    yield from dict.fromkeys(n for each in shown for n in each.notes if n.text != each.disturbed_by)
