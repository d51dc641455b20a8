"""The page that compares two to eight runs, its permanent link, its files and who may have them."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from pgperf.admin import several
from pgperf.models import Run
from tests import factories

#: Queries: session, user, the runs, the choices.
QUERIES = 5


def page(*runs: object, baseline: object = None) -> str:
    numbers = [getattr(run, "pk", run) for run in runs]
    return reverse("admin:pgperf_run_comparison") + several.link(numbers, getattr(baseline, "pk", baseline))


def file(name: str, *runs: Run) -> str:
    return reverse("admin:pgperf_run_comparison_file", args=[name]) + several.link([run.pk for run in runs])


def text(client: Client, *runs: object, baseline: object = None) -> str:
    response = client.get(page(*runs, baseline=baseline))
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def runs(run: Run) -> list[Run]:
    """Three runs of one definition, the oldest first; the second one has a slower ORM."""
    slower = factories.make_results(factories.make_run(), slower={"django_orm": 1.1})
    return [run, slower, factories.make_results(factories.make_run())]


def test_every_run_is_shown_over_the_oldest_one(admin_page: Client, runs: list[Run]) -> None:
    shown = text(admin_page, *reversed(runs))
    head = shown[shown.index('class="pgperf-head"') :]
    assert head.index(">baseline<") < head.index(f">{runs[0]}<") < head.index(f">{runs[1]}<")
    assert "time relative to libpq (C) is ×1.100 that of the baseline" in shown
    assert shown.count("<canvas ") == 3 + 3
    assert shown.count('class="pgperf-table numbers effects"') == 3
    assert shown.count('class="pgperf-table numbers scatter"') == 2
    assert shown.count('class="pgperf-table numbers times"') == 1
    order = [f'id="comparison-{name}"' for name in ("answer", "environment", "steps", "changes", "ladders")]
    assert sorted(order, key=shown.index) == order
    assert f'href="?runs={runs[0].pk},{runs[1].pk},{runs[2].pk}&amp;baseline={runs[0].pk}"' in shown


def test_a_baseline_is_chosen(admin_page: Client, runs: list[Run]) -> None:
    shown = text(admin_page, *runs, baseline=runs[1])
    assert "is ×0.909 that of the baseline" in shown
    assert f'name="baseline" value="{runs[1].pk}" aria-label="{runs[1]} as baseline" checked' in shown


def test_the_chosen_baseline_stays_where_nothing_can_be_compared(admin_page: Client, runs: list[Run]) -> None:
    empty = factories.make_run(Run.Status.FAILED)
    shown = text(admin_page, runs[1], empty, baseline=runs[1])
    assert f'name="baseline" value="{runs[1].pk}" aria-label="{runs[1]} as baseline" checked' in shown


def test_differences_have_a_column_for_each_run(admin_page: Client, runs: list[Run]) -> None:
    runs[2].environment = {**runs[2].environment, "python": "3.13.0"}
    runs[2].save()
    shown = text(admin_page, *runs)
    row = shown[shown.index('<th scope="row">Python</th>') :]
    cells = "".join(f'<td class="words">{version}</td>' for version in ("3.11.2", "3.11.2", "3.13.0"))
    assert row.startswith(f'<th scope="row">Python</th>{cells}')


def test_what_cannot_be_compared_is_said_with_the_reason(admin_page: Client, runs: list[Run]) -> None:
    empty = factories.make_run(Run.Status.FAILED)
    active = factories.make_run(Run.Status.RUNNING)
    narrow = factories.make_results(factories.make_run(), routes=("tcp",))
    shown = text(admin_page, *runs, empty, active, narrow)
    assert f"un {empty.pk} failed and has no results" in shown
    assert "has not ended yet" in shown
    for route in ("socket", "pgbouncer"):
        assert shown.count(f"The route {route} was not measured in #{narrow.pk} (5 variants).") == 1
    assert f" and not in #{narrow.pk}." not in shown


@pytest.mark.parametrize("count", [1, 9])
def test_another_number_of_runs_is_an_answer(admin_page: Client, count: int) -> None:
    chosen = [factories.make_run(Run.Status.FAILED) for _ in range(count)]
    assert "choose 2 to 8 different runs" in text(admin_page, *chosen)


def test_without_runs_there_is_a_choice(admin_page: Client, runs: list[Run]) -> None:
    shown = admin_page.get(reverse("admin:pgperf_run_comparison")).content.decode()
    assert all(f'name="runs" value="{run.pk}"' in shown for run in runs)


@pytest.mark.parametrize("other", [4711, "x", "-1", "9" * 30, "1%00", "１"])
def test_an_unknown_run_gives_404(admin_page: Client, run: Run, other: object) -> None:
    assert admin_page.get(page(run, other)).status_code == 404
    assert admin_page.get(page(run, baseline=other)).status_code == 404


def test_a_hidden_run_gives_404_and_is_no_choice(client_of: Callable[[str], Client], runs: list[Run]) -> None:
    hidden = factories.make_results(factories.make_run(database=factories.make_database("secret")))
    assert hidden.database is not None
    hidden.database.groups.add(Group.objects.create(name="others"))
    viewer, exporter = client_of("viewer"), client_of("exporter")
    assert viewer.get(page(*runs, hidden)).status_code == 404
    assert viewer.get(page(*runs, baseline=hidden)).status_code == 404
    assert exporter.get(file("report.html", *runs, hidden)).status_code == 404
    assert f'value="{hidden.pk}"' not in text(viewer, *runs)


@pytest.mark.parametrize("name", several.FILES)
def test_the_files_have_the_comparison_and_are_logged(admin_page: Client, runs: list[Run], name: str) -> None:
    response = admin_page.get(file(name, *runs))
    assert response["Content-Disposition"].startswith("attachment")
    assert "×1.100" in response.content.decode()
    assert {entry.object_id for entry in LogEntry.objects.all()} == {str(run.pk) for run in runs}


@pytest.mark.parametrize("name", several.FILES)
@pytest.mark.parametrize("role", ["viewer", "runner", "staff"])
def test_others_get_no_file(
    client_of: Callable[[str], Client], runs: list[Run], role: str, name: str
) -> None:
    assert client_of(role).get(file(name, *runs)).status_code == 403


def test_what_is_no_comparison_has_no_file(admin_page: Client, run: Run) -> None:
    assert admin_page.get(file("report.html", run)).status_code == 404
    assert admin_page.get(file("unknown.html", run)).status_code == 404


def test_the_action_compares_the_selected_runs(admin_page: Client, runs: list[Run]) -> None:
    data = {"action": "compare_runs", "_selected_action": [run.pk for run in runs]}
    assert admin_page.post(reverse("admin:pgperf_run_changelist"), data)["Location"] == page(*runs)


@pytest.mark.parametrize("count", [1, 9])
def test_the_action_requires_two_to_eight_runs(admin_page: Client, run: Run, count: int) -> None:
    chosen = [run.pk, *(factories.make_run().pk for _ in range(count - 1))]
    data = {"action": "compare_runs", "_selected_action": chosen}
    shown = admin_page.post(reverse("admin:pgperf_run_changelist"), data, follow=True).content.decode()
    assert "Select two to eight runs to compare." in shown


def test_the_number_of_queries_is_constant(
    admin_page: Client, runs: list[Run], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    text(admin_page, *runs[:2])  # content types and the like, once
    with django_assert_num_queries(QUERIES):
        text(admin_page, *runs[:2])
    more = [factories.make_results(factories.make_run()) for _ in range(4)]
    more.append(factories.make_run(Run.Status.RUNNING))
    with django_assert_num_queries(QUERIES):
        text(admin_page, *runs, *more)


def test_several_runs_lead_to_the_page_of_each_pair(admin_page: Client, runs: list[Run]) -> None:
    first, second, third = runs[:3]
    shown = text(admin_page, first, second, third)
    for other in (second, third):
        assert f'<a href="?runs={first.pk},{other.pk}&amp;baseline={first.pk}">{other}</a>' in shown
    assert "The page of each pair" not in text(admin_page, first, second)
