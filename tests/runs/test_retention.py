"""Deleted and kept rows of pruning."""

import io
import os
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import pre_delete
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from pgperf import tasks
from pgperf.core.exceptions import RunConflict
from pgperf.models import BlockResult, ComparisonResult, LoadShare, Run, Sampling, VariantResult
from pgperf.runs import retention
from tests import factories

pytestmark = pytest.mark.django_db


def aged(days: float, status: str = Run.Status.DONE, **fields: Any) -> Run:
    """A run with results that ended so long ago, with two raw blocks."""
    ended = timezone.now() - timedelta(days=days)
    run = factories.make_results(factories.make_run(status, finished_at=ended, **fields))
    for block in (1, 2):
        BlockResult.objects.create(run=run, attempt=1, cohort=0, block=block, data=b"x")
    return run


def keep(settings: Any, raw: int, runs: int) -> None:
    settings.PGPERF = {**settings.PGPERF, "KEEP_RAW_DAYS": raw, "KEEP_RUNS_DAYS": runs}


def left() -> dict[int, int]:
    return {run.pk: BlockResult.objects.filter(run=run).count() for run in Run.objects.order_by("pk")}


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "prune", *words, stdout=out)
    return out.getvalue()


def test_old_runs_and_raw_blocks_are_deleted(settings: Any) -> None:
    keep(settings, raw=10, runs=100)
    gone, pinned, raw, raw_pinned = aged(101), aged(101, pinned=True), aged(11), aged(11, pinned=True)
    new = aged(9)
    failed = aged(101, Run.Status.FAILED)
    pruned = retention.prune()
    assert pruned == retention.Pruned(runs=[gone.pk, failed.pk], raw=[raw.pk], blocks=2)
    assert left() == {pinned.pk: 2, raw.pk: 0, raw_pinned.pk: 2, new.pk: 2}
    assert not VariantResult.objects.filter(run_id=gone.pk).exists()
    assert not ComparisonResult.objects.filter(run_id=gone.pk).exists()
    assert VariantResult.objects.filter(run=raw).exists()
    assert retention.prune() == retention.Pruned()


def test_the_size_of_raw_blocks_is_that_of_their_table_in_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    if connection.vendor != "postgresql":
        assert retention.raw_bytes() is None
        return
    empty = retention.raw_bytes()
    run = factories.make_run()
    BlockResult.objects.create(run=run, attempt=1, cohort=0, block=1, data=os.urandom(200_000))
    with django_assert_num_queries(1):
        size = retention.raw_bytes()
    assert size is not None
    assert empty is not None
    assert size - empty >= 200_000


def test_unlimited_retention_deletes_nothing(settings: Any) -> None:
    keep(settings, raw=0, runs=0)
    run = aged(50_000)
    assert retention.prune() == retention.Pruned()
    assert left() == {run.pk: 2}


def test_days_beyond_the_calendar(settings: Any) -> None:
    keep(settings, raw=10**9, runs=10**9)
    aged(1)
    assert retention.prune() == retention.Pruned()


def test_unfinished_runs_are_kept(settings: Any) -> None:
    keep(settings, raw=1, runs=1)
    waiting = factories.make_run(Run.Status.QUEUED, requested_at=timezone.now() - timedelta(days=400))
    lost_alive = aged(400, Run.Status.QUEUED)  # a time from an earlier life does not count
    assert retention.prune() == retention.Pruned()
    assert list(left()) == [waiting.pk, lost_alive.pk]


def test_nothing_is_deleted_while_a_run_measures(settings: Any) -> None:
    keep(settings, raw=1, runs=1)
    old, running = aged(5), factories.make_run(Run.Status.RUNNING)
    with pytest.raises(RunConflict, match=f"{running} is running"):
        retention.prune()
    assert retention.prune(dry_run=True).runs == [old.pk]
    with pytest.raises(CommandError, match="is running"):
        command()
    tasks.prune()
    assert left() == {old.pk: 2, running.pk: 0}


