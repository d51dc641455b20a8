"""The page that starts a run, and its POST."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from pgperf.models import Benchmark, Database, Run, Target
from pgperf.runner import preflight
from pgperf.runs import state
from tests import factories
from tests.concurrency import at_once

EARLIER = "This form has started run"


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return factories.make_benchmark()


@pytest.fixture
def database(db: None) -> Database:
    return factories.make_database()


@pytest.fixture
def page(benchmark: Benchmark) -> str:
    return reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])


def form(chosen: Database, **changed: Any) -> dict[str, Any]:
    return {"database": chosen.pk, "length": "quick", "token": uuid.uuid4().hex, **changed}


def test_the_page_shows_the_preview(admin_page: Client, page: str, database: Database) -> None:
    factories.make_worker(psycopg2="not installed: pip install psycopg2")
    text = admin_page.get(page).content.decode()
    for expected in (
        "Django ORM",
        "pgbouncer",
        "skipped: not installed",
        "pgperf@localhost",
        "Connections",
        "must be free",
        "the worker, before it starts",
        "about ",
    ):
        assert expected in text
    assert "No worker is online" not in text


def test_the_help_of_the_time_is_that_which_its_field_names(
    admin_page: Client, page: str, database: Database
) -> None:
    text = admin_page.get(page).content.decode()
    assert re.search(r'<input[^>]* name="budget_s"[^>]* aria-describedby="id_budget_s_helptext"', text)
    assert '<div class="help" id="id_budget_s_helptext">' in text


def test_a_layer_that_the_plan_leaves_out_is_not_ticked(
    admin_page: Client, benchmark: Benchmark, page: str, database: Database
) -> None:
    Benchmark.objects.filter(pk=benchmark.pk).update(layers=["libpq", "http"])
    text = admin_page.get(page).content.decode()
    assert "skipped: none of the routes has a URL" in text
    assert text.count('<td class="yes">') == len(benchmark.routes)


def test_routes_that_the_database_lacks_are_named(admin_page: Client, page: str, database: Database) -> None:
    database.targets.filter(route="pgbouncer").update(enabled=False)
    assert "demo has no enabled route pgbouncer. The run skips it." in admin_page.get(page).content.decode()
    database.targets.filter(route="tcp").update(enabled=False)
    text = admin_page.get(page).content.decode()
    assert "demo has no enabled routes tcp, pgbouncer. The run skips them." in text


def test_an_update_shows_the_preview_of_the_choices(
    admin_page: Client, page: str, database: Database
) -> None:
    other = factories.make_database("other")
    answer = admin_page.post(page, form(other, update="1", confirm_name="typed"))
    assert (answer.status_code, answer["Location"]) == (302, f"{page}?database={other.pk}&length=quick")
    assert not Run.objects.exists()


def test_enter_in_a_text_field_starts_the_run(admin_page: Client, page: str, database: Database) -> None:
    """A browser presses the first button of the form, shown or hidden."""
    factories.make_database("other")
    text = admin_page.get(page).content.decode()
    buttons = re.findall('<button type="submit"[^>]*>', text[text.index('id="pgperf-start"') :])
    assert 'class="default"' in buttons[0]
    assert any('name="update"' in button for button in buttons)
    assert "formmethod" not in text


def test_without_a_worker_the_page_shows_the_command(
    admin_page: Client, page: str, database: Database
) -> None:
    text = admin_page.get(page).content.decode()
    assert "No worker is online" in text
    assert "--queues pgperf" in text


def test_without_a_database_the_page_links_to_the_form(admin_page: Client, page: str) -> None:
    response = admin_page.get(page)
    assert "There is no database to run on" in response.content.decode()
    assert reverse("admin:pgperf_database_add") in response.content.decode()


def test_without_a_database_others_are_told_whom_to_ask(
    client_of: Callable[[str], Client], page: str
) -> None:
    shown = client_of("runner").get(page).content.decode()
    assert "Ask a user who may add databases." in shown
    assert reverse("admin:pgperf_database_add") not in shown


def test_a_post_requests_one_run_and_redirects_to_it(
    admin_page: Client, page: str, database: Database
) -> None:
    response = admin_page.post(page, form(database))
    run = Run.objects.get()
    assert response.status_code == 302
    assert response["Location"] == reverse("admin:pgperf_run_change", args=[run.pk])
    assert (run.status, run.quick, run.database, run.requested_by.username) == (
        "queued",
        True,
        database,
        "superuser",
    )  # type: ignore[union-attr]


def test_a_double_click_starts_one_run_and_is_logged_once(
    admin_page: Client, page: str, database: Database
) -> None:
    twice = form(database)
    first, second = admin_page.post(page, twice), admin_page.post(page, twice)
    assert first["Location"] == second["Location"]
    assert Run.objects.count() == 1
    entry = LogEntry.objects.get()
    assert entry.get_edited_object() == Run.objects.get()
    assert "orm-overhead on demo, quick" in entry.get_change_message()


def test_a_form_that_was_used_says_whose_run_is_shown(
    admin_page: Client, page: str, database: Database
) -> None:
    """After a click on Back, with other choices."""
    used = form(database)
    assert EARLIER not in admin_page.post(page, used, follow=True).content.decode()
    again = admin_page.post(page, {**used, "length": "full"}, follow=True).content.decode()
    run = Run.objects.get()
    assert f'<li class="warning">{EARLIER} {run.pk} already; nothing more was started' in again
    assert run.quick


def test_a_browser_does_not_put_the_used_token_into_a_new_form(
    admin_page: Client, page: str, database: Database
) -> None:
    text = admin_page.get(page).content.decode()
    assert re.search(r'<input type="hidden" name="token"[^>]* autocomplete="off"', text)


@pytest.mark.django_db(transaction=True)
def test_twenty_clicks_at_once_start_one_run_and_are_logged_once(
    page: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each click comes from its own browser; later clicks redirect to the first run."""
    monkeypatch.setattr(state.broker, "send", lambda run_id, queue: None)
    user = User.objects.create_superuser("superuser")
    clients, clicked = [Client() for _ in range(20)], form(database)
    for client in clients:
        client.force_login(user)
    pages = at_once(20, lambda: clients.pop().post(page, clicked)["Location"])
    assert set(pages) == {reverse("admin:pgperf_run_change", args=[Run.objects.get().pk])}
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"length": "for ever"},
        {"database": 4711},
        {"database": "x"},
        {"token": ""},
        {"token": "../" * 10 + "ab"},
        {"length": ""},
    ],
)
def test_invalid_input_starts_no_run(
    admin_page: Client, page: str, database: Database, changed: dict[str, Any]
) -> None:
    response = admin_page.post(page, form(database, **changed))
    assert response.status_code == 200
    assert "No run was started" in response.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "query", ["database=x", "database=²", "database=" + "9" * 40, "database=-1", "length=%00"]
)
def test_an_invalid_query_string_shows_the_page(
    admin_page: Client, page: str, database: Database, query: str
) -> None:
    text = admin_page.get(f"{page}?{query}").content.decode()
    assert re.search(rf'<input[^>]* name="database" value="{database.pk}"', text)
    assert re.search(r'<input[^>]* value="full"[^>]* checked', text)


