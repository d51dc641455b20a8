"""Each database with the verdict of its newest run."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from pgperf.analysis.verdict_kinds import DISTURBED
from pgperf.models import Database
from pgperf.reports import number_format
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.time_bar import Part, described, time_bar
from pgperf.reports.verdicts import ShownVerdict, Words


@dataclass(frozen=True)
class DatabaseCard:
    """A database; `headline` is of its newest done run, None without one. The bar is empty where the
    run has no CPU accounts, and for a suite.
    """

    database: Database
    headline: Headline | None = None
    verdicts: tuple[ShownVerdict, ...] = ()
    bar: tuple[Part, ...] = ()

    @property
    def time(self) -> str:
        """Of one operation."""
        us = self.headline.us if self.headline else None
        return "" if us is None else _("%s per operation") % number_format.time(us)

    @property
    def bar_text(self) -> str:
        return described(self.bar)

    @property
    def verdict(self) -> ShownVerdict | None:
        """The verdict of a run that is no suite."""
        return self.verdicts[0] if self.headline and self.headline.row and self.verdicts else None

    @property
    def grade(self) -> str:
        """How undisturbed the measurement was; "" where the verdict says that it was disturbed."""
        verdict = self.verdict
        return "" if verdict is None or DISTURBED in verdict.named else verdict.grade

    @property
    def words(self) -> dict[str, int]:
        """The bottlenecks of a suite with the number of their workloads, the most frequent first;
        “A or B” is “B or A”.
        """
        counts = Counter(verdict.named for verdict in self.verdicts)
        titles: dict[Words, str] = {}
        for verdict in self.verdicts:
            titles.setdefault(verdict.named, verdict.word)
        return {titles[named]: count for named, count in counts.most_common()}


def cards(
    databases: Iterable[Database], done: Mapping[int, int], headlines: Mapping[int, Headline]
) -> list[DatabaseCard]:
    """In the order of the databases. `done`: the newest done run of each."""
    return [_card(database, headlines.get(done.get(database.pk, 0))) for database in databases]


def _card(database: Database, headline: Headline | None) -> DatabaseCard:
    if headline is None:
        return DatabaseCard(database)
    bar = time_bar(headline.row) if headline.row else []
    return DatabaseCard(database, headline, tuple(headline.verdicts), tuple(bar))
