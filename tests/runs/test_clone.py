"""New benchmarks from existing ones and from runs."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group

from pgperf.core.exceptions import InvalidDefinition
from pgperf.models import Benchmark, Run, Workload
from pgperf.runs import clone
from pgperf.runs.definitions import freeze
from tests import factories
from tests.transfer.test_resources import SAMPLES, site  # noqa: F401

pytestmark = pytest.mark.django_db


def values(benchmark: Benchmark) -> dict[str, Any]:
    several = {field.name: field.value_from_object(benchmark) for field in Benchmark._meta.many_to_many}
    return (
        {field.name: getattr(benchmark, field.name) for field in Benchmark._meta.concrete_fields}
        | several
        | {"workloads": benchmark.workloads}
    )


def run_column(benchmark: Benchmark, **fields: Any) -> Run:
    database = factories.make_database()
    definition = freeze(benchmark, database)
    run = factories.make_run(
        benchmark=benchmark, database=database, definition=definition.to_json(), definition_hash=definition.digest(),
        **fields,
    )  # fmt: skip
    run.refresh_from_db()
    return run


def test_a_clone_differs_only_in_its_name(site: Any) -> None:  # noqa: F811
    original = site[Benchmark]
    copy = clone.clone(original)
    copy.refresh_from_db()
    assert copy.pk != original.pk
    assert values(copy) == {**values(original), "id": copy.pk, "name": f"{SAMPLES[Benchmark]['name']}-copy"}
    copy.layers.append("psycopg2")
    assert original.layers == SAMPLES[Benchmark]["layers"]


def test_names_are_new_and_short_enough() -> None:
    first = factories.make_benchmark("mine")
    assert [clone.clone(first).name for _ in range(3)] == ["mine-copy", "mine-copy-2", "mine-copy-3"]
    assert clone.clone(Benchmark.objects.get(name="mine-copy-2")).name == "mine-copy-4"
    long = factories.make_benchmark("x" * 60)
    names = [clone.clone(long).name for _ in range(2)]
    assert names == ["x" * 55 + "-copy", "x" * 53 + "-copy-2"]


@pytest.mark.parametrize("of", ["benchmark", "run"])
def test_a_name_that_another_process_takes_meanwhile(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = factories.make_benchmark("mine")
    run, stale, free_name = run_column(benchmark), ["mine"], clone.free_name
    monkeypatch.setattr(clone, "free_name", lambda *given: stale.pop() if stale else free_name(*given))
    made = clone.clone(benchmark) if of == "benchmark" else clone.from_run(run, Workload.objects.all())
    assert made.name == "mine-copy"
    assert not stale


def test_a_benchmark_from_a_run_has_the_same_definition() -> None:
    second = Workload.objects.create(name="second", title="Second", sql="SELECT 2")
    benchmark = factories.make_benchmark(
        clients=[1, 4], slice_ms=250, placement="together",
        workloads=[second, *factories.make_benchmark().workloads],
    )  # fmt: skip
    benchmark.groups.add(Group.objects.create(name="readers"))
    run = run_column(benchmark)
    before = values(benchmark)
    Benchmark.objects.filter(pk=benchmark.pk).update(clients=[1], blocks=99, layers=["libpq"])
    assert not clone.needs_workload(run, Workload.objects.all())
    made = clone.from_run(run, Workload.objects.all())
    given = {
        "id": made.pk,
        "name": "orm-overhead-copy",
        "description": made.description,
        "database": run.database,
    }
    assert values(made) == {**before, **given}
    assert f"run {run.pk}" in made.description
    assert run.database is not None
    again = json.loads(json.dumps(freeze(made, run.database).to_json()))
    assert {**again, "seed": 0, "benchmark": ""} == {**run.definition, "seed": 0, "benchmark": ""}


def test_a_benchmark_from_a_test_of_a_verdict_does_not_fill_its_budget() -> None:
    run = run_column(factories.make_benchmark())
    run.definition |= {"precision": 0.0, "blocks": 6, "budget_s": 330, "ends_after_blocks": True}
    made = clone.from_run(run, Workload.objects.all())
    assert (made.precision, made.blocks, made.budget_s) == (0.0, 6, 0)
    run.definition |= {"ends_after_blocks": False}
    assert clone.from_run(run, Workload.objects.all()).budget_s == 330


def test_a_changed_or_deleted_workload_is_restored_under_a_new_name() -> None:
    run = run_column(factories.make_benchmark())
    workload = Workload.objects.get(name="site-by-domain")
    sql = workload.sql
    Workload.objects.filter(pk=workload.pk).update(sql="SELECT 1 AS changed", orm="")
    assert clone.needs_workload(run, Workload.objects.all())
    made = clone.from_run(run, Workload.objects.all())
    assert (made.workloads[0].name, made.workloads[0].sql, made.workloads[0].orm) == (
        "site-by-domain-copy",
        sql,
        workload.orm,
    )
    Benchmark.objects.all().delete()
    Workload.objects.all().delete()
    run.refresh_from_db()
    assert clone.from_run(run, Workload.objects.all()).workloads[0].sql == sql


def test_a_query_without_code_is_restored() -> None:
    workload = Workload.objects.create(
        name="books",
        title="Books",
        model="books.Book",
        fetch="list",
        ordering=["pk"],
        limit=5,
        lookup={"pk__gte": 1},
    )
    run = run_column(factories.make_benchmark(workloads=[workload], layers=["django_orm"]))
    assert not clone.needs_workload(run, Workload.objects.all())
    Workload.objects.filter(pk=workload.pk).update(limit=6)
    assert clone.needs_workload(run, Workload.objects.all())
    made = clone.from_run(run, Workload.objects.all()).workloads[0]
    assert (made.name, made.query) == ("books-copy", workload.query)


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"workload": {}},
        {"workload": {"name": "x"}},
        {"workload": {"name": "x", "sql": "SELECT 1"}, "layers": ["no"]},
    ],
)
def test_an_unsupported_definition_is_refused(definition: dict[str, Any]) -> None:
    run = factories.make_run(definition=definition)
    before = Workload.objects.count(), Benchmark.objects.count()
    with pytest.raises(InvalidDefinition):
        clone.from_run(run, Workload.objects.all())
    assert (Workload.objects.count(), Benchmark.objects.count()) == before
