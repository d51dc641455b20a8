"""How undisturbed the measurement was that the answer is about."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.analysis.grade import Grade, GradeWord
from pgperf.models import VariantResult
from pgperf.reports import number_format, verdicts
from pgperf.reports.labels import variant_title

#: From the best grade to the worst.
_GRADES = (GradeWord.GOOD, GradeWord.UNKNOWN, GradeWord.FAIR, GradeWord.POOR)


def worst(rows: Sequence[VariantResult]) -> tuple[VariantResult | None, Grade]:
    """The most disturbed variant with its grade; None where none has one."""
    found = [(row, verdict.grade) for row in rows if (verdict := row.record.verdict)]
    return max(found, key=lambda each: _rank(each[1]), default=(None, Grade()))


def _rank(grade: Grade) -> tuple[int, float]:
    known = list(map(str, _GRADES))
    return known.index(grade.word) if grade.word in known else 1, grade.share or 0.0


def mark(grade: Grade) -> str:
    """That of a point about it. Much disturbed is a caution here as on all pages: a cross is for what
    failed.
    """
    return str(GradeWord.FAIR if grade.word == GradeWord.POOR else grade.word)


def graded(grade: Grade, load: str = "") -> str:
    """`load`: how many clients were measured, where the run has several numbers of clients."""
    texts = {
        GradeWord.GOOD: _("%s is undisturbed"),
        GradeWord.FAIR: _("%s is slightly disturbed"),
        GradeWord.POOR: _("%s is much disturbed"),
    }
    what = _("The measurement of %s") % load if load else _("The measurement")
    text = texts.get(GradeWord(grade.word)) if grade.word in set(GradeWord) else None
    if text is None:
        return _("pgperf could not find out how disturbed the measurement was.")
    text %= what
    if grade.share is None:
        return f"{text}."
    if grade.share < verdicts.LEAST_SHARE:
        return _("%s: other work took less than 0.1 %% of the time.") % text
    names = {"text": text, "share": number_format.percent(grade.share)}
    if grade.others != grade.share:
        return _("%(text)s: all disturbances took at most %(share)s of the time.") % names
    return _("%(text)s: other work took at most %(share)s of the time.") % names


def disturbances(row: VariantResult | None, grade: Grade) -> Iterator[str]:
    if row is not None and grade.word in (GradeWord.FAIR, GradeWord.POOR):
        names = {"variant": variant_title(row), "by": verdict_kinds.grade_sentence(grade)}
        yield _("%(variant)s: %(by)s") % names if names["by"] else ""