@pytest.mark.parametrize(("typed", "runs"), [("", 0), ("Demo", 0), ("demo", 1), (" demo ", 1)])
def test_a_production_database_requires_its_name(
    admin_page: Client, page: str, database: Database, typed: str, runs: int
) -> None:
    Database.objects.update(production=True)
    assert "is a production database" in admin_page.get(page).content.decode()
    admin_page.post(page, form(database, confirm_name=typed))
    assert Run.objects.count() == runs


def test_a_refusal_is_shown_on_the_form(admin_page: Client, page: str, database: Database) -> None:
    Target.objects.all().delete()
    response = admin_page.post(page, form(database))
    assert response.status_code == 200
    assert "has no enabled target" in response.content.decode()
    assert not Run.objects.exists()


def test_the_page_warns_of_limits_that_the_worker_enforces(
    admin_page: Client, page: str, database: Database, settings: Any
) -> None:
    """A warning, not a refusal: the other length may fit, and the worker's settings may differ."""
    settings.PGPERF = {**settings.PGPERF, "MAX_RUN_SECONDS": 1}
    text = admin_page.get(page).content.decode()
    assert "the worker refuses this run" in text
    assert not re.search(r'<button type="submit" class="default"[^>]*disabled', text)


START = r'<button type="submit" class="default"{}>'


