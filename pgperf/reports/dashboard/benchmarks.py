"""Each benchmark with its newest result, and the figure over its runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from pgperf.models import Benchmark, Run
from pgperf.reports import inline_svg, number_format
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.series import Series
from pgperf.reports.inline_svg import Sparkline


@dataclass(frozen=True)
class BenchmarkRow:
    """A benchmark; `headline` is of its newest done run, None without one. `series` is what that run
    ends; where it is alone, the longest one, and `longest` is the headline of its newest run.
    """

    benchmark: Benchmark
    headline: Headline | None = None
    series: Series = field(default_factory=Series)
    longest: Headline | None = None

    @property
    def figure(self) -> str:
        return number_format.time(self.headline.us) if self.headline else ""

    @property
    def sparkline(self) -> Sparkline | None:
        return inline_svg.sparkline(self.series.us, self.series.changes)

    @property
    def range(self) -> str:
        """How many runs the line shows, their least and greatest figure, and the last change; before
        that, of which line where it is not that of the newest run.
        """
        if len(self.series.us) < 2:
            return ""
        low, high = min(self.series.us), max(self.series.us)
        ends = number_format.time_interval(low, high)
        text = _("%(count)d runs, %(range)s") % {"count": len(self.series.us), "range": ends}
        text = f"{text}, {self._changes}" if self.series.changes else text
        return self._named(text, self.longest.run) if self.longest else text

    @staticmethod
    def _named(text: str, run: Run) -> str:
        names = {"definition": run.definition_hash[:8], "database": run.database_name}
        title = _("longest series (definition %(definition)s on %(database)s, without the last result)")
        return f"{title % names}: {text}"

    @property
    def _changes(self) -> str:
        count, last = len(self.series.changes), self.series.last_change
        if count == 1:
            return last
        return _("%(count)d changes, the last: %(last)s") % {"count": count, "last": last}


def rows(
    benchmarks: Iterable[Benchmark],
    done: Mapping[int, int],
    longest: Mapping[int, int],
    headlines: Mapping[int, Headline],
    series: Mapping[int, Series],
) -> list[BenchmarkRow]:
    """`done`: the newest done run of each benchmark, `longest` that of its line with the most runs.
    `series`: by the run that ends it.
    """
    found = []
    for each in benchmarks:
        run, other = done.get(each.pk, 0), longest.get(each.pk, 0)
        head, own, long = headlines.get(run), series.get(run, Series()), series.get(other, Series())
        is_alone = len(own.us) < 2 <= len(long.us)
        shown = (long, headlines.get(other)) if is_alone else (own, None)
        found.append(BenchmarkRow(each, head, *shown))
    return found
