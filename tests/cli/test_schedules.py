"""`pgperf schedules` and `pgperf due`."""

import io
import json
from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from pgperf import schedules, tasks
from pgperf.models import Run, Schedule
from pgperf.reports.schedules import times
from pgperf.runs import dates
from tests import factories

pytestmark = pytest.mark.django_db


def pgperf(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def due() -> Schedule:
    moment = (timezone.now() - timedelta(minutes=5)).replace(second=0, microsecond=0)
    at = moment.astimezone(schedules.zone()).time()
    return factories.make_schedule(owner=User.objects.create_superuser("boss"), at=at, due_at=moment)


def test_due_says_what_it_started(due: Schedule) -> None:
    shown = pgperf("due")
    assert shown == f"schedule {due.pk} (orm-overhead on demo): started as run {Run.objects.get().pk}.\n"
    assert pgperf("due") == "Nothing is due.\n"


def test_quiet_says_only_what_did_not_start(due: Schedule) -> None:
    assert pgperf("due", "--quiet") == ""
    run = Run.objects.get()
    Schedule.objects.update(due_at=due.due_at)
    shown = pgperf("due", "--quiet")
    assert shown.startswith(
        f"schedule {due.pk} (orm-overhead on demo): skipped. Run {run.pk} of this schedule was"
    )


def test_the_task_starts_what_is_due(due: Schedule) -> None:
    tasks.due()
    assert Run.objects.get().schedule == due


def test_the_list(due: Schedule) -> None:
    factories.make_schedule(enabled=False, outcome="refused", reason="Its owner was deleted.", quick=True)
    shown = pgperf("schedules").splitlines()
    assert shown[0] == "Schedules"
    assert "boss" in shown[2]
    assert due.due_at
    assert dates.moment(due.due_at).replace("\u00a0", " ") in shown[2]
    for part in (
        "orm-overhead, quick",
        "every day at 02:30",
        "deleted",
        "off",
        "refused: Its owner was deleted.",
    ):
        assert part in shown[3]


def test_the_list_as_json(due: Schedule) -> None:
    factories.make_schedule(days=["sat", "sun"], every_hours=12)
    first, second = json.loads(pgperf("schedules", "--json"))
    assert (first["owner"], first["next_due"], first["outcome"]) == ("boss", due.due_at.isoformat(), None)  # type: ignore[union-attr]
    assert (second["days"], second["times"], second["owner"]) == (["sat", "sun"], ["02:30", "14:30"], None)


def test_without_schedules() -> None:
    assert pgperf("schedules") == "Schedules: none. Add one in the admin.\n"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "every day at 02:30"),
        ({"days": ["mon", "tue", "wed", "thu", "fri"]}, "Mon to Fri at 02:30"),
        ({"days": ["fri", "mon"]}, "Mon, Fri at 02:30"),
        ({"days": ["sat", "sun"]}, "Sat, Sun at 02:30"),
        ({"days": ["mon", "tue", "thu"]}, "Mon, Tue, Thu at 02:30"),
        ({"every_hours": 8}, "every day at 02:30, 10:30, 18:30"),
        ({"every_hours": 1}, "every day, every hour from 00:30"),
        ({"every_hours": 2, "at": time(9, 5)}, "every day, every 2 hours from 01:05"),
    ],
)
def test_times_in_words(fields: dict[str, Any], words: str) -> None:
    assert times(factories.make_schedule(**fields)) == words