def test_a_run_whose_six_blocks_cannot_fit_is_not_started(
    admin_page: Client, page: str, database: Database
) -> None:
    """The page names the least time, and another budget can be tried."""
    short = form(database, budget_s=10)
    text = admin_page.post(page, short).content.decode()
    assert not Run.objects.exists()
    least_s = int(re.findall(r"time budget: 6 blocks take at least (\d+) s .* has 10 s;", text)[0])
    assert least_s > 10
    assert re.search(START.format(" disabled"), text)
    assert text.count("blocks take at least") == 1
    answer = admin_page.post(page, {**short, "budget_s": least_s, "update": "1"})
    assert 'name="update"' in text
    assert re.search(START.format(""), admin_page.get(answer["Location"]).content.decode())
    admin_page.post(page, {**short, "budget_s": least_s})
    assert Run.objects.get().definition["budget_s"] == least_s


def test_a_run_whose_six_blocks_take_longer_than_allowed_is_not_started(
    admin_page: Client, page: str, database: Database, settings: Any
) -> None:
    Benchmark.objects.update(precision=2.0)
    settings.PGPERF = {**settings.PGPERF, "MAX_RUN_SECONDS": 10}
    text = admin_page.post(page, form(database)).content.decode()
    assert re.search(r"time: 6 blocks take at least \d+ s.*, allowed are 10 s \(PGPERF", text)
    assert re.search(START.format(" disabled"), text)
    assert not Run.objects.exists()


def test_run_again_selects_database_and_length(admin_page: Client, page: str, database: Database) -> None:
    other = factories.make_database("other")
    text = admin_page.get(f"{page}?database={other.pk}&length=quick").content.decode()
    assert f'<option value="{other.pk}" selected>' in text
    assert re.search(r'<input[^>]* value="quick"[^>]* checked', text)


def test_a_run_that_needed_more_time_is_offered_with_it(
    admin_page: Client, page: str, benchmark: Benchmark, database: Database
) -> None:
    error = str(preflight.too_short(150.0, 62.0))
    failed = factories.make_run(
        Run.Status.FAILED, benchmark=benchmark, database=database, quick=True, error=error
    )
    shown = admin_page.get(reverse("admin:pgperf_run_change", args=[failed.pk])).content.decode()
    (link, seconds) = re.findall(r'href="([^"]*)">Run again with (\d+) s</a>', shown)[0]
    assert int(seconds) > 150
    address = link.replace("&amp;", "&")
    assert address.endswith(f"?database={database.pk}&length=quick&budget_s={seconds}")
    text = admin_page.get(address).content.decode()
    assert re.search(rf'<input[^>]* name="budget_s" value="{seconds}"', text)
    admin_page.post(page, form(database, budget_s=seconds))
    assert Run.objects.latest("pk").definition["budget_s"] == int(seconds)


def test_run_again_ticks_the_environments_of_the_run(
    admin_page: Client, page: str, database: Database, settings: Any
) -> None:
    """They may have been chosen for that run alone."""
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    admin_page.post(page, form(database, environments=["default", "old"]))
    run = Run.objects.get()
    run.status = Run.Status.FAILED
    run.save()
    shown = admin_page.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    (link,) = re.findall(r'href="([^"]*)">Run again</a>', shown)
    assert link.endswith("&amp;length=quick&amp;environments=default&amp;environments=old")
    text = admin_page.get(link.replace("&amp;", "&")).content.decode()
    assert len(re.findall(r'name="environments" value="\w+"[^>]*? checked>', text)) == 2


