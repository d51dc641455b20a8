"""The pages of schedules: who owns what they save, what they refuse, and what the list says."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pgperf.admin.schedules import ScheduleForm
from pgperf.models import Benchmark, Database, Run, Schedule
from pgperf.runs import state
from pgperf.schedules import start_due
from tests import factories
from tests.admin.conftest import VIEW
from tests.admin.users import staff_client
from tests.concurrency import at_once

pytestmark = pytest.mark.django_db
SCHEDULES = ("add_schedule", "change_schedule", "delete_schedule")
ADD = "admin:pgperf_schedule_add"


@pytest.fixture
def ada() -> Client:
    return staff_client("ada", *VIEW, *SCHEDULES, "start_run")


def filled(**fields: Any) -> dict[str, Any]:
    """The form as a browser sends it; the rows are made where they are not there."""
    benchmark = Benchmark.objects.filter(name="orm-overhead").first() or factories.make_benchmark()
    database = Database.objects.filter(name="demo").first() or factories.make_database()
    values = {
        "benchmark": benchmark.pk,
        "database": database.pk,
        "at": "02:30",
        "every_hours": 24,
        "enabled": "on",
    }
    return {**values, "confirm_name": "", **fields}


def change(schedule: Schedule) -> str:
    return reverse("admin:pgperf_schedule_change", args=[schedule.pk])


def errors(response: Any) -> str:
    assert response.status_code == 200
    return str(response.context["adminform"].form.errors)


def test_it_belongs_to_the_user_who_adds_it(ada: Client) -> None:
    response = ada.post(reverse(ADD), filled(days=["mon", "fri"]))
    assert response.status_code == 302
    schedule = Schedule.objects.get()
    assert schedule.owner == User.objects.get(username="ada")
    assert schedule.days == ["mon", "fri"]
    assert schedule.due_at
    assert schedule.due_at > timezone.now()


def test_a_change_makes_it_the_users_own_and_is_logged(ada: Client) -> None:
    boss = User.objects.create_superuser("boss")
    schedule = factories.make_schedule(owner=boss, confirmed_name="demo")
    assert ada.post(change(schedule), filled(at="04:00")).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.owner, schedule.confirmed_name) == (User.objects.get(username="ada"), "")
    texts = [entry.get_change_message() for entry in LogEntry.objects.all()]
    assert any("Runs as ada instead of boss." in text for text in texts)


def test_of_a_double_click_one_schedule_is_made(ada: Client) -> None:
    assert ada.post(reverse(ADD), filled(days=["mon"])).status_code == 302
    assert "the same runs at the same times" in errors(ada.post(reverse(ADD), filled(days=["mon"])))
    assert Schedule.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_clicks_at_once_one_schedule_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have come as far as the check for an equal schedule before either has stored its own."""
    barrier, data = threading.Barrier(2), filled()
    monkeypatch.setattr(ScheduleForm, "_check_definition", lambda *_given: barrier.wait(30))
    clients = [staff_client(name, *VIEW, *SCHEDULES, "start_run") for name in ("ada", "bob")]
    answers = at_once(2, lambda: clients.pop().post(reverse(ADD), data))
    told = {each.status_code: each.content.decode() for each in answers}
    assert sorted(told) == [200, 302]
    assert "the same runs at the same times" in told[200]
    assert Schedule.objects.count() == 1


@pytest.mark.parametrize(
    "other",
    [{"days": ["tue"]}, {"days": []}, {"at": "02:31"}, {"every_hours": 12}, {"quick": "on"}, {"enabled": ""}],
)
def test_a_schedule_that_differs_is_no_double(ada: Client, other: dict[str, Any]) -> None:
    for fields in ({"days": ["mon"]}, {"days": ["mon"], **other}):
        assert ada.post(reverse(ADD), filled(**fields)).status_code == 302
    assert Schedule.objects.count() == 2


def test_beside_a_disabled_schedule_an_equal_one_may_be_made(ada: Client) -> None:
    ada.post(reverse(ADD), filled())
    Schedule.objects.update(enabled=False)
    assert ada.post(reverse(ADD), filled()).status_code == 302


def test_a_save_keeps_what_came_of_a_time_since_the_form_was_read(
    ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = factories.make_schedule(owner=User.objects.get(username="ada"))
    moment = timezone.now().replace(microsecond=0)
    clean = ScheduleForm.clean

    def start_meanwhile(form: ScheduleForm) -> dict[str, Any]:
        Schedule.objects.update(outcome="skipped", reason="pgperf was paused.", last_due_at=moment)
        return clean(form)

    monkeypatch.setattr(ScheduleForm, "clean", start_meanwhile)
    assert ada.post(change(schedule), filled(at="04:00")).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.outcome, schedule.reason) == ("skipped", "pgperf was paused.")
    assert (schedule.last_due_at, str(schedule.at)) == (moment, "04:00:00")


