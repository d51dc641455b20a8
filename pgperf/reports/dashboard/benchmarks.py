"""Each benchmark with its newest result, and the figure over its runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from pgperf.models import Benchmark
from pgperf.reports import inline_svg, number_format
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.series import Series
from pgperf.reports.inline_svg import Sparkline


@dataclass(frozen=True)
class BenchmarkRow:
    """A benchmark; `headline` is of its newest done run, None without one."""

    benchmark: Benchmark
    headline: Headline | None = None
    series: Series = field(default_factory=Series)

    @property
    def figure(self) -> str:
        return number_format.time(self.headline.us) if self.headline else ""

    @property
    def sparkline(self) -> Sparkline | None:
        return inline_svg.sparkline(self.series.us, self.series.changes)

    @property
    def range(self) -> str:
        """How many runs the line shows, their least and greatest figure, and the last change."""
        if len(self.series.us) < 2:
            return ""
        low, high = min(self.series.us), max(self.series.us)
        ends = number_format.time_interval(low, high)
        text = _("%(count)d runs, %(range)s") % {"count": len(self.series.us), "range": ends}
        return f"{text}, {self._changes}" if self.series.changes else text

    @property
    def _changes(self) -> str:
        count, last = len(self.series.changes), self.series.last_change
        if count == 1:
            return last
        return _("%(count)d changes, the last: %(last)s") % {"count": count, "last": last}


def rows(
    benchmarks: Iterable[Benchmark],
    done: Mapping[int, int],
    headlines: Mapping[int, Headline],
    series: Mapping[int, Series],
) -> list[BenchmarkRow]:
    """`done`: the newest done run of each benchmark. `series`: by the run that ends it."""
    return [
        BenchmarkRow(each, headlines.get(run := done.get(each.pk, 0)), series.get(run, Series()))
        for each in benchmarks
    ]
