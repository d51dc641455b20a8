"""The variants that the answer is about."""

from collections.abc import Sequence

from pgperf.models import VariantResult
from pgperf.reports import suite, verdicts
from pgperf.reports.labels import load_title
from pgperf.reports.run_rows import RunRows, once


@once
def judged(rows: RunRows) -> list[VariantResult]:
    """The variants that the answer is about: over each route that which is nearest to a site."""
    return verdicts.last_of_routes(rows.variants)


def load_of(own: Sequence[VariantResult], rows: RunRows) -> str:
    """How many clients these variants have, of a run with several numbers of clients; else ""."""
    if len({row.identity.connections for row in rows.originals}) == 1:
        return ""
    return ", ".join(dict.fromkeys(load_title(row.identity.connections, row.workers) for row in own))


@once
def suite_settings(rows: RunRows) -> list[suite.Setting]:
    """Those of a suite, with the one that the verdict is about first."""
    about = {row.pk for row in judged(rows)}
    return sorted(suite.settings(rows), key=lambda each: about.isdisjoint(row.pk for row in each.own))


def judged_column(rows: RunRows) -> suite.ColumnKey:
    """The layer of the first of these settings that the verdict is about; its last one without a
    verdict.
    """
    first = suite_settings(rows)[0]
    about = {row.pk for row in judged(rows)}
    found = ((row.layer, row.workers) for row in first.variants if row.pk in about)
    return next(found, first.columns[-1])