@pytest.mark.parametrize("granted", [(), ("view_benchmark",), ("change_benchmark",), ("start_run",), VIEW])
@pytest.mark.parametrize("starts", [(), ("start_run",)])
def test_whoever_can_save_a_schedule_may_start_its_runs(
    granted: tuple[str, ...], starts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state.broker, "send", lambda run_id, queue: None)
    client = staff_client("eve", *SCHEDULES, *granted, *starts)
    answer = client.post(reverse(ADD), filled())
    assert answer.status_code in (302, 403)
    moment = (timezone.now() - timedelta(minutes=5)).replace(second=0, microsecond=0)
    Schedule.objects.update(due_at=moment, at=timezone.localtime(moment).time())
    handled = start_due()
    assert len(handled) == (answer.status_code == 302)
    assert [each.reason for each in handled if each.outcome != Schedule.Outcome.STARTED] == []


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({}, True),
        ({"quick": "on"}, True),
        ({"days": ["mon"]}, False),
        ({"every_hours": 12}, False),
        ({"at": "02:31"}, False),
    ],
)
def test_a_run_that_is_due_outlives_a_save_of_the_same_times(
    ada: Client, fields: dict[str, Any], stays: bool
) -> None:
    moment = (timezone.now() - timedelta(minutes=5)).replace(second=0, microsecond=0)
    local = timezone.localtime(moment)
    schedule = factories.make_schedule(due_at=moment, at=local.time())
    answer = ada.post(change(schedule), filled(**{"at": f"{local:%H:%M}", **fields}))
    assert answer.status_code == 302
    schedule.refresh_from_db()
    assert (schedule.due_at == moment) is stays


def test_switched_off_it_has_no_next_time(ada: Client) -> None:
    schedule = factories.make_schedule(due_at=timezone.now())
    data = filled()
    del data["enabled"]
    assert ada.post(change(schedule), data).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.due_at) == (False, None)


@pytest.mark.parametrize(("typed", "right"), [("live", True), ("", False), ("Live", False), ("demo", False)])
def test_a_production_database_needs_its_name(ada: Client, typed: str, right: bool) -> None:
    live = factories.make_database("live", production=True)
    response = ada.post(reverse(ADD), filled(database=live.pk, confirm_name=typed))
    if right:
        assert Schedule.objects.get().confirmed_name == "live"
    else:
        assert "live is in production" in errors(response)
        assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("at", "25:00", "Enter a valid time"),
        ("at", "02:30:15", "Enter hours and minutes only"),
        ("every_hours", "5", "not one of the available choices"),
        ("days", ["someday"], "not one of the available choices"),
        ("benchmark", "987654", "not one of the available choices"),
    ],
)
def test_wrong_values_are_answered_at_their_field(ada: Client, field: str, value: Any, why: str) -> None:
    assert why in errors(ada.post(reverse(ADD), filled(**{field: value})))


def test_a_benchmark_that_cannot_run_is_refused(ada: Client) -> None:
    data = filled()
    Benchmark.objects.update(layers=["no-such-layer"])
    assert "layers" in errors(ada.post(reverse(ADD), data))


def test_a_hidden_row_cannot_be_chosen(ada: Client) -> None:
    hidden = factories.make_database("hushed", restricted=True)
    assert "hushed" not in ada.get(reverse(ADD)).content.decode()
    assert "not one of the available choices" in errors(ada.post(reverse(ADD), filled(database=hidden.pk)))


@pytest.mark.parametrize("lacking", ["start_run", "change_schedule"])
def test_without_the_permissions_the_page_only_shows_it(lacking: str) -> None:
    schedule = factories.make_schedule(days=["mon", "tue", "wed"])
    viewer = staff_client("eve", *({*VIEW, *SCHEDULES, "start_run"} - {lacking}))
    shown = viewer.get(change(schedule)).content.decode()
    assert "Mon to Wed at 02:30, full" in shown
    assert 'name="at"' not in shown
    assert viewer.post(change(schedule), filled()).status_code == 403
    may_add = viewer.get(reverse(ADD)).status_code == 200
    assert may_add == (lacking != "start_run")


def test_the_list_says_what_came_of_the_last_time(ada: Client) -> None:
    schedule = factories.make_schedule(outcome="refused", reason="Its owner was deleted.", every_hours=6)
    run = factories.make_run(schedule=schedule)
    shown = ada.get(reverse("admin:pgperf_schedule_changelist")).content.decode()
    assert "refused: Its owner was deleted." in shown
    assert "every day at 02:30, 08:30, 14:30, 20:30, full" in shown
    assert reverse("admin:pgperf_run_change", args=[run.pk]) in shown


