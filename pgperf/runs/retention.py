"""Retention: deletes the raw blocks of old runs, and old runs. Pinned and unfinished runs stay.

Raw blocks take most of a run's space. Its summary, tables and charts remain without them.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connections, router, transaction
from django.db.models import Exists, OuterRef, QuerySet

from pgperf.conf import get_settings
from pgperf.core.exceptions import RunConflict
from pgperf.db.now import Now
from pgperf.models import BlockResult, LoadShare, Run, Sampling
from pgperf.runs import state

logger = logging.getLogger(__name__)

#: Runs that one transaction deletes.
BATCH = 100
#: A limit within the date range of every database.
_MOST_DAYS = 36_500


@dataclass
class Pruned:
    """Ids of the runs that went, of those whose raw blocks went, and how many blocks (those of
    whole runs aside).
    """

    runs: list[int] = field(default_factory=list)
    raw: list[int] = field(default_factory=list)
    blocks: int = 0


def prune(*, dry_run: bool = False) -> Pruned:
    """Apply KEEP_RUNS_DAYS and KEEP_RAW_DAYS. A dry run only says what would go.

    Raises RunConflict while a run is measuring, which deleting would disturb.
    """
    state.mark_lost()
    under_way = _runs().filter(status=Run.Status.RUNNING).first()
    if under_way and not dry_run:
        raise RunConflict(
            f"{under_way} is running, and pruning would disturb it: try again when it has ended"
        )
    if not dry_run:
        _delete_orders()
    settings, pruned = get_settings(), Pruned()
    old = _ended_before(settings.KEEP_RUNS_DAYS)
    pruned.runs = _ids(old) if dry_run else list(_delete_runs(old))
    pruned.raw = _ids(_old_raw().exclude(pk__in=pruned.runs))
    pruned.blocks = _blocks().filter(run__in=pruned.raw).count() if dry_run else _delete_blocks(pruned.raw)
    if not dry_run and (pruned.runs or pruned.raw):
        logger.info("pruned runs %s, and the raw blocks of runs %s", pruned.runs, pruned.raw)
    return pruned


def due() -> QuerySet[Run]:
    """The runs that `prune` would shorten or delete now."""
    return _old_raw() | _ended_before(get_settings().KEEP_RUNS_DAYS)


def keeps_for_ever() -> bool:
    """Do the settings let `prune` delete nothing, neither raw blocks nor runs?"""
    settings = get_settings()
    return settings.KEEP_RAW_DAYS <= 0 and settings.KEEP_RUNS_DAYS <= 0


def raw_bytes() -> int | None:
    """What all raw blocks take on the disk, in one query; None where only PostgreSQL could tell."""
    connection = connections[_blocks().db]
    if connection.vendor != "postgresql":
        return None
    table = connection.ops.quote_name(BlockResult._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [table])
        return int(cursor.fetchone()[0])


def _old_raw() -> QuerySet[Run]:
    """Runs whose raw blocks are older than they are kept."""
    return _ended_before(get_settings().KEEP_RAW_DAYS).filter(Exists(_blocks().filter(run=OuterRef("pk"))))


def _ended_before(days: int) -> QuerySet[Run]:
    """Runs that retention may touch; none where things are kept for ever."""
    if days <= 0:
        return _runs().none()
    since = Now() - timedelta(days=min(days, _MOST_DAYS))
    return _runs().filter(pinned=False, finished_at__lt=since).exclude(status__in=state.ACTIVE)


def _delete_runs(old: QuerySet[Run]) -> Iterator[int]:
    """Delete in batches. A run that is pinned meanwhile stays."""
    ids = _ids(old)
    for at in range(0, len(ids), BATCH):
        with transaction.atomic(using=old.db):
            still = _ids(old.filter(pk__in=ids[at : at + BATCH]).select_for_update())
            _delete_unread(_blocks().filter(run__in=still))
            _runs().filter(pk__in=still).delete()
        yield from still


def _delete_blocks(ids: list[int]) -> int:
    deleted = 0
    for at in range(0, len(ids), BATCH):
        unpinned = _runs().filter(pk__in=ids[at : at + BATCH], pinned=False)
        deleted += _delete_unread(_blocks().filter(run__in=unpinned))
    return deleted


def _delete_unread(blocks: QuerySet[BlockResult]) -> int:
    """Delete in one statement: where a site listens to all deletions, `delete` loads the raw data."""
    return blocks._raw_delete(blocks.db)


def _delete_orders() -> None:
    """Those rows of agents and load hosts that the owner of a run left behind when it was killed."""
    for model in (Sampling, LoadShare):
        model.objects.using(router.db_for_write(model)).exclude(run__status__in=state.ACTIVE).delete()


def _ids(rows: QuerySet[Run]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _runs() -> QuerySet[Run]:
    return Run.objects.using(router.db_for_write(Run))


def _blocks() -> QuerySet[BlockResult]:
    return BlockResult.objects.using(router.db_for_write(BlockResult))
