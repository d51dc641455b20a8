"""Schedules: what is due starts once, as its owner, or says why it did not."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.db import DataError, InterfaceError, OperationalError, connection
from django.utils import timezone

from pgperf import schedules
from pgperf.access import permissions
from pgperf.models import Benchmark, Database, Run, Schedule
from pgperf.runs import pause, state
from tests import factories
from tests.concurrency import at_once

Outcome = Schedule.Outcome
pytestmark = pytest.mark.django_db
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs whose messages were sent."""
    messages: list[int] = []
    monkeypatch.setattr(state.broker, "send", lambda run_id, queue: messages.append(run_id))
    return messages


@pytest.fixture
def owner(db: None) -> User:
    made = User.objects.create_user("ada")
    made.user_permissions.set(Permission.objects.filter(codename__in=("start_run", "view_benchmark")))
    return made


def due(owner: User | None, ago: timedelta = 5 * MINUTE, **fields: Any) -> Schedule:
    """A schedule whose time of every day was that long ago, and that nothing has looked at since."""
    moment = (timezone.now() - ago).replace(second=0, microsecond=0)
    local = moment.astimezone(schedules.zone())
    return factories.make_schedule(owner=owner, at=local.time(), **{"due_at": moment, **fields})


def reread(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def start(schedule: Schedule) -> Schedule:
    """The schedule after a look for what is due."""
    schedules.start_due()
    return reread(schedule)


def test_what_is_due_starts_as_its_owner(owner: User) -> None:
    schedule = due(owner, quick=True)
    (handled,) = schedules.start_due()
    run = Run.objects.get()
    assert (handled.outcome, handled.run, handled.reason) == (Outcome.STARTED, run, "")
    assert (run.requested_by, run.by_user, run.quick) == (owner, True, True)
    assert (run.schedule, run.scheduled_for) == (schedule, schedule.due_at)
    assert (run.benchmark, run.database) == (schedule.benchmark, schedule.database)
    found = reread(schedule)
    assert (found.outcome, found.last_due_at, found.reason) == (Outcome.STARTED, schedule.due_at, "")
    assert schedules.start_due() == []


def test_the_next_time_is_planned(owner: User) -> None:
    schedule = due(owner)
    found = start(schedule)
    assert schedule.due_at
    assert found.due_at
    assert found.due_at > timezone.now()
    assert timedelta(hours=22) < found.due_at - schedule.due_at < timedelta(hours=26)  # clocks may change


def test_the_history_of_the_run_names_the_schedule(owner: User) -> None:
    schedule = due(owner)
    schedules.start_due()
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (owner, str(Run.objects.get().pk))
    assert f"Requested by schedule {schedule.pk}" in entry.get_change_message()


def test_the_message_is_sent(
    owner: User, sent: list[int], django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    due(owner)
    with django_capture_on_commit_callbacks(execute=True):
        schedules.start_due()
        assert sent == []
    assert sent == [Run.objects.get().pk]


@pytest.mark.parametrize("fields", [{"enabled": False}, {"due_at": None}, {"due_at": timezone.now() + DAY}])
def test_what_is_off_new_or_not_due_does_not_start(owner: User, fields: dict[str, Any]) -> None:
    schedule = due(owner, **fields)
    assert schedules.start_due() == []
    assert not Run.objects.exists()
    assert (reread(schedule).due_at is None) == (not schedule.enabled and schedule.due_at is None)


def test_times_that_were_changed_are_planned_anew(owner: User) -> None:
    """In a shell, say: the old due time is none of the new ones."""
    schedule = due(owner)
    assert schedule.due_at
    later = (schedule.due_at + timedelta(hours=3)).astimezone(schedules.zone())
    Schedule.objects.update(at=later.time())
    found = start(schedule)
    assert not Run.objects.exists()
    assert found.due_at
    assert found.due_at > timezone.now()


def test_a_save_of_the_same_times_keeps_what_is_due(owner: User) -> None:
    schedule = due(owner)
    moment = schedule.due_at
    schedules.plan(schedule, same_times=True)
    assert schedule.due_at == reread(schedule).due_at == moment
    assert [each.outcome for each in schedules.start_due()] == [Outcome.STARTED]
    schedules.plan(schedule, same_times=True)
    assert schedule.due_at
    assert schedule.due_at > timezone.now()


@pytest.mark.parametrize("fields", [{}, {"enabled": False}])
def test_a_save_of_other_times_plans_the_next(owner: User, fields: dict[str, Any]) -> None:
    schedule = due(owner, **fields)
    schedules.plan(schedule)
    assert schedule.due_at is None if fields else schedule.due_at and schedule.due_at > timezone.now()


# Once


@pytest.mark.django_db(transaction=True)
def test_twenty_processes_at_once_start_one_run(owner: User, sent: list[int]) -> None:
    due(owner)
    other = due(owner, quick=True)
    found = [each for handled in at_once(20, schedules.start_due) for each in handled]
    assert [each.outcome for each in found] == [Outcome.STARTED, Outcome.STARTED]
    assert Run.objects.count() == 2
    assert sorted(sent) == sorted(Run.objects.values_list("pk", flat=True))
    assert Run.objects.filter(schedule=other).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_process_that_read_the_row_before_another_started_it(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two look at the same second; the second one decides after the first has committed."""
    due(owner)
    stale = schedules._due()
    assert [each.outcome for each in schedules.start_due()] == [Outcome.STARTED]
    monkeypatch.setattr(schedules, "_due", lambda: stale)
    assert schedules.start_due() == []
    assert Run.objects.count() == 1


@pytest.mark.parametrize("use_tz", [True, False])
def test_processes_at_once_on_sqlite(use_tz: bool, tmp_path: Path) -> None:
    script = Path(__file__).parent / "schedule_race.py"
    own = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "site.sqlite3"),
        "OPTIONS": {"timeout": 60},
    }
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(own), json.dumps(use_tz)],
        cwd=script.parent.parent,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.stderr, done.stdout) == ("", "1 of 12 started 1 run; again 0; next in future\n")


@pytest.mark.parametrize("status", [Run.Status.QUEUED, Run.Status.RUNNING])
def test_a_run_that_is_still_active_is_not_doubled(owner: User, status: str) -> None:
    schedule = due(owner)
    run = factories.make_run(status, schedule=schedule, queue="pgperf")
    found = start(schedule)
    assert (Run.objects.count(), found.outcome) == (1, Outcome.SKIPPED)
    assert found.reason == f"Run {run.pk} of this schedule was still {run.get_status_display()}."


def test_a_run_whose_worker_was_killed_does_not_block(owner: User) -> None:
    schedule = due(owner)
    dead = timezone.now() - timedelta(minutes=10)
    factories.make_run(Run.Status.RUNNING, schedule=schedule, heartbeat_at=dead)
    assert start(schedule).outcome == Outcome.STARTED


# After downtime


def test_of_missed_times_the_last_one_starts_within_the_grace(owner: User) -> None:
    schedule = due(owner, due_at=None)
    last = (timezone.now() - 5 * MINUTE).replace(second=0, microsecond=0)
    Schedule.objects.update(due_at=last - 40 * DAY)
    found = start(schedule)
    assert Run.objects.count() == 1
    assert found.outcome == Outcome.STARTED
    assert found.last_due_at
    assert abs(found.last_due_at - last) <= timedelta(hours=2)  # clocks may have changed since
    assert "were skipped: nothing looked for due schedules" in found.reason


def test_what_is_too_late_is_skipped(owner: User) -> None:
    schedule = due(owner, schedules.GRACE + 3 * MINUTE)
    found = start(schedule)
    assert (Run.objects.count(), found.outcome) == (0, Outcome.SKIPPED)
    assert found.reason == "Nothing looked for due schedules within 30 minutes after the time."
    assert schedules.start_due() == []


def test_hours_of_downtime_start_one_run(owner: User) -> None:
    schedule = due(owner, every_hours=1)
    assert schedule.due_at
    Schedule.objects.update(due_at=schedule.due_at - timedelta(hours=30))
    start(schedule)
    schedules.start_due()
    assert Run.objects.count() == 1


# Permissions, asked again


def take_permission(codename: str) -> Callable[[Schedule], Any]:
    return lambda row: row.owner.user_permissions.remove(Permission.objects.get(codename=codename))  # type: ignore[union-attr]


def hide(model: type[Any]) -> Callable[[Schedule], Any]:
    return lambda row: model.objects.update(restricted=True)


REFUSALS: dict[str, tuple[Callable[[Schedule], Any], str]] = {
    "an inactive owner": (lambda row: User.objects.update(is_active=False), "Its owner may not start runs"),
    "no start_run": (take_permission("start_run"), "Its owner may not start runs any more."),
    "no view_benchmark": (
        take_permission("view_benchmark"),
        "Its owner may not start runs or view benchmarks",
    ),
    "a deleted owner": (lambda row: row.owner.delete(), "Its owner was deleted."),  # type: ignore[union-attr]
    "a hidden database": (hide(Database), "Its owner may not see database demo any more."),
    "a hidden benchmark": (hide(Benchmark), "Its owner may not see benchmark orm-overhead any more."),
    "production": (
        lambda row: Database.objects.update(production=True),
        "demo is in production: type its name",
    ),
    "no layer": (lambda row: Benchmark.objects.update(layers=["no-such-layer"]), "layers: "),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_an_owner_who_may_not_start_it_starts_nothing(what: str, owner: User) -> None:
    lose, why = REFUSALS[what]
    schedule = due(owner)
    lose(schedule)
    found = start(schedule)
    assert (Run.objects.count(), found.outcome) == (0, Outcome.REFUSED)
    assert why in found.reason
    assert found.due_at
    assert found.due_at > timezone.now()


def test_a_typed_name_starts_it_in_production_until_the_database_is_renamed(owner: User) -> None:
    Database.objects.all().delete()
    database = factories.make_database("live", production=True)
    schedule = due(owner, database=database, confirmed_name="live")
    assert start(schedule).outcome == Outcome.STARTED
    assert Run.objects.get().confirmed_name == "live"
    Run.objects.all().delete()
    Database.objects.update(name="other")
    Schedule.objects.update(due_at=schedule.due_at)
    assert start(schedule).outcome == Outcome.REFUSED


def test_a_member_starts_a_restricted_benchmark_and_its_run_is_restricted(owner: User) -> None:
    group = Group.objects.create(name="insiders")
    owner.groups.add(group)
    schedule = due(owner)
    schedule.benchmark.groups.add(group)
    assert start(schedule).outcome == Outcome.STARTED
    assert Run.objects.get().restricted


def test_a_pause_starts_nothing(owner: User) -> None:
    schedule = due(owner)
    pause.begin("bob")
    found = start(schedule)
    assert (Run.objects.count(), found.outcome, found.reason) == (0, Outcome.SKIPPED, "pgperf was paused.")


@pytest.mark.parametrize("error", [ZeroDivisionError, DataError])
def test_an_unexpected_error_stops_only_its_own_schedule(
    owner: User, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    broken, sound = due(owner), due(owner, quick=True)
    request = state.request

    def fail_once(*args: Any, quick: bool, **options: Any) -> Run:
        if not quick:
            raise error("secret")
        return request(*args, quick=quick, **options)

    monkeypatch.setattr(state, "request", fail_once)
    schedules.start_due()
    assert reread(sound).outcome == Outcome.STARTED
    found = reread(broken)
    assert (found.outcome, found.reason) == (Outcome.REFUSED, f"pgperf failed ({error.__name__}).")
    assert found.due_at == broken.due_at  # the next look tries again


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_down_ends_the_look(
    owner: User, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    schedule = due(owner)

    def fail(*_given: Any, **_options: Any) -> Run:
        raise error("gone")

    monkeypatch.setattr(state, "request", fail)
    with pytest.raises(error):
        schedules.start_due()
    assert reread(schedule).due_at == schedule.due_at  # the next look tries again


def test_times_that_no_form_accepts_stop_only_their_own_schedule(owner: User) -> None:
    broken, sound = due(owner), due(owner, quick=True)
    Schedule.objects.filter(pk=broken.pk).update(days=["Monday"], due_at=broken.due_at - timedelta(days=9))
    schedules.start_due()
    assert reread(sound).outcome == Outcome.STARTED
    assert reread(broken).reason == "pgperf failed (ValueError)."


def test_the_reason_of_a_failure_outlives_the_time_to_try_again(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = due(owner, 10 * MINUTE)
    with monkeypatch.context() as patched:
        patched.setattr(state, "request", lambda *_given, **_options: 1 / 0)
        schedules.start_due()
    monkeypatch.setattr(schedules, "GRACE", MINUTE)
    found = start(broken)
    assert (found.outcome, found.reason) == (Outcome.REFUSED, "pgperf failed (ZeroDivisionError).")
    assert found.due_at > timezone.now()
    assert not Run.objects.exists()


def test_times_at_which_pgperf_failed_were_not_left_alone(owner: User) -> None:
    first = timezone.now() - 3 * DAY
    found = start(due(owner, due_at=first, last_due_at=first + DAY))
    assert found.outcome == Outcome.STARTED
    assert "were skipped: pgperf failed." in found.reason


# Deletions


@pytest.mark.parametrize("gone", ["benchmark", "database", "schedule"])
def test_a_run_keeps_that_a_schedule_started_it(gone: str, owner: User) -> None:
    schedule = due(owner)
    schedules.start_due()
    (schedule if gone == "schedule" else getattr(schedule, gone)).delete()
    assert not Schedule.objects.exists()
    run = Run.objects.get()
    assert (run.schedule, run.scheduled_for) == (None, schedule.due_at)


def test_a_deleted_owner_leaves_the_schedule_to_the_next_who_saves_it(owner: User) -> None:
    schedule = due(owner)
    owner.delete()
    assert reread(schedule).owner is None


@pytest.mark.parametrize("model", [Benchmark, Database])
def test_a_schedule_is_hidden_with_its_rows(model: type[Any], owner: User) -> None:
    schedule = due(owner)
    assert permissions.may_see(owner, schedule)
    model.objects.update(restricted=True)
    assert not permissions.may_see(owner, schedule)
    assert permissions.may_see(User.objects.create_superuser("boss"), schedule)


def test_the_time_is_the_databases(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose clock is wrong starts nothing early or late."""
    schedule = due(owner)
    monkeypatch.setattr(timezone, "now", lambda: datetime(2001, 1, 1, tzinfo=schedules.zone()))
    assert start(schedule).outcome == Outcome.STARTED
    with connection.cursor() as cursor:
        cursor.execute("SELECT due_at > now() FROM pgperf_schedule WHERE id = %s", [schedule.pk])
        assert cursor.fetchone() == (True,)
