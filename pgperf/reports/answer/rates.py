"""Whether it sustained its rates."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.reports import open_loops
from pgperf.reports.answer.point import Point
from pgperf.reports.labels import measured
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Note

#: Sentences on rates that were not sustained; the section has all.
_MOST = 3


def points(rows: RunRows) -> Iterator[Point]:
    """None of a run without rates."""
    shown = [row for row in measured(rows.variants) if row.rate is not None]
    if not shown:
        return
    told = open_loops.sentences(shown)
    text = ngettext(
        "%(held)d of %(count)d variant with a rate sustained it.",
        "%(held)d of %(count)d variants with a rate sustained it.",
        len(shown),
    )
    sentence = text % {"held": len(shown) - len(told), "count": len(shown)}
    yield Point(_("Rates sustained"), (sentence,), tuple(map(Note, told[:_MOST])), anchor="rate")
