"""Whether the web servers answered with the page."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from pgperf.analysis.grade import GradeWord
from pgperf.reports import page_lengths
from pgperf.reports.answer.point import Point
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import CAUTION, Note


def points(rows: RunRows) -> Iterator[Point]:
    """None where the bodies are as long as the page."""
    if told := tuple(page_lengths.cautions(rows)):
        text = _("The web servers may answer with another page: the response lengths differ too much.")
        lines = tuple(Note(each, CAUTION) for each in told)
        yield Point(_("Response check"), (text,), lines, str(GradeWord.POOR), anchor="requests")
