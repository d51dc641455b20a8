"""The server's settings that changed since the previous run of the same benchmark on a database."""

from dataclasses import dataclass

from django.db.models import QuerySet

from pgperf.analysis.definition_diff import Difference, server_settings, setting_differences
from pgperf.models import Run
from pgperf.reports.run_comparison import settings_table
from pgperf.reports.table import Table


@dataclass(frozen=True)
class ChangedSettings:
    """What differs between the servers' settings of two runs."""

    before: Run
    after: Run
    settings: list[Difference]

    @property
    def table(self) -> Table:
        return settings_table(self.settings, str(self.before), str(self.after))


def changed_settings(run: Run, visible: QuerySet[Run]) -> ChangedSettings | None:
    """None without a previous run among the visible ones, or if no setting changed."""
    if run.benchmark_id is None or run.database_id is None:
        return None
    same = visible.filter(benchmark=run.benchmark_id, database=run.database_id, status=Run.Status.DONE)
    before = same.filter(pk__lt=run.pk).order_by("-pk").only("benchmark_name", "environment").first()
    if before is None:
        return None
    settings = setting_differences(*(server_settings(each.environment) for each in (before, run)))
    return ChangedSettings(before, run, settings) if settings else None
