"""Runs whose load is made by load hosts: two real Celery workers on this machine."""

import pytest

from example.stack.part import Part
from pgperf.models import Database, LoadShare, Run
from pgperf.runner import slice_length
from pgperf.runner.rate_search import RateSearch
from pgperf.runs import store
from pgperf.worker import execution
from tests.busy_machine import too_busy
from tests.load.conftest import LATE, WORST_ERROR_US, ask

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_load_hosts_make_the_load_together(load_hosts: dict[str, Part], database: Database) -> None:
    """Beside the owner's own clients, as variants of one run, with a diagnostic slice of each."""
    run = execution.perform(ask(database, load_hosts=[0, 2], diagnostic_ms=1000).pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    rows = {row.label: row for row in run.variants.all()}
    assert set(rows) == {
        f"libpq · tcp · 4 clients{hosts}{control}"
        for hosts in ("", " · 2 load hosts")
        for control in ("", " · control 1")
    }
    blocks = store.load_blocks(run)
    late = {block.variant.label for block in blocks for piece in block.slices if piece.disturbed == LATE}
    own, hosted = rows["libpq · tcp · 4 clients"], rows["libpq · tcp · 4 clients · 2 load hosts"]
    assert (own.hosts, hosted.hosts) == (0, 2)
    for row in (own, hosted):
        record = row.record
        assert row.ops > 100
        assert record.diagnostics
        backends = record.diagnostics.backends
        assert backends == pytest.approx(4) or (backends is None and too_busy(record.diagnostics.notes))
        assert record.verdict
        assert record.verdict.checks.little.holds or row.label in late, row.label
        assert record.cpu_us_per_op.client
        assert record.cpu_us_per_op.server
        assert record.cpu_account
        assert record.cpu_account.cpus == own.record.cpu_account.cpus, "one machine counts once"
    compared = {(each.variant.label, each.baseline.label) for each in run.comparisons.all()}
    assert (hosted.label, own.label) in compared
    for block in blocks:
        for piece in block.slices:
            assert piece.disturbed in ("", LATE)
            # A client of a busy machine ends its lead-in inside the window, and shortens it by that.
            least = 0 if piece.disturbed else 450_000_000
            assert least < piece.window_ns <= 500_000_000
    facts = run.environment["load_hosts"]
    workers = {name: host["worker"].split("@")[0] for name, host in facts["hosts"].items()}
    assert workers == {"a": "pgperf-load-a", "b": "pgperf-load-b"}
    for clock in facts["clocks"].values():  # it is the same clock in truth
        assert abs(clock["offset_ms"]) * 1000 <= clock["error_us"] < WORST_ERROR_US
    assert facts["start_skew_us"] > 0
    assert not LoadShare.objects.exists()


def test_one_client_on_one_load_host(load_hosts: dict[str, Part], database: Database) -> None:
    """It is the first of two, with the same connection."""
    run = execution.perform(ask(database, clients=[1, 2], load_hosts=[1], diagnostic_ms=100).pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert run.environment["load_hosts"]["start_skew_us"] is None
    for row in run.variants.all():
        assert row.record.diagnostics
        assert "no session of this variant" not in str(row.record.diagnostics.notes)
        assert row.record.cpu_us_per_op.server


def test_the_servers_time_is_known_of_slices_by_count(
    load_hosts: dict[str, Part], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows when such a slice ends before its clients have said so."""
    monkeypatch.setattr(slice_length, "WINDOW_MAX_NS", 1_000_000)  # so that operations are too slow for it
    run = execution.perform(ask(database, clients=[1], load_hosts=[0, 1], slice_ms=0).pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    pieces = [piece for block in store.load_blocks(run) for piece in block.slices]
    assert len({piece.window_ns for piece in pieces}) > 1
    own, hosted = (
        row.record.cpu_us_per_op.server for row in run.variants.filter(control=0).order_by("hosts")
    )
    assert own
    assert hosted
    assert own / 3 < hosted < own * 3


def test_a_search_knows_the_capacity_of_its_block_before_its_first_rate(
    load_hosts: dict[str, Part], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slices of a round are ordered together, but not those whose rates follow from others."""
    known, next_rate = [], RateSearch.next_rate

    def noted(search: RateSearch) -> float:
        known.append(len(search._reached))
        return next_rate(search)

    monkeypatch.setattr(RateSearch, "next_rate", noted)
    run = execution.perform(ask(database, rate_search_ms=10.0).pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert known
    assert min(known) > 0


def test_an_open_loop_keeps_its_rate_over_all_hosts(load_hosts: dict[str, Part], database: Database) -> None:
    run = execution.perform(ask(database, rates=[200.0], layers=["psycopg"]).pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    (row,) = run.variants.filter(control=0)
    found = row.record.open_loop
    assert found
    assert found.skipped == 0
    assert found.due == pytest.approx(
        200 * 0.5 * 4, rel=0.25
    )  # two blocks of two rounds, by a Poisson process
    assert row.ops == pytest.approx(found.due, rel=0.2)


class TestRefusals:
    def failure(self, database: Database, **more: object) -> str:
        run = execution.perform(ask(database, **more).pk, "owner@here")
        assert run.status == Run.Status.FAILED
        assert not LoadShare.objects.exists()
        return str(run.error)

    def test_a_run_names_the_host_that_is_not_there(self, database: Database) -> None:
        error = self.failure(database, load_host_names=["y", "z"])
        assert "load host y: it is not there: start a worker on queue pgperf-load-y" in error

    def test_too_few_hosts(self, load_hosts: dict[str, Part], database: Database) -> None:
        assert "2 of 3 load hosts are free" in self.failure(database, load_hosts=[3])

    def test_a_host_works_for_one_run_at_a_time(
        self, load_hosts: dict[str, Part], database: Database
    ) -> None:
        other = Run.objects.get(pk=ask(database).pk)
        Run.objects.filter(pk=other.pk).update(status=Run.Status.RUNNING, attempt=1)
        queue = "pgperf-load-b"
        LoadShare.objects.create(run=other, attempt=1, queue=queue, busy_queue=queue, name="b")
        run = execution.perform(ask(database).pk, "owner@here")
        assert "1 of 2 load hosts are free" in run.error
        run = execution.perform(ask(database, load_host_names=["a", "b"]).pk, "owner@here")
        assert "load host b: it works for another run" in run.error
        assert LoadShare.objects.count() == 1

    def test_a_window_that_is_too_short_for_the_clocks(
        self, load_hosts: dict[str, Part], database: Database
    ) -> None:
        error = self.failure(database, slice_ms=10)
        assert "its clock is known to ±" in error
        assert "a window of 10 ms allows 0.10 ms; choose a longer slice_ms" in error
