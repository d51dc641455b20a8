"""Layers that a workload has no function for."""

from typing import Any

import pytest

from pgperf import registry
from pgperf.core.records import WorkloadDefinition
from pgperf.workloads import forms
from tests.runner.builders import definition

LAYERS = ("psycopg", "django_orm", "django_orm_psycopg2", "django_orm_async")


def left_out(work: WorkloadDefinition) -> dict[str, str]:
    return {each.layer: each.reason for each in forms.lacking(definition(layers=LAYERS, workloads=(work,)))}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "WORKLOADS", {})

    @registry.workload("shop.sync")
    def sync() -> None: ...

    @registry.workload("shop.both")
    def both() -> None: ...

    @registry.workload("shop.both")
    async def aboth() -> None: ...

    @registry.workload("shop.only_async")
    async def only_async() -> None: ...


def test_a_function_alone_leaves_out_the_asynchronous_layer() -> None:
    found = left_out(WorkloadDefinition("w", "", orm="shop.sync"))
    assert list(found) == ["django_orm_async"]
    assert found["django_orm_async"].startswith("orm: shop.sync has no async function")


def test_an_async_function_alone_leaves_out_the_other_layers_of_the_orm() -> None:
    assert list(left_out(WorkloadDefinition("w", "", orm="shop.only_async"))) == [
        "django_orm",
        "django_orm_psycopg2",
    ]


@pytest.mark.parametrize("first", [{"orm": "shop.both"}, {"query": {"model": "auth.User", "fetch": "list"}}])
def test_the_second_query_of_the_cold_phases_needs_the_form_too(first: dict[str, Any]) -> None:
    found = left_out(WorkloadDefinition("w", "", other_orm="shop.sync", **first))
    assert list(found) == ["django_orm_async"]
    assert found["django_orm_async"].startswith("orm: shop.sync has no async function")
    found = left_out(WorkloadDefinition("w", "", other_orm="shop.only_async", **first))
    assert list(found) == ["django_orm", "django_orm_psycopg2"]


@pytest.mark.parametrize(
    "work",
    [
        WorkloadDefinition("both", "", orm="shop.both"),
        WorkloadDefinition("both queries", "", orm="shop.both", other_orm="shop.both"),
        WorkloadDefinition("without code", "", query={"model": "auth.User", "fetch": "list"}),
        WorkloadDefinition("of pgperf", "SELECT 1", orm="pgperf.light"),
        WorkloadDefinition("unknown", "", orm="shop.unknown"),
    ],
    ids=lambda work: work.name,
)
def test_no_layer_is_left_out(work: WorkloadDefinition) -> None:
    assert left_out(work) == {}
