"""Who may do what: every page of ours x every role x both methods."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.models import Run
from tests import factories

LOGIN = 302
SEES = {"viewer", "runner", "canceller", "exporter", "definer", "superuser"}
ALL = {*SEES, "staff", "start_only"}

#: Page -> method -> who is answered (with 200, or 302 after a POST); other staff get 403, others the login page.
PAGES: dict[str, dict[str, set[str]]] = {
    "benchmark_changelist": {"get": SEES},
    "benchmark_change": {"get": SEES},
    "benchmark_run": {"get": {"runner", "superuser"}, "post": {"runner", "superuser"}},
    "database_changelist": {"get": SEES},
    "database_change": {"get": SEES},
    "workload_changelist": {"get": SEES},
    "worker_changelist": {"get": SEES},
    "worker_change": {"get": SEES},
    "run_changelist": {"get": SEES},
    "run_change": {"get": SEES},
    "run_progress": {"get": SEES},
    "run_cancel": {"post": {"canceller", "superuser"}},
    "run_download": {"get": {"exporter", "superuser"}},
    "run_compare": {"get": SEES},
}
CASES = [(page, method) for page, methods in PAGES.items() for method in methods]
ONE_METHOD = [
    ("run_change", "post"),
    ("run_progress", "post"),
    ("run_cancel", "get"),
    ("run_download", "post"),
    ("run_compare", "post"),
]


def address(page: str, run: Run) -> str:
    model, _, action = page.partition("_")
    if action == "changelist":
        return reverse(f"admin:pgperf_{page}")
    if model == "run":
        extra = ["variants.csv"] if action == "download" else []
        return reverse(f"admin:pgperf_{page}", args=[run.pk, *extra])
    row = {"benchmark": run.benchmark, "database": run.database, "worker": factories.make_worker()}[model]
    assert row is not None
    return reverse(f"admin:pgperf_{page}", args=[row.pk])


@pytest.mark.parametrize("role", ["nobody", "customer", *sorted(ALL)])
@pytest.mark.parametrize(("page", "method"), CASES)
def test_only_those_who_may_are_answered(
    page: str, method: str, role: str, run: Run, client_of: Callable[[str], Client]
) -> None:
    if page == "run_cancel":
        run = factories.make_run(Run.Status.QUEUED)
    response = getattr(client_of(role), method)(address(page, run))
    if role in ("nobody", "customer"):
        assert response.status_code == LOGIN
        assert "/login/" in response["Location"]
    elif role in PAGES[page][method]:
        assert response.status_code in (200, 302)
        assert "/login/" not in response.headers.get("Location", "")
    else:
        assert response.status_code == 403


@pytest.mark.parametrize(("page", "method"), ONE_METHOD)
def test_the_other_method_is_refused(page: str, method: str, run: Run, admin_page: Client) -> None:
    assert getattr(admin_page, method)(address(page, run)).status_code == 405


@pytest.mark.parametrize("page", ["benchmark_run", "run_cancel"])
def test_a_post_without_the_token_against_forgery_is_refused(
    page: str, run: Run, client_of: Callable
) -> None:
    plain = client_of("superuser")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = plain.cookies
    assert strict.post(address(page, run)).status_code == 403


@pytest.mark.parametrize("role", sorted(ALL - {"exporter", "superuser"}))
def test_the_list_exports_nothing_without_the_permission(role: str, run: Run, client_of: Callable) -> None:
    data = {"action": "export_variants_csv", "_selected_action": [run.pk]}
    response = client_of(role).post(reverse("admin:pgperf_run_changelist"), data)
    assert response.get("Content-Type", "").partition(";")[0] != "text/csv"
    assert b"ops_per_s" not in response.content


def test_there_is_no_export_page_beside_ours(run: Run, client_of: Callable) -> None:
    response = client_of("staff").get(reverse("admin:pgperf_run_changelist") + "export/")
    assert response.status_code in (302, 403, 404)


@pytest.mark.parametrize("role", sorted(SEES))
def test_buttons_are_shown_to_those_who_may_use_them(role: str, run: Run, client_of: Callable) -> None:
    page = client_of(role).get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert ("Download CSV" in page) == (role in {"exporter", "superuser"})
    assert ("Run again" in page) == (role in {"runner", "superuser"})
    assert "Cancel run" not in page


def test_a_missing_run_is_not_told_to_those_who_may_see_none(client_of: Callable) -> None:
    missing = reverse("admin:pgperf_run_progress", args=[99_999_999_999])
    assert client_of("staff").get(missing).status_code == 403
    assert client_of("viewer").get(missing).status_code == 404


def test_a_run_under_way_cannot_be_deleted(run: Run, admin_page: Client) -> None:
    running = factories.make_run(Run.Status.RUNNING)
    assert (
        admin_page.post(reverse("admin:pgperf_run_delete", args=[running.pk]), {"post": "yes"}).status_code
        == 403
    )
    assert (
        admin_page.post(reverse("admin:pgperf_run_delete", args=[run.pk]), {"post": "yes"}).status_code == 302
    )
    assert list(Run.objects.all()) == [running]
