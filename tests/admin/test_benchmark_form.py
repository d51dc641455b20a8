"""The form that adds a benchmark."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.forms.models import model_to_dict
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from pgperf.admin.forms import RatesField
from pgperf.core.layers import DJANGO_DRIVERS, LAYERS, ladder_on
from pgperf.core.limits import RATE_HIGH, RATE_LOW
from pgperf.install import launch
from pgperf.models import Benchmark, Database, Target
from pgperf.reports.preview import preview
from tests import factories
from tests.admin.form_data import form_data
from tests.admin.users import staff_client
from tests.fuzz.browser import form

ADD = "admin:pgperf_benchmark_add"


def offered(client: Client) -> dict[str, Any]:
    return form_data(client.get(reverse(ADD)))


@pytest.mark.parametrize("driver", DJANGO_DRIVERS)
def test_a_new_benchmark_is_the_ladder_on_the_driver_that_django_uses(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    monkeypatch.setattr(launch, "django_driver", lambda: driver)
    data = offered(admin_page)
    assert data["layers"] == ["libpq", driver, "django_cursor", "django_orm"] == ladder_on(driver)
    assert (data["modes"], data["clients"], data["rates"]) == (["simple"], "1", "closed")
    assert [LAYERS[name].rung for name in data["layers"]] == sorted(LAYERS[n].rung for n in data["layers"])


def test_layers_that_no_worker_can_run_are_not_proposed_and_say_why(admin_page: Client) -> None:
    factories.make_worker(libpq="the C client is not built")
    data = offered(admin_page)
    assert "libpq" not in data["layers"]
    assert data["layers"][-1] == "django_orm"
    shown = admin_page.get(reverse(ADD)).content.decode()
    assert "libpq (C) (no worker can run it: the C client is not built)" in shown
    assert "fake" not in shown


def test_environments_are_boxes_by_name_where_the_settings_have_some(
    admin_page: Client, settings: Any
) -> None:
    shown = admin_page.get(reverse(ADD)).content.decode()
    assert '<input type="hidden" name="environments" value="default"' in shown
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    shown = admin_page.get(reverse(ADD)).content.decode()
    assert 'type="checkbox" name="environments" value="default"' in shown
    assert 'type="checkbox" name="environments" value="old"' in shown
    assert "/opt/old" not in shown


@pytest.mark.parametrize("wrong", ["/opt/old/bin/python", "gone", "broken"])
def test_a_form_can_name_configured_environments_only(admin_page: Client, settings: Any, wrong: str) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python", "broken": "python"}}
    workload = factories.make_benchmark().workloads[0]
    data = {
        **offered(admin_page),
        "name": "mine",
        "title": "Mine",
        "routes": "tcp",
        "workloads": [workload.pk],
    }
    answer = admin_page.post(reverse(ADD), {**data, "environments": ["default", wrong]})
    assert "environments" in answer.context["adminform"].form.errors
    assert not Benchmark.objects.filter(name="mine").exists()


def test_a_new_benchmark_says_what_its_name_and_its_title_are_for(admin_page: Client) -> None:
    shown = admin_page.get(reverse(ADD)).content.decode()
    assert 'placeholder="for commands, such as books-page"' in shown
    assert 'placeholder="for people, such as A page of books"' in shown


def test_the_routes_of_the_databases_are_boxes(admin_page: Client) -> None:
    factories.make_database()
    other = factories.make_database("other")
    other.targets.filter(route="tcp").update(enabled=False)
    shown = admin_page.get(reverse(ADD)).content.decode()
    assert 'name="routes" value="socket" id="id_routes_0" checked> socket' in shown
    assert 'name="routes" value="tcp" id="id_routes_1"> tcp</label>' in shown
    groups = re.findall('<div class="of-database" role="group" data-database="([0-9]+)".*?</div>', shown)
    assert groups == [str(Database.objects.get(name=name).pk) for name in ("demo", "other")]
    assert shown.count('name="routes" value="tcp"') == 1
    assert shown.count('name="routes" value="socket"') == 2


def test_boxes_and_typed_routes_are_one_list(admin_page: Client) -> None:
    factories.make_database()
    (workload,) = factories.make_benchmark().workloads
    data = offered(admin_page) | {"name": "own", "title": "Own", "workloads": [workload.pk]}
    data["routes"] = ["socket", "tcp", "tcp+1ms, socket"]
    assert admin_page.post(reverse(ADD), data).status_code == 302
    own = Benchmark.objects.get(name="own")
    assert own.routes == ["socket", "tcp", "tcp+1ms"]
    shown = admin_page.get(reverse("admin:pgperf_benchmark_change", args=[own.pk])).content.decode()
    assert 'name="routes" value="tcp" id="id_routes_1" checked' in shown
    assert 'name="routes" value="tcp+1ms" id="id_routes"' in shown


def test_a_name_and_a_workload_are_enough_for_a_new_benchmark(admin_page: Client) -> None:
    factories.make_database()
    (workload,) = factories.make_benchmark().workloads
    data = offered(admin_page) | {"name": "own", "title": "Own", "workloads": [workload.pk]}
    answer = admin_page.post(reverse(ADD), data)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert Benchmark.objects.get(name="own").routes == ["socket"]


def test_the_route_of_a_new_benchmark_is_direct_and_of_a_database_that_the_user_may_see(db: None) -> None:
    hidden = factories.make_database("hidden")
    hidden.groups.set([Group.objects.create(name="others")])
    client = staff_client("alice", "add_benchmark", "view_benchmark")
    assert "routes" not in offered(client) or not offered(client)["routes"]
    seen = Database.objects.create(name="seen", dbname="app", credential="alias:default")
    for route, pooler in (("pooled", "session"), ("near", "")):
        Target.objects.create(database=seen, route=route, host="127.0.0.1", pooler=pooler)
    assert offered(client)["routes"] == "near"


def estimate(client: Client, **fields: Any) -> dict[str, Any]:
    """What the page asks for while a user fills in the form, without a name."""
    given = {**offered(client), "title": "", **fields}
    answer = client.post(reverse("admin:pgperf_benchmark_estimate"), given)
    assert "no-store" in answer["Cache-Control"]
    return dict(answer.json())


def test_the_estimate_is_that_of_the_page_that_starts_the_run(admin_page: Client) -> None:
    factories.make_worker(libpq="the C client is not built")
    database = factories.make_database()
    (workload,) = factories.make_benchmark().workloads
    found = estimate(admin_page, workloads=[workload.pk], routes=["socket", "tcp"])
    saved = {**offered(admin_page), "name": "own", "title": "Own", "workloads": [workload.pk]}
    admin_page.post(reverse(ADD), saved | {"routes": ["socket", "tcp"]})
    shown = preview(Benchmark.objects.get(name="own"), database, quick=False)
    assert shown.estimate
    assert (found["variants"], found["connections"]) == (shown.variants, shown.estimate.connections)
    assert (found["quick_time"], found["full_time"]) == (shown.quick_time, shown.full_time)
    assert found["layers"] == ["psycopg 3", "Django cursor", "Django ORM"]
    assert not found["problem"]
    assert found["full_time"] in found["text"]


def test_more_clients_take_more_connections(admin_page: Client) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    few, many = (estimate(admin_page, workloads=work, clients=clients) for clients in ("1", "1, 8"))
    assert many["connections"] > few["connections"]
    assert many["variants"] > few["variants"]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("", [None]), ("closed", [None]), ("500", [500.0]), ("closed, 500 0.5", [None, 500.0, 0.5])],
)
def test_rates_are_numbers_and_the_word_closed(
    admin_page: Client, typed: str, kept: list[float | None]
) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    data = offered(admin_page) | {"name": "own", "title": "Own", "workloads": work, "rates": typed}
    admin_page.post(reverse(ADD), data)
    own = Benchmark.objects.get(name="own")
    assert own.rates == kept
    changed = admin_page.get(reverse("admin:pgperf_benchmark_change", args=[own.pk]))
    assert form_data(changed)["rates"] == ", ".join(
        "closed" if rate is None else f"{rate:g}" for rate in kept
    )


@pytest.mark.parametrize(
    "typed", ["0", "0.01", "-5", "nan", "1e9", "2000000", "open", "500, 500", "closed closed", "٥٠٠"]
)
def test_a_rate_that_no_run_would_take_is_refused_at_its_field(admin_page: Client, typed: str) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    data = offered(admin_page) | {"name": "own", "title": "Own", "workloads": work, "rates": typed}
    answer = admin_page.post(reverse(ADD), data)
    assert list(answer.context["adminform"].form.errors) == ["rates"]
    assert not Benchmark.objects.filter(name="own").exists()


def test_each_rate_adds_variants_that_use_the_same_connections(admin_page: Client) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    one, two = (estimate(admin_page, workloads=work, rates=rates) for rates in ("closed", "closed, 500"))
    assert two["variants"] > one["variants"]
    assert two["connections"] == one["connections"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("layers", ["nonsense"], "Layers: "),
        ("clients", "many", "Clients: "),
        ("rates", "many", "Rates (operations/s): "),
        ("routes", "Ü", "Routes: "),
        ("routes", "elsewhere", "demo has no enabled target for elsewhere"),
        ("database", "4711", "Default database: "),
        ("blocks", "0", "Blocks: "),
        ("rates", ", ".join(map(str, range(1, 3000))), "2999 rates make 11,996 combinations"),
        ("modes", ["extended"], ""),
    ],
)
def test_an_estimate_that_cannot_be_made_names_the_field(
    admin_page: Client, field: str, value: Any, said: str
) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    found = estimate(admin_page, **{"workloads": work, field: value})
    assert found["problem"] == bool(said)
    assert said in found["text"]


@pytest.mark.parametrize("field", ["workloads", "layers"])
def test_an_empty_field_is_asked_for_and_no_problem(admin_page: Client, field: str) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    found = estimate(admin_page, **{"workloads": work, field: []})
    text = f"Fill in {field.capitalize()} to see how long a run takes and what it needs."
    assert found == {"text": text, "problem": False}


def test_an_estimate_saves_nothing(admin_page: Client) -> None:
    factories.make_database()
    work = [factories.make_benchmark().workloads[0].pk]
    before = Benchmark.objects.count()
    estimate(admin_page, workloads=work, name="own")
    assert Benchmark.objects.count() == before


def test_an_estimate_names_no_hidden_database(db: None) -> None:
    hidden = factories.make_database("hidden")
    hidden.groups.set([Group.objects.create(name="others")])
    work = [factories.make_benchmark().workloads[0].pk]
    client = staff_client("alice", "add_benchmark", "view_benchmark")
    for database in ("", hidden.pk):
        found = estimate(client, workloads=work, routes="socket", database=database)
        assert found["problem"]
        assert "hidden" not in found["text"]


def test_what_has_a_default_is_folded(admin_page: Client) -> None:
    fieldsets = admin_page.get(reverse(ADD)).context["adminform"].fieldsets
    open_fields = [
        field for _title, options in fieldsets if "classes" not in options for field in options["fields"]
    ]
    assert open_fields == [("name", "title"), "workloads", "database", "routes"]


#: A benchmark's lists, whose first items are the baselines of comparisons.
LISTS = ("layers", "routes", "modes", "clients", "connection_modes", "environments", "rates", "load_hosts")


def stored(benchmark: Benchmark) -> dict[str, Any]:
    found = Benchmark.objects.get(pk=benchmark.pk)
    return {**model_to_dict(found), "workloads": [row.name for row in found.workloads]}


def save_unchanged(client: Client, benchmark: Benchmark, **more: str) -> None:
    """Open the form and send back what a browser would send, in the order of the page, and `more`."""
    page = reverse("admin:pgperf_benchmark_change", args=[benchmark.pk])
    data = form(client.get(page).content.decode(), "routes")
    answer = client.post(page, data | {name: [*data.get(name, []), new] for name, new in more.items()})
    assert answer.status_code == 302, answer.context["adminform"].form.errors


def databases_with_the_routes_of(benchmarks: Iterable[Benchmark]) -> None:
    """Two, so that some routes have boxes twice and others in the line of other routes."""
    factories.make_database()
    other = Database.objects.create(name="other", dbname="app", credential="alias:default")
    routes = {route for each in benchmarks for route in each.routes if "+" not in route}
    for route in sorted(routes)[::2]:
        Target.objects.create(database=other, route=route, host="127.0.0.1")


def test_saving_a_catalog_benchmark_unchanged_changes_nothing(admin_page: Client) -> None:
    benchmarks = list(Benchmark.objects.all())
    assert len(benchmarks) > 5
    databases_with_the_routes_of(benchmarks)
    for benchmark in benchmarks:
        before = stored(benchmark)
        save_unchanged(admin_page, benchmark)
        assert stored(benchmark) == before


@pytest.fixture
def reversed_lists(admin_page: Client, settings: Any) -> Benchmark:
    """A benchmark with each list in another order than the page has its boxes in."""
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python"}}
    database = factories.make_database()
    return factories.make_benchmark(
        layers=["django_orm", "psycopg", "libpq"],
        routes=["tcp+1ms", "tcp", "pgbouncer", "socket"],
        modes=["prepared", "simple"],
        clients=[8, 1],
        connection_modes=["per_operation", "persistent"],
        environments=["old", "default"],
        rates=[500.0, None],
        load_hosts=[1, 0],
        database=database,
    )


def test_saving_keeps_lists_in_their_order(admin_page: Client, reversed_lists: Benchmark) -> None:
    before = stored(reversed_lists)
    save_unchanged(admin_page, reversed_lists)
    assert stored(reversed_lists) == before
    assert LogEntry.objects.get().get_change_message() == "No fields changed."


def test_a_copy_saved_as_new_has_the_order_of_its_original(
    admin_page: Client, reversed_lists: Benchmark
) -> None:
    save_unchanged(admin_page, reversed_lists, _saveasnew="1", name="copy")
    copy = Benchmark.objects.get(name="copy")
    assert {name: getattr(copy, name) for name in LISTS} == {
        name: getattr(reversed_lists, name) for name in LISTS
    }


@pytest.mark.parametrize("wrong", [{"name": "no name"}, {"layers": []}, {"routes": "Ü"}])
def test_a_wrong_copy_is_shown_again_as_it_was_typed(
    admin_page: Client, reversed_lists: Benchmark, wrong: dict[str, Any]
) -> None:
    page = reverse("admin:pgperf_benchmark_change", args=[reversed_lists.pk])
    data = form_data(admin_page.get(page)) | {"name": "copy", "title": "A copy", **wrong, "_saveasnew": "1"}
    answer = admin_page.post(page, data)
    assert answer.status_code == 200
    assert list(wrong) == list(answer.context["adminform"].form.errors)
    assert form_data(answer)["title"] == "A copy"
    assert Benchmark.objects.filter(title="A copy").count() == 0


def test_what_is_ticked_anew_comes_last(admin_page: Client, reversed_lists: Benchmark) -> None:
    Benchmark.objects.update(routes=["tcp", "socket"], layers=["psycopg", "libpq"])
    save_unchanged(admin_page, reversed_lists, routes="pgbouncer", layers="django_cursor")
    found = Benchmark.objects.get(pk=reversed_lists.pk)
    assert found.routes == ["tcp", "socket", "pgbouncer"]
    assert found.layers == ["psycopg", "libpq", "django_cursor"]


def test_without_boxes_routes_have_the_order_in_which_they_are_typed(
    admin_page: Client, reversed_lists: Benchmark
) -> None:
    Target.objects.all().delete()
    page = reverse("admin:pgperf_benchmark_change", args=[reversed_lists.pk])
    data = form_data(admin_page.get(page)) | {"routes": "socket, tcp"}
    assert admin_page.post(page, data).status_code == 302
    assert Benchmark.objects.get(pk=reversed_lists.pk).routes == ["socket", "tcp"]


@given(st.floats(RATE_LOW, RATE_HIGH))
def test_the_form_reads_each_rate_as_it_shows_it(rate: float) -> None:
    field = RatesField()
    assert field.to_python(field.prepare_value([None, rate])) == [None, rate]
