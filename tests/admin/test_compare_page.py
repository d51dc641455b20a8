"""The page that compares two runs: its content, and the ways to open it."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from pgperf.analysis.outcome import EQUIVALENT, INCONCLUSIVE
from pgperf.analysis.run_comparison import OVER
from pgperf.models import Run
from pgperf.reports.run_comparison import compare_runs
from tests import factories


def page(run: Run, other: object = None) -> str:
    address = reverse("admin:pgperf_run_compare", args=[run.pk])
    return address if other is None else f"{address}?with={getattr(other, 'pk', other)}"


def text(client: Client, *args: object) -> str:
    response = client.get(page(*args))  # type: ignore[arg-type]
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def slower(run: Run) -> Run:
    """A later run of the same definition with a slower ORM."""
    return factories.make_results(factories.make_run(), slower={"django_orm": 1.1})


def test_charts_tables_and_sentences(admin_page: Client, run: Run, slower: Run) -> None:
    shown = text(admin_page, slower, run)
    assert "Django ORM · socket: time relative to libpq (C) is ×1.100 that of the first run" in shown
    assert ": ×3.43 instead of ×3.12." in shown
    assert shown.count("<canvas ") == 3
    assert shown.count('class="pgperf-table numbers comparisons"') == 2
    assert shown.count('class="pgperf-table numbers steps"') == 1
    assert "Django ORM · socket adds 147 µs to Django cursor instead of 125 µs in the first run" in shown
    assert '<td class="words differs">' in shown
    assert "Other differences" not in shown
    told = re.findall("<strong>([^<]* instead of [^<]*)</strong>", shown)
    routes = ("socket", "tcp", "pgbouncer")
    assert [each.partition(":")[0] for each in told] == [f"Django ORM · {route}" for route in routes]
    assert all(each.endswith(", slower.") for each in told)


def test_the_older_run_is_the_first_until_they_are_swapped(admin_page: Client, run: Run, slower: Run) -> None:
    links = [reverse("admin:pgperf_run_change", args=[each.pk]) for each in (run, slower)]
    for one, other in ((slower, run), (run, slower)):
        shown = text(admin_page, one, other)
        assert re.findall('<dd><a href="([^"]*)"', shown) == links
        assert f"?runs={run.pk},{slower.pk}&amp;baseline={run.pk}" in shown
        assert f'href="?with={other.pk}&amp;swap=1"' in shown
        swapped = admin_page.get(f"{page(one, other)}&swap=1").content.decode()
        assert re.findall('<dd><a href="([^"]*)"', swapped) == links[::-1]
        assert f'href="?with={other.pk}"' in swapped


def test_a_comparison_is_linked_and_downloaded(
    admin_page: Client, client_of: Callable[[str], Client], run: Run, slower: Run
) -> None:
    shown = text(admin_page, slower)  # with the run before it
    assert f'href="?with={run.pk}">Permanent link</a>' in shown
    (file,) = re.findall(r'href="([^"]*)">Download as Markdown</a>', shown)
    answer = admin_page.get(file.replace("&amp;", "&"))
    assert "Django ORM" in answer.content.decode()
    swapped = admin_page.get(f"{page(slower, run)}&swap=1").content.decode()
    assert f'href="?with={run.pk}&amp;swap=1">Permanent link</a>' in swapped
    assert f"runs={slower.pk},{run.pk}&amp;baseline={slower.pk}" in swapped
    reader = client_of("viewer").get(page(slower, run)).content.decode()
    assert "Permanent link" in reader
    assert "Markdown" not in reader


def disturb(run: Run, share: float) -> None:
    """Make the measurement of all variants of the run much disturbed."""
    for row in run.variants.all():
        row.verdict = {**row.verdict, "grade": {"word": "poor", "share": share, "disturbances": []}}
        row.save()


def test_a_much_disturbed_run_is_named_and_decides_nothing(admin_page: Client, run: Run, slower: Run) -> None:
    disturb(slower, 0.4)
    row = slower.variants.get(layer="psycopg", route="tcp")
    row.verdict["grade"]["share"] = 0.6
    row.save()
    worst = "other work took at most 60.0 % of the time of psycopg 3 · tcp, its most disturbed variant."
    for pair in ((slower, run), (run, slower)):
        shown = text(admin_page, *pair)
        assert f"{slower}: {worst}" in shown
        assert "inconclusive because a disturbance may explain it." in shown
        assert '<td class="words differs">' not in shown
        assert "Inconclusive comparisons: " in shown
        assert "A disturbance may explain a difference." in shown
    run_list = f"{reverse('admin:pgperf_run_comparison')}?runs={run.pk},{slower.pk}"
    assert "other work took at most" in admin_page.get(run_list).content.decode()


def test_a_partial_run_is_named(admin_page: Client, run: Run, slower: Run) -> None:
    slower.summary |= {"partial": True}
    slower.save()
    several = f"{reverse('admin:pgperf_run_comparison')}?runs={run.pk},{slower.pk}"
    for shown in (text(admin_page, slower, run), admin_page.get(several).content.decode()):
        assert f"{slower} has partial results: it ended early" in shown


def test_the_default_is_the_previous_run_of_the_definition(admin_page: Client, run: Run, slower: Run) -> None:
    factories.make_results(factories.make_run(definition_hash="1" * 64))
    factories.make_run(Run.Status.FAILED)
    latest = factories.make_results(factories.make_run())
    assert f'<option value="{slower.pk}" selected>' in text(admin_page, latest)


def test_the_first_run_asks_for_another_run(admin_page: Client, run: Run) -> None:
    assert "This benchmark has no other run yet" in text(admin_page, run)
    factories.make_results(factories.make_run(definition_hash="1" * 64))
    assert "You see no earlier completed run of this definition on this database" in text(admin_page, run)


def test_other_differences_are_listed(admin_page: Client, run: Run, slower: Run) -> None:
    slower.environment = {**slower.environment, "python": "3.13.0"}
    slower.definition_hash = "1" * 64
    slower.definition["placement"] = "together"
    slower.quick = True
    slower.save()
    shown = text(admin_page, slower, run)
    for expected in (
        "have different definitions",
        f"{slower} is a quick run, and {run} a full one.",
        "had different environments",
        "3.13.0",
        "placement",
    ):
        assert expected in shown
    assert shown.index("Other differences</h2>") < shown.index("Changes</h2>")


def test_an_impossible_comparison_shows_an_error(admin_page: Client, run: Run) -> None:
    assert "has not ended yet" in text(admin_page, factories.make_run(Run.Status.RUNNING), run)
    for status, ended in (("failed", "failed"), ("cancelled", "was cancelled"), ("lost", "was lost")):
        empty = factories.make_run(status)
        shown = text(admin_page, empty, run)
        assert f"un {empty.pk} {ended} and has no results" in shown
        assert "no variant was measured" not in shown


def test_runs_without_a_common_variant_say_what_each_measured(admin_page: Client, run: Run) -> None:
    other = factories.make_results(factories.make_run(), routes=("elsewhere",))
    shown = text(admin_page, run, other)
    assert f"run {run.pk} has libpq (C) · socket" in shown
    assert f"run {other.pk} has libpq (C) · elsewhere" in shown


@pytest.mark.parametrize("other", [4711, "x", "-1", "9" * 30, "1%00", "１"])
def test_an_unknown_run_gives_404(admin_page: Client, run: Run, other: object) -> None:
    assert admin_page.get(page(run, other)).status_code == 404


def test_a_hidden_run_gives_404(client_of: Callable[[str], Client], run: Run, slower: Run) -> None:
    """Groups limit the visible runs on this page too."""
    hidden = factories.make_results(factories.make_run(database=factories.make_database("secret")))
    assert hidden.database is not None
    hidden.database.groups.add(Group.objects.create(name="others"))
    viewer = client_of("viewer")
    assert viewer.get(page(slower, hidden)).status_code == 404
    assert viewer.get(page(hidden, slower)).status_code == 404
    assert f'value="{hidden.pk}"' not in text(viewer, slower, run)


def test_the_number_of_queries_is_constant(
    admin_page: Client, run: Run, slower: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    text(admin_page, slower, run)  # content types and the like, once
    with django_assert_num_queries(QUERIES):
        text(admin_page, slower, run)
    for _ in range(7):
        factories.make_results(factories.make_run())
    narrow = factories.make_results(factories.make_run(), routes=("socket",), layers=("libpq", "django_orm"))
    with django_assert_num_queries(QUERIES):
        text(admin_page, narrow, run)


#: Queries: session, user, the run, the other run, the choices, what was disturbed.
QUERIES = 6


@pytest.mark.parametrize(
    ("undecided", "said"), [(0, "shows no difference"), (1, "1 of 12"), (12, "12 of 12")]
)
def test_no_difference_is_not_claimed_where_intervals_are_too_wide(
    run: Run, undecided: int, said: str
) -> None:
    found = compare_runs(run, factories.make_results(factories.make_run()))
    over = [change for change in found.changes if change.measure == OVER]
    wide = [replace(change, outcome=INCONCLUSIVE) for change in over[:undecided]]
    rest = [replace(change, outcome=EQUIVALENT) for change in over[undecided:]]
    (sentence,) = replace(found, changes=tuple(wide + rest)).headlines
    assert said in sentence


def test_runs_without_libpq_are_not_said_to_be_relative_to_it(admin_page: Client) -> None:
    before, after = (
        factories.make_results(factories.make_run(), layers=("psycopg", "django_orm")) for _time in range(2)
    )
    shown = text(admin_page, after, before)
    prose = " ".join(re.findall(r'<p class="pgperf-prose">(.*?)</p>', shown, re.DOTALL))
    assert "relative to a layer of the same run" in prose
    assert "libpq" not in prose
