"""The pause's pages beyond its permissions."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from pgperf.models import Pause
from pgperf.runs import pause

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
    assert admin_page.get(reverse("admin:pgperf_pause_add")).status_code == 403
    shown = admin_page.get(reverse("admin:pgperf_pause_changelist")).content.decode()
    assert reverse("admin:pgperf_pause_add") not in shown


def test_a_pause_is_in_the_history(admin_page: Client) -> None:
    admin_page.post(reverse("admin:pgperf_pause_add"), {"reason": "upgrade"})
    assert Pause.objects.get().reason == "upgrade"
    assert LogEntry.objects.get().object_id == str(Pause.objects.get().pk)


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
