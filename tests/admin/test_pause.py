"""The pause's pages beyond its permissions."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from pgperf.models import Pause
from pgperf.runs import pause
from tests.admin.users import staff_client

pytestmark = pytest.mark.django_db


def test_of_two_who_pause_at_the_same_time_the_second_reads_so(admin_page: Client) -> None:
    assert admin_page.get(reverse("admin:pgperf_pause_add")).status_code == 200
    pause.begin("ada", "first")
    page = admin_page.post(reverse("admin:pgperf_pause_add"), {"reason": "second"}, follow=True)
    assert page.status_code == 200
    assert "Somebody else has paused pgperf already." in page.content.decode()
    assert Pause.objects.get().by == "ada"
    assert not LogEntry.objects.exists()


def test_who_is_paused_already_is_offered_no_pause(admin_page: Client) -> None:
    pause.begin("ada")
    page = admin_page.get(reverse("admin:pgperf_pause_add"), follow=True)
    assert page.redirect_chain == [(reverse("admin:pgperf_pause_changelist"), 302)]
    assert "Runs are paused already." in page.content.decode()
    shown = admin_page.get(reverse("admin:pgperf_pause_changelist")).content.decode()
    assert reverse("admin:pgperf_pause_add") not in shown


def test_a_pause_is_in_the_history(admin_page: Client) -> None:
    admin_page.post(reverse("admin:pgperf_pause_add"), {"reason": "upgrade"})
    assert Pause.objects.get().reason == "upgrade"
    assert LogEntry.objects.get().object_id == str(Pause.objects.get().pk)


def test_a_pause_without_a_reason_is_named_by_its_user(admin_page: Client) -> None:
    page = admin_page.post(reverse("admin:pgperf_pause_add"), {"reason": ""}, follow=True)
    assert "pause: superuser” was added" in page.content.decode()
    assert LogEntry.objects.get().object_repr == "pause: superuser"


def test_who_may_not_see_the_pause_gets_no_page_to_add_one() -> None:
    pause.begin("ada")
    assert staff_client("eve", "add_pause").get(reverse("admin:pgperf_pause_add")).status_code == 403


def test_the_one_who_ends_a_pause_is_in_the_history(admin_page: Client) -> None:
    pause.begin("ada")
    here = Pause.objects.get()
    admin_page.post(reverse("admin:pgperf_pause_delete", args=[here.pk]), {"post": "yes"})
    assert not Pause.objects.exists()
    assert LogEntry.objects.get().object_id == str(here.pk)


def test_of_two_who_end_a_pause_the_second_is_not_in_the_history(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause.begin("ada")
    here = Pause.objects.get()
    end = pause.end

    def after_another() -> None:
        end()
        end()

    monkeypatch.setattr(pause, "end", after_another)
    admin_page.post(reverse("admin:pgperf_pause_delete", args=[here.pk]), {"post": "yes"})
    assert not LogEntry.objects.exists()
