"""The pause: nothing starts, what runs ends, and queued runs start when it is over."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from pgperf.core.exceptions import RunConflict, RunWaits
from pgperf.models import Pause, Run
from pgperf.runs import pause, state
from pgperf.worker import execution
from tests import factories
from tests.runner.builders import definition

Status = Run.Status
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]
Commit = Callable[..., Any]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs whose message was sent."""
    found: list[int] = []
    monkeypatch.setattr(state.broker, "send", lambda run_id, queue: found.append(run_id))
    return found


@pytest.fixture
def commit(django_capture_on_commit_callbacks: Commit) -> Commit:
    return lambda: django_capture_on_commit_callbacks(execute=True)


def queued(**fields: Any) -> Run:
    return factories.make_run(Status.QUEUED, queue="pgperf", busy_key=None, **fields)


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "pause", *words, stdout=out)
    return out.getvalue()


def test_a_request_is_kept_and_sent_when_the_pause_ends(sent: list[int], commit: Commit) -> None:
    pause.begin("ada")
    with commit():
        run = state.request(factories.make_benchmark(), factories.make_database())
    run.refresh_from_db()
    assert (run.status, sent) == (Status.QUEUED, [])
    assert run.message.startswith("pgperf is paused")
    state.reconcile(arriving=True)
    assert sent == []
    with commit():
        pause.end()
    assert sent == [run.pk]


def test_a_message_under_way_starts_nothing(sent: list[int]) -> None:
    run = queued()
    pause.begin("ada")
    with pytest.raises(RunWaits, match="paused"):
        state.claim(run.pk, "w@h")
    run.refresh_from_db()
    assert (run.status, run.attempt, run.sent_at) == (Status.QUEUED, 0, None)
    pause.end()
    assert state.claim(run.pk, "w@h").status == Status.RUNNING


def test_a_running_run_ends_with_the_name_and_keeps_its_blocks(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 0.001}
    database = factories.make_database(credential="alias:default")
    database.targets.filter(route="tcp").update(route="here")
    run = queued(database=database, definition=definition(blocks=3, rounds=2).to_json())

    class Switch:
        def progress(self, share: float, message: str) -> None:
            if share >= 0.5 and not Pause.objects.exists():
                pause.begin("ada")

    ended = execution.perform(run.pk, "w@h", Switch())
    assert (ended.status, ended.error) == (Status.CANCELLED, "Ended because ada paused pgperf.")
    assert ended.blocks.exists()


def test_a_pause_that_is_over_at_once_ends_what_ran() -> None:
    """A run asks every few seconds only."""
    run = state.claim(queued().pk, "w@h")
    pause.begin("ada")
    pause.end()
    assert state.is_cancelling(run)


def test_it_is_switched_once() -> None:
    with pytest.raises(RunConflict, match="not paused"):
        pause.end()
    pause.begin("ada", "migration")
    with pytest.raises(RunConflict, match="paused already"):
        pause.begin("bob")
    found = Pause.objects.get()
    assert (found.by, found.reason) == ("ada", "migration")


def test_the_command_counts_what_runs(sent: list[int]) -> None:
    assert "; no run was running." in command()
    pause.end()
    state.claim(queued().pk, "w@h")
    assert "; 1 running run is being cancelled." in command()


def test_the_command(sent: list[int]) -> None:
    assert "Resume: pgperf pause --off" in command("--reason", "migration")
    assert Pause.objects.get().by.endswith("on the command line")
    with pytest.raises(CommandError, match="paused already"):
        command()
    assert command("--off") == "Runs may start again.\n"
    with pytest.raises(CommandError, match="not paused"):
        command("--off")


class TestAdmin:
    @pytest.fixture
    def operator(self) -> User:
        user = User.objects.create_user("ada", is_staff=True)
        names = ["add_pause", "delete_pause", "view_pause", "view_run", "view_benchmark", "start_run"]
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        return user

    def test_adding_pauses_and_deleting_resumes_with_history(self, operator: User, client: Client) -> None:
        client.force_login(operator)
        assert client.post(reverse("admin:pgperf_pause_add"), {"reason": "migration"}).status_code == 302
        found = Pause.objects.get()
        assert (found.by, found.reason) == ("ada", "migration")
        assert client.get(reverse("admin:pgperf_pause_add")).status_code == 302
        client.post(reverse("admin:pgperf_pause_delete", args=[found.pk]), {"post": "yes"})
        assert not Pause.objects.exists()
        history = LogEntry.objects.filter(content_type__model="pause").order_by("pk")
        assert [(entry.user.username, entry.action_flag) for entry in history] == [("ada", 1), ("ada", 3)]

    def test_the_pages_say_who_paused(self, operator: User, client: Client) -> None:
        client.force_login(operator)
        benchmark = factories.make_benchmark()
        factories.make_database()
        pages = [
            reverse("admin:pgperf_run_changelist"),
            reverse("admin:pgperf_benchmark_run", args=[benchmark.pk]),
        ]
        assert not any("paused pgperf" in client.get(page).content.decode() for page in pages)
        pause.begin("ada", "<b>migration</b>")
        for page in pages:
            text = client.get(page).content.decode()
            assert "ada paused pgperf" in text
            assert "&lt;b&gt;migration" in text
