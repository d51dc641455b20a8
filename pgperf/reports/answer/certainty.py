"""How sure that is."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.grade import GradeWord
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.verdict import LIKELY
from pgperf.models import VariantResult
from pgperf.reports import load_hosts, unseen_servers, verdicts
from pgperf.reports.answer.grades import disturbances, graded, mark, worst
from pgperf.reports.answer.judged import judged, load_of
from pgperf.reports.answer.more import more
from pgperf.reports.answer.point import Point
from pgperf.reports.labels import measured
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import CAUTION, Note

#: Failed consistency checks that the answer lists.
_MOST = 3


def point(rows: RunRows) -> Point:
    """The grade of the least certain variant that the answer is about, and what else limits it."""
    shown = measured(rows.variants) if rows.is_suite else judged(rows)
    row, grade = worst(shown)
    lost = (Note(text, CAUTION) for text in (*load_hosts.lost(rows), *unseen_servers.notes(rows)))
    said = map(Note, filter(None, (*disturbances(row, grade), " ".join(_limits(rows, shown)))))
    lines = (*lost, *said)
    anchor = "verdicts" if row else ""
    if failed := verdicts.failed_checks(rows.variants):
        lines = (*map(Note, _first(failed)), Note(graded(grade, load_of([row], rows) if row else "")), *lines)
        return Point(_("How sure"), (_failed(len(failed)),), lines, str(GradeWord.POOR), anchor)
    return Point(
        _("How sure"), (graded(grade, load_of([row], rows) if row else ""),), lines, mark(grade), anchor
    )


def _first(failed: Sequence[str]) -> Iterator[str]:
    """A few of the checks that failed, and how many more the verdicts list."""
    yield from failed[:_MOST]
    yield from more(len(failed) - _MOST)


def _limits(rows: RunRows, shown: Sequence[VariantResult]) -> Iterator[str]:
    if rows.run.quick:
        yield _("The run was a quick one: a full run has narrower intervals.")
    if controls := [row for row in rows.comparisons if row.aa]:
        yield _controls(sum(row.outcome == DIFFERS for row in controls), len(controls))
    if any(verdict.certainty == LIKELY for row in shown if (verdict := row.record.verdict)):
        yield _("Likely means: no test run has confirmed it yet.")


def _controls(outside: int, count: int) -> str:
    """Of variants that were measured twice."""
    if not outside:
        text = ngettext(
            "%d variant was measured twice as a control: no false difference.",
            "%d variants were measured twice as controls: no false difference.",
            count,
        )
        return text % count
    text = ngettext(
        "%(outside)d of %(count)d variants that were measured twice as controls shows a false difference.",
        "%(outside)d of %(count)d variants that were measured twice as controls show a false difference.",
        outside,
    )
    return text % {"outside": outside, "count": count}


def _failed(count: int) -> str:
    text = ngettext(
        "%d consistency check failed. Do not trust the figures until you know why.",
        "%d consistency checks failed. Do not trust the figures until you know why.",
        count,
    )
    return text % count
