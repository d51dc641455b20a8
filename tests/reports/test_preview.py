"""The preview of a run before its request."""

from typing import Any

import pytest

from pgperf.core.layers import connecting
from pgperf.models import Benchmark, Target, Worker, Workload
from pgperf.reports import number_format
from pgperf.reports.preview import missing_layers, preview
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_preview_has_every_layer_and_route_and_what_they_take() -> None:
    factories.make_worker()
    shown = preview(factories.make_benchmark(), factories.make_database(), quick=True)
    assert shown.rows[0].title == "libpq (C)"
    assert shown.routes == ["socket", "tcp", "pgbouncer"]
    assert shown.variants == 17  # 5 layers over 3 routes, and two controls
    assert shown.estimate is not None
    assert shown.estimate.connections >= 17
    assert shown.time_s is not None
    assert shown.quick_time.endswith(f" {number_format.seconds(shown.time_s)}")
    assert shown.full_time
    assert not shown.refusal


def test_a_layer_that_no_worker_can_run_is_skipped_with_the_reason() -> None:
    factories.make_worker(psycopg2="not installed: pip install psycopg2")
    shown = preview(factories.make_benchmark(), factories.make_database(), quick=False)
    assert {row.title: row.reason for row in shown.rows}["psycopg2"] == "not installed: pip install psycopg2"
    assert shown.variants == 14


def test_one_worker_that_can_is_enough() -> None:
    workers = [factories.make_worker("a", libpq="not built"), factories.make_worker("b")]
    layers = factories.make_benchmark().layers
    assert missing_layers(layers, workers) == {}
    assert missing_layers(layers, workers[:1]) == {"libpq": "not built"}
    assert missing_layers(layers, []) == {}


def test_a_route_that_the_database_lacks_is_named() -> None:
    database = factories.make_database()
    database.targets.filter(route="tcp").update(enabled=False)
    shown = preview(factories.make_benchmark(), database, quick=True)
    assert shown.missing == ["tcp"]


def test_a_refused_run_names_the_reason() -> None:
    database = factories.make_database()
    database.targets.all().delete()
    shown = preview(factories.make_benchmark(), database, quick=True)
    assert "tcp" in shown.refusal
    assert shown.estimate is None


def test_a_mode_that_a_layer_lacks_is_not_counted() -> None:
    factories.make_worker()
    database = factories.make_database()
    simple = factories.make_benchmark(layers=["libpq", "psycopg2"], modes=["simple"], routes=["socket"])
    assert preview(simple, database, quick=True).variants == 4
    both = factories.make_benchmark(
        layers=["libpq", "psycopg2"], modes=["simple", "extended"], routes=["socket"]
    )
    assert preview(both, database, quick=True).variants == 5


def test_environments_are_named_with_what_workers_found(settings: Any) -> None:
    settings.PGPERF = {
        **settings.PGPERF,
        "ENVIRONMENTS": dict.fromkeys(("old", "stub", "new"), "/a/bin/python"),
    }
    worker = factories.make_worker()
    packages = {"Django": "5.2.1", "psycopg": "3.2.3"}
    found = {
        "old": {"python": "3.11.7", "pgperf": "0.1.0", "packages": packages},
        "stub": {"refusal": "other pgperf"},
    }
    Worker.objects.update(versions={**worker.versions, "environments": found})
    benchmark = factories.make_benchmark(
        layers=["libpq", "psycopg"], routes=["tcp"], environments=["default", "old", "stub", "new"]
    )
    shown = preview(benchmark, factories.make_database(), quick=True)
    named = {each.name: (each.versions, str(each.reason)) for each in shown.environments}
    assert named["old"] == ("Python 3.11.7, Django 5.2.1, psycopg 3.2.3", "")
    assert named["default"][0].startswith("Python 3.")
    assert named["stub"] == ("", "other pgperf")
    assert "does not have it" in named["new"][1]
    assert shown.variants == 5  # libpq, psycopg twice, and two controls
    lacking = {(each.layer, each.parts) for each in shown.lacking}
    assert ("libpq (C)", ("old", "stub", "new")) in lacking
    assert preview(factories.make_benchmark("other"), shown.database, quick=True).environments == ()


def test_what_a_layer_lacks_is_named_with_the_reason_before_the_run() -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark(
        layers=["psycopg2", "psycopg", "django_cursor"], routes=["tcp"], modes=["simple", "prepared"],
        connection_modes=["persistent", "pool", "request"],
    )  # fmt: skip
    found = preview(benchmark, factories.make_database(), quick=True).lacking
    named = {(each.layer, each.parts) for each in found}
    assert ("psycopg2", ("prepared",)) in named
    assert ("psycopg2", ("pool", "request")) in named
    assert ("psycopg 3", ("request",)) in named
    assert not any(each.layer == "Django cursor" for each in found)
    (pool,) = [each.reason for each in found if "pool" in each.parts]
    assert "psycopg2's own pool is not measured" in pool


def test_a_layer_whose_load_another_program_makes_lacks_the_open_loops_only() -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark(
        layers=["libpq", "pgbench"], routes=["tcp"], modes=["simple"], rates=[None, 100]
    )
    (found,) = preview(benchmark, factories.make_database(), quick=True).lacking
    assert (found.layer, found.parts) == ("pgbench", ("open loop",))


