"""A run's answer in a few sentences: the bottleneck, what the ORM adds, how sure that is, what to try.

The first topic of a run's page shows it. Each point is a question with its answer and evidence, and a
module of its own makes it.
"""

from itertools import chain

from pgperf.reports.answer import adds, advice, before, bounds, certainty, rates, sent_again, served_page
from pgperf.reports.answer.point import Point
from pgperf.reports.run_rows import RunRows


def points(rows: RunRows) -> list[Point]:
    """The answer, point by point; none for a run without figures."""
    if not rows.variants:
        return []
    parts = (bounds, served_page, rates, adds, sent_again, before)
    return [
        *chain.from_iterable(part.points(rows) for part in parts),
        certainty.point(rows),
        *advice.points(rows),
    ]
