"""The page of a benchmark's results over its runs, and its files."""

import csv
import io
import json
import re
import statistics
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pgperf.models import ChangePoint, Run
from pgperf.reports import history
from pgperf.runs import changes
from pgperf.runs.change_text import day
from tests import factories
from tests.admin.test_csp import inline_parts
from tests.histories import BASE, LABEL, make_history

pytestmark = pytest.mark.django_db


def address(run: Run, name: str = "") -> str:
    if name:
        return reverse("admin:pgperf_benchmark_runs_download", args=[run.benchmark_id, name])
    return reverse("admin:pgperf_benchmark_runs", args=[run.benchmark_id])


def page(client: Client, run: Run, **query: object) -> str:
    response = client.get(address(run), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def changed() -> list[Run]:
    """Runs with a slower step, another kernel and a note."""
    other = {**factories.ENVIRONMENT, "python": "3.13.0"}
    runs = make_history(
        24, lambda at: 10.0 if at < 16 else 22.0, lambda at: other if at >= 16 else factories.ENVIRONMENT
    )
    for run in runs:
        changes.record(run)
    Run.objects.filter(pk=runs[4].pk).update(notes="The disk was <full>.")
    return runs


def test_it_shows_changes_environment_and_notes(admin_page: Client, changed: list[Run]) -> None:
    shown = page(admin_page, changed[0])
    since = ChangePoint.objects.get(below=BASE).run_id
    assert f"psycopg 3 · socket: 12\u00a0µs slower since run {since}, " in shown
    assert "3.11.2" in shown
    assert "3.13.0" in shown
    assert "The disk was &lt;full&gt;." in shown
    assert "over libpq (C) · socket" in shown
    assert shown.count("<td data-value=") > 2 * len(changed)
    assert inline_parts(shown) == []


def test_a_change_of_the_headline_names_the_steps_that_changed(
    admin_page: Client, changed: list[Run]
) -> None:
    """The step's own change is told once, under the headline's."""
    shown = page(admin_page, changed[0])
    assert shown.count('class="pgperf-under pgperf-layer-change"') == 2
    told = shown.replace("\u00a0", " ")
    assert (
        "its time per operation, the headline figure (of a suite, the geometric mean), was 80 µs and is 92 µs"
        in told
    )
    assert (
        "psycopg 3 · socket over libpq (C) · socket: 12 µs slower (1.14 times before, 1.31 times now)" in told
    )
    assert "this step explains +12 µs of +12 µs" in told
    assert "its step over libpq (C) · socket was" not in shown


def test_few_runs_have_no_changes_yet(admin_page: Client) -> None:
    runs = make_history(8)
    shown = page(admin_page, runs[0])
    assert "There are too few runs to look for change points: 8 of 9" in shown
    assert "8 runs: from" in shown
    assert "o change point in" not in shown, "none was looked for"
    make_history(1)
    assert "too few runs" not in page(admin_page, runs[0])


def test_a_single_run_is_one_in_the_text_alternative(admin_page: Client) -> None:
    [run] = make_history(1)
    assert "over 1 run, in µs." in page(admin_page, run)


def test_a_run_may_have_every_mark(admin_page: Client, changed: list[Run]) -> None:
    since = ChangePoint.objects.get(below=BASE).run_id
    other = {"since": changed[0].pk, "differences": [["python", "3.11.2", "3.13.0"]]}
    Run.objects.filter(pk=since).update(notes="Upgraded.", environment_changes=other)
    assert '"kinds": ["change", "environment", "note"]' in page(admin_page, changed[0])


def test_another_step_can_be_chosen(admin_page: Client, changed: list[Run]) -> None:
    shown = page(admin_page, changed[0], variant=BASE)
    assert "libpq (C) · socket: time per operation" in shown
    assert "No change point in 24 runs" in shown
    unknown = page(admin_page, changed[0], variant="unknown · <b>")
    assert "<b>" not in unknown
    said = "These runs have no step “unknown · &lt;b&gt;”. The page shows another one."
    assert said in unknown
    assert "These runs have no step" not in shown
    assert "psycopg 3 · socket over libpq (C) · socket" in unknown


def test_a_route_that_the_newest_run_lacks_keeps_its_series(admin_page: Client) -> None:
    """As when PgBouncer is down."""
    both = ("socket", "pgbouncer")
    runs = [factories.make_results(factories.make_run(), routes) for routes in (both, both, both[:1])]
    label = "django_orm · pgbouncer"
    shown = page(admin_page, runs[0], variant=label)
    assert f'<option value="{label}" selected>' in shown
    values = chart_of(shown)["series"][0]["values"]
    assert [value is None for value in values] == [False, False, True]
    measured = [run.pk for run in runs[:2]]
    table = csv.DictReader(io.StringIO(admin_page.get(address(runs[0], "history.csv")).content.decode()))
    assert [int(row["run_id"]) for row in table if row["variant"] == label] == measured
    data = json.loads(admin_page.get(address(runs[0], "history.json")).content)
    (series,) = [each for each in data["series"] if each["variant"] == label]
    assert [each["run"] for each in series["points"]] == measured


def test_a_variant_keeps_its_step_over_each_layer_below_it(admin_page: Client) -> None:
    """The layer below may be lost for good: all later runs have the step of the newest run alone."""
    layers, label = ("libpq", "psycopg", "django_cursor"), "django_cursor · socket"
    runs = make_history(2, layers=layers) + make_history(1, layers=(layers[0], layers[2]))
    for name, below, lacks in (
        (label, "psycopg 3 · socket", [False, False, True]),
        (f"{label} over {BASE}", "libpq (C) · socket", [True, True, False]),
    ):
        shown = page(admin_page, runs[0], variant=name)
        assert f'<option value="{name}" selected>Django cursor · socket over {below}</option>' in shown
        assert [value is None for value in chart_of(shown)["series"][0]["values"]] == lacks
        assert "These runs have no step" not in shown
    table = csv.DictReader(io.StringIO(admin_page.get(address(runs[0], "history.csv")).content.decode()))
    assert [(row["run_id"], row["below"]) for row in table if row["variant"] == label] == [
        (str(runs[0].pk), LABEL), (str(runs[1].pk), LABEL), (str(runs[2].pk), BASE),
    ]  # fmt: skip


def test_a_second_step_keeps_its_name_in_the_links_to_other_runs(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PER_PAGE", 2)
    layers = ("libpq", "psycopg", "django_cursor")
    runs = make_history(3, layers=layers) + make_history(2, layers=(layers[0], layers[2]))
    name = f"django_cursor · socket over {BASE}"
    shown = page(admin_page, runs[0], variant=name)
    assert f"{urlencode({'variant': name})}&amp;before=" in shown
    earlier = page(admin_page, runs[0], variant=name, before=runs[3].pk)
    assert f'&amp;variant={quote(name, safe="")}">The latest runs' in earlier


def test_a_layer_that_only_the_newest_run_has_is_shown(admin_page: Client) -> None:
    """The fuller run is another one."""
    runs = make_history(2, layers=("libpq", "django_cursor", "django_orm"))
    runs += make_history(1, layers=("libpq", "psycopg"))
    shown = page(admin_page, runs[0], variant=LABEL)
    assert f'<option value="{LABEL}" selected>' in shown
    values = chart_of(shown)["series"][0]["values"]
    assert [value is None for value in values] == [True, True, False]


def test_the_page_opens_on_the_layer_nearest_to_the_user_of_either_run(admin_page: Client) -> None:
    """The newest run has a layer more, below that one, and a route less."""
    both, layers = ("socket", "tcp"), ("libpq", "django_cursor", "django_orm")
    factories.make_results(factories.make_run(), both, layers)
    newest = factories.make_results(factories.make_run(), both[:1], (layers[0], "psycopg", *layers[1:]))
    shown = page(admin_page, newest)
    assert '<option value="django_orm · socket" selected>' in shown
    assert '<option value="psycopg · socket">' in shown


def test_a_change_of_a_suite_s_headline_figure_leads_to_its_page_without_a_warning(
    admin_page: Client,
) -> None:
    """Its label names no workload, and no step has that label."""
    runs, label = make_history(2), "django_orm · socket"
    ChangePoint.objects.create(
        run=runs[1], label=label, found_by=runs[1].pk, before_us=1.0, after_us=2.0, low_us=0.5, high_us=1.5,
    )  # fmt: skip
    assert "These runs have no step" not in page(admin_page, runs[0], variant=label)
    assert "These runs have no step" in page(admin_page, runs[0], variant="django_orm · tcp")


def test_without_a_result_it_says_so(admin_page: Client) -> None:
    run = factories.make_run(Run.Status.FAILED)
    shown = page(admin_page, run)
    assert "no result yet" in shown
    assert reverse("admin:pgperf_benchmark_run", args=[run.benchmark_id]) in shown
    assert admin_page.get(address(run, "history.csv")).status_code == 404


def test_results_on_a_deleted_database_are_told(admin_page: Client) -> None:
    run = make_history(2)[0]
    assert run.database
    run.database.delete()
    shown = page(admin_page, run)
    assert "The databases of this benchmark’s 2 results were deleted." in shown
    assert "no result yet" not in shown


def test_a_definition_without_results_is_told_from_a_benchmark_without_any(admin_page: Client) -> None:
    """As an e-mail's link leads to it after its runs were pruned, or that of a failed run."""
    [run] = make_history(1)
    for query in ({"definition": "0" * 64}, {"database": 4711}):
        shown = page(admin_page, run, **query)
        assert "You see no result of this definition on this database." in shown
        assert f'<a href="{address(run)}">Other results of this benchmark</a>' in shown
        assert "no result yet" not in shown


@pytest.mark.parametrize(
    "query", [{"database": "x"}, {"before": "-1"}, {"before": "²"}, {"database": "9" * 40}]
)
def test_a_malformed_address_is_not_found(
    admin_page: Client, changed: list[Run], query: dict[str, str]
) -> None:
    assert admin_page.get(address(changed[0]), query).status_code == 404


def test_each_definition_and_database_has_runs_of_its_own(admin_page: Client) -> None:
    first = make_history(3)
    second = make_history(2, database=factories.make_database("other"), definition_hash="ab" * 32)
    shown = page(admin_page, first[0])
    assert "On the database other" in shown
    assert f"#{second[0].pk} · " in shown
    assert f"#{first[0].pk} · " not in shown
    assert "definition 9f2c9f2c: 3 runs" in shown
    earlier = page(admin_page, first[0], database=first[0].database_id)
    assert f"#{first[0].pk} · " in earlier


def chart_of(shown: str) -> dict[str, Any]:
    """The data of the first chart."""
    (data,) = re.findall(r'<script id="chart-history-1-data" type="application/json">(.*?)</script>', shown)
    found: dict[str, Any] = json.loads(data)
    return found


def test_all_runs_are_on_one_chart_and_a_page_of_them_in_the_table(
    admin_page: Client, changed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PER_PAGE", 10)
    shown, numbers = page(admin_page, changed[0]), [run.pk for run in changed]
    assert chart_of(shown)["ticks"] == numbers
    assert "24 runs." in shown
    assert f"The table has the runs #{numbers[14]} to #{numbers[-1]}." in shown
    assert "14 earlier runs" in shown
    assert f"before={numbers[14]}" in shown
    assert f"#{numbers[13]} · " not in shown
    earlier = page(admin_page, changed[0], before=numbers[14])
    assert chart_of(earlier) == chart_of(shown)
    assert f"#{numbers[13]} · " in earlier
    assert f"#{numbers[14]} · " not in earlier
    assert "4 earlier runs" in earlier
    assert "The latest runs" in earlier


def test_a_chart_has_the_latest_runs_or_those_up_to_the_table(
    admin_page: Client, changed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", 10)
    shown, numbers = page(admin_page, changed[0]), [run.pk for run in changed]
    assert chart_of(shown)["ticks"] == numbers[14:]
    assert "The latest 10 runs." in shown
    earlier = page(admin_page, changed[0], before=numbers[14])
    assert chart_of(earlier)["ticks"] == numbers[4:14]
    assert "10 earlier runs." in earlier
    assert chart_of(page(admin_page, changed[0], before=numbers[0])) == chart_of(shown)


def test_the_chart_has_the_median_of_each_level_and_exact_marks(
    admin_page: Client, changed: list[Run]
) -> None:
    chart = chart_of(page(admin_page, changed[0]))
    values, level = (series["values"] for series in chart["series"])
    assert level == [statistics.median(values[:16])] * 16 + [statistics.median(values[16:])] * 8
    marks = {mark["at"]: mark["kinds"] for mark in chart["happened"]}
    assert marks == {4: ["note"], 16: ["change", "environment"]}


def test_the_text_alternative_of_more_runs_than_the_table_has_tells_the_finding(admin_page: Client) -> None:
    runs = make_history(history.PER_PAGE + 30)
    ChangePoint.objects.create(
        run=runs[20], label=LABEL, below=BASE, found_by=runs[25].pk, before_us=10.0, after_us=22.0,
        low_us=11.0, high_us=13.0,
    )  # fmt: skip
    shown = page(admin_page, runs[0])
    assert len(chart_of(shown)["x"]) == len(runs)
    assert f"#{runs[20].pk} · " not in shown
    finding = f"psycopg 3 · socket: 12 µs slower since run {runs[20].pk}, {day(runs[20])}."
    assert re.search(
        rf'role="img" aria-label="[^"]* over {len(runs)} runs, [^"]*{re.escape(finding)}"', shown
    )


def test_as_many_queries_for_many_runs_as_for_few(client_of: Callable[[str], Client]) -> None:
    client, counts = client_of("exporter"), []
    for count in (3, 40):
        runs = make_history(count, layers=("libpq", "psycopg", "django_cursor", "django_orm"))
        for path in (address(runs[0]), address(runs[0], "history.csv")):
            client.get(path)
            with CaptureQueriesContext(connection) as asked:
                assert client.get(path).status_code == 200
            counts.append(len(asked))
    assert counts[:2] == counts[2:]
    assert counts[0] <= 25


def test_no_query_loads_large_columns(admin_page: Client, changed: list[Run]) -> None:
    with CaptureQueriesContext(connection) as asked:
        page(admin_page, changed[0])
    of_run = [f'"pgperf_run"."{name}"' for name in ("definition", "environment", "timings", "summary")]
    large = [*of_run, '"pgperf_variantresult"."latency_us"']
    assert not [query["sql"] for query in asked for name in large if name in query["sql"]]


def test_runs_that_groups_hide_are_not_shown(
    client_of: Callable[[str], Client], admin_page: Client, changed: list[Run]
) -> None:
    """Neither they, nor their changes, nor what the next run's environment is compared with."""
    Run.objects.filter(pk__in=[run.pk for run in changed[:20]]).update(restricted=True, notes="hushed")
    change = ChangePoint.objects.get(below=BASE)
    assert change.run_id in [run.pk for run in changed[:20]]
    viewer = page(client_of("viewer"), changed[0])
    assert "hushed" not in viewer
    assert "slower since" not in viewer
    assert "3.13.0" not in viewer
    assert f"#{changed[19].pk}" not in viewer
    assert f"#{changed[20].pk}" in viewer
    assert "hushed" in page(admin_page, changed[0])


def test_a_level_of_hidden_runs_is_not_told(
    client_of: Callable[[str], Client], admin_page: Client, changed: list[Run]
) -> None:
    """The change begins with a run that is seen, and the level before it is of hidden ones."""
    Run.objects.filter(pk__in=[run.pk for run in changed[:3]]).update(restricted=True)
    viewer = page(client_of("viewer"), changed[0])
    assert f"#{changed[10].pk}" in viewer
    assert "slower since" not in viewer
    assert "slower since" in page(admin_page, changed[0])


def test_a_hidden_database_is_no_choice(client_of: Callable[[str], Client]) -> None:
    runs = make_history(2)
    hidden = factories.make_database("hushed")
    make_history(2, database=hidden)
    hidden.groups.add(Group.objects.create(name="insiders"))
    assert "hushed" not in page(client_of("viewer"), runs[0])


def test_the_files_have_every_step(client_of: Callable[[str], Client], changed: list[Run]) -> None:
    client = client_of("exporter")
    table = list(csv.DictReader(io.StringIO(client.get(address(changed[0], "history.csv")).content.decode())))
    assert len(table) == 2 * len(changed)
    since = ChangePoint.objects.get(below=BASE).run_id
    assert [(row["run_id"], row["variant"]) for row in table if row["change"] == "1"] == [(str(since), LABEL)]
    data = json.loads(client.get(address(changed[0], "history.json")).content)
    assert [run["id"] for run in data["runs"]] == [run.pk for run in changed]
    assert [(each["variant"], each["below"]) for each in data["series"]] == [(BASE, None), (LABEL, BASE)]
    assert data["changes"][0]["run"] == since
    assert data["series"][1]["points"][0]["us"] == float(table[len(changed)]["us"])


def test_a_note_is_no_formula(client_of: Callable[[str], Client], changed: list[Run]) -> None:
    Run.objects.filter(pk=changed[0].pk).update(notes="=1+1")
    text = client_of("exporter").get(address(changed[0], "history.csv")).content.decode()
    assert ",=1+1" not in text


def test_pages_link_to_it(admin_page: Client, changed: list[Run]) -> None:
    run = changed[-1]
    for name, number in (("pgperf_benchmark_change", run.benchmark_id), ("pgperf_run_change", run.pk)):
        assert address(run) in admin_page.get(reverse(f"admin:{name}", args=[number])).content.decode()
    dashboard = admin_page.get(reverse("admin:app_list", args=["pgperf"])).content.decode()
    assert address(run) in dashboard
    assert '<line class="change"' in dashboard


def test_after_one_run_of_another_definition_pages_lead_to_the_longest_series(
    admin_page: Client, client_of: Callable[[str], Client]
) -> None:
    first = make_history(3)[0]
    make_history(2, definition_hash="cd" * 32)
    [last] = make_history(1, definition_hash="ab" * 32)
    line = f"{address(first)}?database={first.database_id}&amp;definition={first.definition_hash}"
    dashboard = admin_page.get(reverse("admin:app_list", args=["pgperf"])).content.decode()
    assert f'href="{line}" aria-label="orm-overhead over its runs: longest series (' in dashboard
    named = "The longest series of this benchmark: 3 runs of definition 9f2c9f2c on demo"
    run_page = reverse("admin:pgperf_run_change", args=[last.pk])
    assert f'<a href="{line}">{named}</a>' in admin_page.get(run_page).content.decode()
    Run.objects.filter(definition_hash=first.definition_hash).update(restricted=True)
    shown = client_of("viewer").get(run_page).content.decode()
    assert "The longest series of this benchmark: 2 runs of definition cdcdcdcd on demo" in shown


def test_the_first_run_of_a_series_is_not_led_to_itself(admin_page: Client) -> None:
    first = make_history(3)[0]
    shown = admin_page.get(reverse("admin:pgperf_run_change", args=[first.pk])).content.decode()
    assert "You see no earlier completed run of this definition" in shown
    assert "longest series" not in shown


def test_the_first_run_of_the_longest_series_is_not_led_to_a_shorter_one(admin_page: Client) -> None:
    first = make_history(3)[0]
    make_history(2, definition_hash="cd" * 32)
    shown = admin_page.get(reverse("admin:pgperf_run_change", args=[first.pk])).content.decode()
    assert "You see no earlier completed run of this definition" in shown
    assert "longest series" not in shown


def test_the_dashboard_links_to_it_after_one_run(admin_page: Client) -> None:
    [run] = make_history(1)
    shown = admin_page.get(reverse("admin:app_list", args=["pgperf"])).content.decode()
    assert address(run) in shown
    assert "no earlier run like it" in shown


def test_a_much_disturbed_run_is_marked_on_the_page_and_in_the_files(
    admin_page: Client, changed: list[Run]
) -> None:
    for row in changed[3].variants.filter(label=BASE):
        row.verdict = {"word": "client_cpu", "grade": {"word": "poor", "share": 0.4, "disturbances": []}}
        row.save()
    shown = page(admin_page, changed[0])
    assert shown.count("much disturbed</td>") == 1
    assert '"hollow": [false, false, false, true, false' in shown.replace("\\u0022", '"')
    table = csv.DictReader(io.StringIO(admin_page.get(address(changed[0], "history.csv")).content.decode()))
    assert {row["run_id"] for row in table if row["disturbed"] == "1"} == {str(changed[3].pk)}
    data = json.loads(admin_page.get(address(changed[0], "history.json")).content)
    doubted = [each["run"] for series in data["series"] for each in series["points"] if each["disturbed"]]
    assert set(doubted) == {changed[3].pk}