def test_the_list_and_the_form_say_what_the_outcomes_mean(ada: Client) -> None:
    schedule = factories.make_schedule()
    for page in (reverse("admin:pgperf_schedule_changelist"), change(schedule)):
        shown = ada.get(page).content.decode()
        assert "Skipped: pgperf was paused" in shown
        assert "Refused: the owner may not start the run" in shown


def test_the_form_names_the_time_zone(ada: Client, settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    shown = ada.get(reverse(ADD)).content.decode()
    assert "by the clocks of Asia/Tokyo (the setting TIME_ZONE)" in shown


def test_the_list_says_which_schedules_are_disabled(ada: Client) -> None:
    address = reverse("admin:pgperf_schedule_changelist")
    cell = '<td class="field-next_due">disabled</td>'
    schedule = factories.make_schedule()
    assert cell not in ada.get(address).content.decode()
    Schedule.objects.filter(pk=schedule.pk).update(enabled=False)
    assert cell in ada.get(address).content.decode()


def test_the_run_of_a_dead_worker_is_shown_as_lost(ada: Client) -> None:
    schedule = factories.make_schedule()
    old = timezone.now().replace(year=2020)
    factories.make_run(Run.Status.RUNNING, schedule=schedule, heartbeat_at=old)
    for page in (reverse("admin:pgperf_schedule_changelist"), change(schedule)):
        assert '<span class="pgperf-badge lost">lost</span>' in ada.get(page).content.decode()


def test_the_list_shows_no_run_that_the_user_may_not_see(ada: Client) -> None:
    schedule = factories.make_schedule()
    run = factories.make_run(schedule=schedule, restricted=True)
    assert f"Run {run.pk}" not in ada.get(reverse("admin:pgperf_schedule_changelist")).content.decode()
    plain = factories.make_run(schedule=schedule)
    blind = staff_client("eve", *({*VIEW} - {"view_run"}))
    assert f"Run {plain.pk}" not in blind.get(reverse("admin:pgperf_schedule_changelist")).content.decode()


def test_many_schedules_take_as_many_queries_as_few(ada: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert ada.get(reverse("admin:pgperf_schedule_changelist")).status_code == 200
        return len(asked)

    owner = User.objects.create_user("owner")
    for number in range(2):
        factories.make_run(schedule=factories.make_schedule(owner=owner, at=f"0{number}:00"))
    queries()  # content types
    few = queries()
    for number in range(2, 9):
        factories.make_run(schedule=factories.make_schedule(owner=owner, at=f"0{number}:00"))
    assert queries() == few


def test_a_run_says_which_schedule_started_it(ada: Client) -> None:
    schedule = factories.make_schedule()
    run = factories.make_run(Run.Status.QUEUED, schedule=schedule, scheduled_for=timezone.now())
    page = reverse("admin:pgperf_run_change", args=[run.pk])
    assert change(schedule) in ada.get(page).content.decode()
    blind = staff_client("eve", "view_run").get(page).content.decode()
    assert change(schedule) not in blind
    assert "a schedule" in blind
    schedule.delete()
    assert "a schedule" in ada.get(page).content.decode()


def test_a_benchmark_offers_to_schedule_it(ada: Client) -> None:
    benchmark = factories.make_benchmark(database=factories.make_database())
    page = reverse("admin:pgperf_benchmark_change", args=[benchmark.pk])
    address = f"{reverse(ADD)}?benchmark={benchmark.pk}&amp;database={benchmark.database_id}"
    assert address in ada.get(page).content.decode()
    assert reverse(ADD) not in staff_client("eve", *VIEW, "start_run").get(page).content.decode()


@pytest.mark.parametrize("may", [True, False])
def test_deleting_a_benchmark_needs_the_permission_to_delete_its_schedules(may: bool) -> None:
    """The page names the schedule by its number only: its database may be hidden."""
    hidden = factories.make_database("hushed", restricted=True)
    benchmark = factories.make_benchmark()
    schedule = factories.make_schedule(benchmark=benchmark, database=hidden)
    client = staff_client("eve", *VIEW, "delete_benchmark", *(["delete_schedule"] if may else []))
    page = reverse("admin:pgperf_benchmark_delete", args=[benchmark.pk])
    shown = client.get(page).content.decode()
    assert "hushed" not in shown
    assert client.post(page, {"post": "yes"}).status_code == (302 if may else 403)
    assert Schedule.objects.filter(pk=schedule.pk).exists() != may


def test_a_member_sees_it_and_another_user_does_not(ada: Client) -> None:
    schedule = factories.make_schedule()
    group = Group.objects.create(name="insiders")
    schedule.database.groups.add(group)
    assert ada.get(change(schedule)).status_code == 302
    User.objects.get(username="ada").groups.add(group)
    assert ada.get(change(schedule)).status_code == 200