def test_a_layer_that_is_skipped_lacks_nothing_more() -> None:
    factories.make_worker(psycopg2="not installed")
    benchmark = factories.make_benchmark(
        layers=["psycopg2", "psycopg"], connection_modes=["persistent", "pool"]
    )
    assert preview(benchmark, factories.make_database(), quick=True).lacking == ()


@pytest.mark.parametrize(
    ("fields", "title", "reason"),
    [
        ({"layers": ["psycopg", "http"]}, "HTTP", "none of the routes has a URL"),
        (
            {"layers": ["psycopg", "django_cursor"], "row_type": "named"},
            "Django cursor",
            "Django's cursor gives",
        ),
        ({"layers": ["psycopg", "psycopg2"], "modes": ["prepared"]}, "psycopg2", "psycopg2 always binds"),
    ],
)
def test_a_layer_that_the_plan_leaves_out_does_not_run(
    fields: dict[str, Any], title: str, reason: str
) -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark(routes=["tcp"], **fields)
    shown = preview(benchmark, factories.make_database(), quick=True)
    left = next(row for row in shown.rows if row.title == title)
    assert left.reason.startswith(reason)
    assert {row.title: row.routes for row in shown.rows} == {"psycopg 3": ("tcp",), title: ()}
    assert title not in [each.layer for each in shown.lacking]


def test_a_layer_runs_over_routes_of_its_own_kind() -> None:
    factories.make_worker()
    database = factories.make_database()
    Target.objects.create(database=database, route="web", url="http://127.0.0.1:8000")
    books = Workload.objects.create(name="books", path="/books/")
    benchmark = factories.make_benchmark(layers=["libpq", "http"], routes=["tcp", "web"], workloads=[books])
    rows = preview(benchmark, database, quick=True).rows
    assert {row.title: row.routes for row in rows} == {"libpq (C)": ("tcp",), "HTTP": ("web",)}


NO_PACKAGE = "psycopg_pool is not installed here: pip install 'psycopg[pool]'"


def make_pool_benchmark() -> Benchmark:
    return factories.make_benchmark(
        layers=["psycopg"], routes=["tcp"], modes=["simple"], connection_modes=["persistent", "pool"]
    )


def lacking_pool(hostname: str) -> None:
    worker = factories.make_worker(hostname)
    worker.layers |= {"psycopg · pool": NO_PACKAGE}
    worker.save()


def test_a_pool_whose_package_no_worker_has_is_named_before_the_run() -> None:
    benchmark, database = make_pool_benchmark(), factories.make_database()
    complete = preview(benchmark, database, quick=True)
    lacking_pool("a")
    shown = preview(benchmark, database, quick=True)
    assert [(each.parts, each.reason) for each in shown.lacking] == [(("pool",), NO_PACKAGE)]
    assert shown.variants == complete.variants - 2  # and its control
    factories.make_worker("b")
    assert preview(benchmark, database, quick=True).lacking == ()


def test_a_worker_that_cannot_run_the_layer_says_nothing_of_its_pool() -> None:
    lacking_pool("a")
    factories.make_worker("b", psycopg="not installed")
    (found,) = preview(make_pool_benchmark(), factories.make_database(), quick=True).lacking
    assert found.reason == NO_PACKAGE


@pytest.mark.parametrize(
    ("layers", "names", "variants"),
    [(["libpq", "asyncpg"], ["default", "new"], 4), (["asyncpg"], ["new"], 2)],
)
def test_what_the_default_environment_lacks_another_may_have(
    layers: list[str], names: list[str], variants: int, settings: Any
) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"new": "/new/bin/python"}}
    worker = factories.make_worker(asyncpg="not installed")
    found = {"new": {"python": "3.13.0", "pgperf": "0.1.0", "packages": {"asyncpg": "0.31"}}}
    Worker.objects.update(versions={**worker.versions, "environments": found})
    benchmark = factories.make_benchmark(
        layers=layers, routes=["tcp"], modes=["extended"], environments=names
    )
    shown = preview(benchmark, factories.make_database(), quick=True)
    assert (shown.refusal, shown.variants) == ("", variants)
    assert [row.reason for row in shown.rows] == [""] * len(layers)


def test_a_pool_may_be_in_one_environment_only(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"new": "/new/bin/python"}}
    worker = factories.make_worker()
    pool = connecting("psycopg", "pool")
    found = {"new": {"python": "3.13.0", "pgperf": "0.1.0", "packages": {}}}
    Worker.objects.update(
        layers={**worker.layers, pool: "psycopg_pool is not installed"},
        versions={**worker.versions, "environments": found},
    )
    asked = {"layers": ["psycopg"], "routes": ["tcp"], "connection_modes": ["persistent", "pool"]}
    database = factories.make_database()
    both = preview(factories.make_benchmark(**asked, environments=["default", "new"]), database, quick=True)
    assert both.variants == 5  # persistent in both, the pool in one, and two controls
    assert [each.parts for each in both.lacking] == [("pool, default",)]
    alone = preview(factories.make_benchmark("other", **asked), database, quick=True)
    assert alone.variants == 2