def test_environments_are_boxes_where_the_settings_have_some(
    admin_page: Client, page: str, database: Database, settings: Any
) -> None:
    assert 'name="environments"' not in admin_page.get(page).content.decode()
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    text = admin_page.get(page).content.decode()
    assert re.findall(r'name="environments" value="(\w+)"[^>]*?( checked)?>', text) == [
        ("default", " checked"), ("old", ""),
    ]  # fmt: skip
    assert "/opt/old" not in text
    admin_page.post(page, form(database, environments=["default", "old"]))
    assert Run.objects.get().definition["environments"] == ["default", "old"]
    assert Run.objects.get().benchmark.environments == ["default"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("own", "ticked", "run"),
    [
        (["old", "default"], ["default", "old"], ["old", "default"]),
        (["default"], ["old"], ["old"]),
        (["old", "default"], [], ["old", "default"]),
    ],
)
def test_the_baseline_is_that_of_the_benchmark_where_it_is_ticked(
    admin_page: Client, page: str, database: Database, settings: Any,
    own: list[str], ticked: list[str], run: list[str],
) -> None:  # fmt: skip
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    Benchmark.objects.update(environments=own)
    admin_page.post(page, form(database, environments=ticked))
    assert Run.objects.get().definition["environments"] == run


def test_the_preview_has_the_environments_that_are_ticked(
    admin_page: Client, page: str, database: Database, settings: Any
) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    assert "Python environments, side by side" not in admin_page.get(page).content.decode()
    again = admin_page.post(page, form(database, environments=["default", "old"], update="1"))["Location"]
    assert again.endswith("&environments=default&environments=old")
    text = admin_page.get(again).content.decode()
    assert "Python environments, side by side" in text
    assert len(re.findall(r'name="environments"[^>]* checked', text)) == 2
    assert not Run.objects.exists()


@pytest.mark.parametrize("wrong", ["/opt/old/bin/python", "gone"])
def test_an_environment_without_a_name_in_the_settings_is_refused(
    admin_page: Client, page: str, database: Database, settings: Any, wrong: str
) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    text = admin_page.post(page, form(database, environments=["default", wrong])).content.decode()
    assert "No run was started." in text
    assert not Run.objects.exists()
    assert admin_page.get(page, {"environments": wrong}).status_code == 200


def test_without_a_time_budget_a_run_has_that_of_its_benchmark(
    admin_page: Client, page: str, database: Database
) -> None:
    Benchmark.objects.update(budget_s=50)
    admin_page.post(page, form(database, budget_s=""))
    assert Run.objects.get().definition["budget_s"] == 50


@pytest.mark.parametrize("budget_s", ["9", "86401", "-5", "x", "1e3"])
def test_a_time_budget_beyond_its_limits_is_refused(
    admin_page: Client, page: str, database: Database, budget_s: str
) -> None:
    text = admin_page.post(page, form(database, budget_s=budget_s)).content.decode()
    assert "No run was started." in text
    assert not Run.objects.exists()


@pytest.mark.parametrize("given", ["9", "x", "²", "9" * 40, "-1", "%00", "1.5"])
def test_an_address_with_another_time_budget_is_one_without(
    admin_page: Client, page: str, database: Database, given: str
) -> None:
    text = admin_page.get(f"{page}?budget_s={given}").content.decode()
    assert re.search(r'<input[^>]* name="budget_s"(?![^>]* value=)', text)


def test_the_default_database_is_selected(admin_page: Client, page: str, database: Database) -> None:
    usual = factories.make_database("usual")
    Benchmark.objects.update(database=usual)
    assert f'<option value="{usual.pk}" selected>' in admin_page.get(page).content.decode()


def test_without_the_view_permission_a_post_redirects_to_the_benchmarks(
    client_of: Any, page: str, database: Database
) -> None:
    client = client_of("runner")
    client_user = client.get(page).wsgi_request.user
    client_user.user_permissions.remove(client_user.user_permissions.get(codename="view_run"))
    response = client.post(page, form(database))
    assert response["Location"] == reverse("admin:pgperf_benchmark_changelist")
    assert Run.objects.count() == 1


def test_the_list_and_the_form_have_the_run_button(
    admin_page: Client, page: str, benchmark: Benchmark
) -> None:
    for address in ("admin:pgperf_benchmark_changelist", "admin:pgperf_benchmark_change"):
        args = [benchmark.pk] if address.endswith("change") else []
        text = admin_page.get(reverse(address, args=args)).content.decode()
        assert f'href="{page}"' in text
        assert "Run benchmark" in text
