"""Permissions of buttons, actions and missing rows.

`test_matrix` covers every page for every role.
"""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from pgperf.models import Run
from tests import factories
from tests.admin.users import staff_client

SEES = {"viewer", "runner", "canceller", "exporter", "definer", "superuser"}
ALL = {*SEES, "staff", "start_only"}


@pytest.mark.parametrize("page", ["benchmark_run", "run_cancel"])
def test_a_post_without_a_csrf_token_is_refused(page: str, run: Run, client_of: Callable) -> None:
    plain = client_of("superuser")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = plain.cookies
    row = run if page == "run_cancel" else run.benchmark
    assert row
    assert strict.post(reverse(f"admin:pgperf_{page}", args=[row.pk])).status_code == 403


@pytest.mark.parametrize("role", sorted(ALL - {"exporter", "superuser"}))
def test_export_actions_require_the_permission(role: str, run: Run, client_of: Callable) -> None:
    data = {"action": "export_variants_csv", "_selected_action": [run.pk]}
    response = client_of(role).post(reverse("admin:pgperf_run_changelist"), data)
    assert response.get("Content-Type", "").partition(";")[0] != "text/csv"
    assert b"ops_per_s" not in response.content


@pytest.mark.parametrize("page", ["import", "export"])
def test_runs_have_no_import_export_page(page: str) -> None:
    with pytest.raises(NoReverseMatch):
        reverse(f"admin:pgperf_run_{page}")


@pytest.mark.parametrize("role", sorted(SEES))
def test_buttons_require_their_permission(role: str, run: Run, client_of: Callable) -> None:
    page = client_of(role).get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert ("Download variants (CSV)" in page) == (role in {"exporter", "superuser"})
    assert ("Run again" in page) == (role in {"runner", "superuser"})
    assert "Cancel run" not in page


@pytest.mark.parametrize("verb", ["view", "change"])
def test_who_may_change_runs_sees_what_a_viewer_sees(verb: str, run: Run) -> None:
    client = staff_client("eve", "view_benchmark", "view_database", f"{verb}_run")
    assert run.benchmark
    results = reverse("admin:pgperf_benchmark_runs", args=[run.benchmark.pk])
    for page, row in (("benchmark", run.benchmark), ("run", run)):
        shown = client.get(reverse(f"admin:pgperf_{page}_change", args=[row.pk])).content.decode()
        assert results in shown
    assert client.get(results).status_code == 200
    assert run.database
    database = reverse("admin:pgperf_database_change", args=[run.database.pk])
    assert "Server settings" in client.get(database).content.decode()


def test_a_missing_run_gives_403_without_the_view_permission(client_of: Callable) -> None:
    missing = reverse("admin:pgperf_run_progress", args=[99_999_999_999])
    assert client_of("staff").get(missing).status_code == 403
    assert client_of("viewer").get(missing).status_code == 404


def test_an_active_run_cannot_be_deleted(run: Run, admin_page: Client) -> None:
    running = factories.make_run(Run.Status.RUNNING)
    for row, status in ((running, 403), (run, 302)):
        page = reverse("admin:pgperf_run_delete", args=[row.pk])
        assert admin_page.post(page, {"post": "yes"}).status_code == status
    assert list(Run.objects.all()) == [running]


@pytest.mark.parametrize(("requester", "status"), [("viewer", 302), ("runner", 403), (None, 403)])
def test_users_may_cancel_the_runs_that_they_requested(
    requester: str | None, status: int, client_of: Callable
) -> None:
    """Without the permission cancel_run."""
    page, _other = client_of("viewer"), client_of("runner")
    asked = User.objects.get(username=requester) if requester else None
    run = factories.make_run(Run.Status.QUEUED, requested_by=asked)
    shown = page.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert ("Cancel run" in shown) == (status == 302)
    assert page.post(reverse("admin:pgperf_run_cancel", args=[run.pk])).status_code == status
    run.refresh_from_db()
    assert (run.status == Run.Status.CANCELLED) == (status == 302)
