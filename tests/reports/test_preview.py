"""The preview of a run before its request."""

import pytest

from pgperf.reports.preview import preview, skipped_layers
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
    assert shown.quick_time
    assert shown.full_time
    assert not shown.refusal


def test_a_layer_that_no_worker_can_run_is_skipped_with_the_reason() -> None:
    factories.make_worker(psycopg2="not installed: pip install psycopg2")
    shown = preview(factories.make_benchmark(), factories.make_database(), quick=False)
    assert {row.title: row.reason for row in shown.rows}["psycopg2"] == "not installed: pip install psycopg2"
    assert shown.variants == 14


def test_one_worker_that_can_is_enough() -> None:
    workers = [factories.make_worker("a", libpq="not built"), factories.make_worker("b")]
    assert skipped_layers(factories.make_benchmark(), workers) == {}
    assert skipped_layers(factories.make_benchmark(), workers[:1]) == {"libpq": "not built"}
    assert skipped_layers(factories.make_benchmark(), []) == {}


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