def test_a_lost_run_does_not_delay_pruning(settings: Any) -> None:
    keep(settings, raw=1, runs=1)
    old = aged(5)
    dead = factories.make_run(Run.Status.RUNNING, heartbeat_at=timezone.now() - timedelta(days=3))
    tasks.prune()
    assert list(left()) == [dead.pk]
    assert not Run.objects.filter(pk=old.pk).exists()


def test_what_a_killed_owner_left_to_other_hosts_is_deleted() -> None:
    """A row may hold 64 MB. That of a queued run may be of an attempt that begins now."""
    queued, lost = (factories.make_run(status) for status in (Run.Status.QUEUED, Run.Status.LOST))
    for run in (queued, lost):
        Sampling.objects.create(run=run, attempt=1)
        LoadShare.objects.create(run=run, attempt=1, busy_queue=f"queue of {run.pk}")
    retention.prune(dry_run=True)
    assert (Sampling.objects.count(), LoadShare.objects.count()) == (2, 2)
    retention.prune()
    assert [row.run_id for row in (*Sampling.objects.all(), *LoadShare.objects.all())] == [queued.pk] * 2


def test_several_batches_are_deleted(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(settings, raw=1, runs=3)
    monkeypatch.setattr(retention, "BATCH", 2)
    for days in (5, 5, 5, 2, 2, 2):
        aged(days)
    pruned = retention.prune()
    assert (len(pruned.runs), len(pruned.raw), pruned.blocks) == (3, 3, 6)
    assert list(left().values()) == [0, 0, 0]


def test_where_a_site_listens_to_all_deletions_no_raw_data_is_loaded(settings: Any) -> None:
    keep(settings, raw=10, runs=100)
    gone, raw = aged(101), aged(11)
    heard: list[Any] = []

    def listen(sender: Any, **_given: Any) -> None:
        heard.append(sender)

    pre_delete.connect(listen)
    try:
        assert retention.prune() == retention.Pruned(runs=[gone.pk], raw=[raw.pk], blocks=2)
    finally:
        pre_delete.disconnect(listen)
    assert left() == {raw.pk: 0}
    assert Run in heard
    assert BlockResult not in heard


def test_a_run_pinned_meanwhile_is_kept(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(settings, raw=1, runs=1)
    old, selected = aged(5), False

    def pin_after_selection(execute: Any, sql: str, *words: Any) -> Any:
        nonlocal selected
        result = execute(sql, *words)
        if not selected and "finished_at" in sql and sql.startswith("SELECT"):
            selected = True
            Run.objects.update(pinned=True)
        return result

    with connection.execute_wrapper(pin_after_selection):
        assert retention.prune().runs == []
    assert selected
    assert left() == {old.pk: 2}


class TestCommand:
    def test_a_dry_run_lists_what_it_would_delete(self, settings: Any) -> None:
        keep(settings, raw=10, runs=100)
        gone, raw = aged(101), aged(11)
        text = command("--dry-run")
        assert "keeps runs for 100 days" in text
        assert f"Would delete 1 run ({gone.pk})." in text
        assert f"Would delete 2 raw blocks of 1 more run ({raw.pk})." in text
        assert left() == {gone.pk: 2, raw.pk: 2}
        assert f"Deleted 1 run ({gone.pk})." in command()
        assert left() == {raw.pk: 0}

    def test_a_single_day_is_one(self, settings: Any) -> None:
        keep(settings, raw=1, runs=100)
        assert "keeps raw blocks for 1 day." in command("--dry-run")

    def test_by_default_only_raw_blocks_are_deleted(self) -> None:
        run = aged(365)
        text = command()
        assert "keeps runs forever" in text
        assert "keeps raw blocks for 90 days" in text
        assert left() == {run.pk: 0}

    def test_a_page_without_raw_blocks(self, settings: Any, client: Any, admin_client: Any) -> None:
        run = aged(365)
        command()
        assert "Throughput" in admin_client.get(f"/admin/pgperf/run/{run.pk}/change/").content.decode()

    def test_the_database_option_needs_fixtures(self) -> None:
        with pytest.raises(CommandError, match="--fixtures"):
            command("--database", "demo")
