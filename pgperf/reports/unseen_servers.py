"""Web servers that a run did not find, although it found those that they are compared with."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from pgperf.core.layers import over_http
from pgperf.models import VariantResult
from pgperf.reports.run_rows import RunRows


def notes(rows: RunRows) -> list[str]:
    """What that means, for each pair of routes whose requests were compared."""
    return list(dict.fromkeys(_notes(rows)))


def _notes(rows: RunRows) -> Iterator[str]:
    text = _(
        "The processes of the web server behind %(unseen)s were not found, so pgperf did not bind them to the"
        " servers’ CPUs, as those behind %(seen)s. A difference between the two may be one of CPUs."
    )
    for row in rows.comparisons:
        pair = row.variant, row.baseline
        seen, unseen = (
            [each for each in pair if _is_seen(each)],
            [each for each in pair if not _is_seen(each)],
        )
        if all(map(_is_bound, pair)) and seen and unseen:
            yield text % {"unseen": unseen[0].route, "seen": seen[0].route}


def _is_seen(row: VariantResult) -> bool:
    return bool((row.cpu_account or {}).get("web_workers"))


def _is_bound(row: VariantResult) -> bool:
    """Are the servers of its requests bound to CPUs where they are found?"""
    return over_http(row.layer) and row.placement == "apart"
