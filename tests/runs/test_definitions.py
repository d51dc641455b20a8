"""The frozen definition of a run, and the refusal of each wrong field."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from pgperf import registry
from pgperf.core import limits, site_start
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Definition
from pgperf.db import validators
from pgperf.models import Target, Workload
from pgperf.runs.definitions import Overrides, freeze, missing_routes, starting_here
from tests.factories import LAYER_NAMES, ROUTES, make_benchmark, make_database

pytestmark = pytest.mark.django_db


def test_a_definition_has_the_saved_values() -> None:
    definition = freeze(make_benchmark(blocks=7, rounds=3, slice_ms=250), make_database())
    assert (definition.layers, definition.routes) == (LAYER_NAMES, ROUTES)
    assert (definition.blocks, definition.rounds, definition.slice_ms) == (7, 3, 250)
    assert (definition.workloads[0].name, definition.workloads[0].args) == (
        "site-by-domain",
        ("example.com",),
    )


def test_a_stored_definition_is_equal() -> None:
    definition = freeze(make_benchmark(), make_database())
    assert Definition.from_json(definition.to_json()) == definition


@pytest.mark.parametrize("count", [0, 13])
def test_a_run_has_one_to_twelve_workloads(count: int) -> None:
    chosen = [Workload.objects.create(name=f"w{at}", title="W", sql="SELECT 1") for at in range(13)]
    database = make_database()
    refusal = rf"^workloads: the benchmark has {count}; choose 1 to 12$"
    with pytest.raises(InvalidDefinition, match=refusal):
        freeze(make_benchmark(workloads=chosen[:count]), database)
    assert len(freeze(make_benchmark(workloads=chosen[:12]), database).workloads) == 12


def test_a_run_may_have_some_of_the_workloads() -> None:
    chosen = [Workload.objects.create(name=f"w{at}", title="W", sql="SELECT 1") for at in range(3)]
    benchmark, database = make_benchmark(workloads=chosen), make_database()
    found = freeze(benchmark, database, Overrides(workloads=["w2", "w0"]))
    assert [work.name for work in found.workloads] == ["w0", "w2"]
    for wrong, said in ((["w0", "w9"], "w9"), ([], "none")):
        with pytest.raises(InvalidDefinition, match=rf"^workloads: {said}; choose from w0, w1, w2$"):
            freeze(benchmark, database, Overrides(workloads=wrong))


def test_own_workloads_know_how_long_the_site_takes_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_start, "seconds", lambda: 2.5)
    own = Workload.objects.create(name="own", title="Own", orm="site.call")
    given = Workload.objects.create(name="given", title="Given", sql="SELECT 1")
    definition = freeze(make_benchmark(workloads=[own, given]), make_database())
    assert {work.name: work.start_s for work in definition.workloads} == {"own": 2.5, "given": 0.0}
    stored = Definition.from_json(definition.to_json())
    assert "start_s" not in definition.to_json()["workloads"][0]
    assert stored == definition
    assert starting_here(stored).work("own").start_s == 2.5


def test_web_servers_that_a_hook_starts_anew_load_the_site(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["http://127.0.0.1:8000"]}
    monkeypatch.setattr(site_start, "seconds", lambda: 2.5)
    monkeypatch.setattr(registry, "BLOCK_HOOKS", {("site", "anew"): print})
    database = make_database()
    database.targets.create(route="web", url="http://127.0.0.1:8000")
    page = Workload.objects.create(name="page", title="Page", path="/")
    found = freeze(make_benchmark(workloads=[page], layers=["http"], routes=["web"]), database)
    assert found.restart_s == 3.0
    assert "restart_s" not in found.to_json()
    assert starting_here(Definition.from_json(found.to_json())).restart_s == 3.0
    assert freeze(make_benchmark("other"), database).restart_s == 0.0
    monkeypatch.setattr(registry, "BLOCK_HOOKS", {})
    assert starting_here(found).restart_s == 0.0


def test_environments_are_chosen_by_the_names_of_the_settings(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": {"old": "/opt/old/bin/python", "broken": "python"}}
    benchmark, database = make_benchmark(environments=["default", "old"]), make_database()
    assert freeze(benchmark, database).environments == ("default", "old")
    assert freeze(benchmark, database, Overrides(environments=["old"])).environments == ("old",)
    for wrong in ("/opt/old/bin/python", "gone", "broken", "../old", ""):
        with pytest.raises(
            InvalidDefinition, match=r"^environments: PGPERF\['ENVIRONMENTS'\] has no"
        ) as refused:
            freeze(benchmark, database, Overrides(environments=["default", wrong]))
        assert "Choose from: default, old" in str(refused.value)
    for bad in ([], ["old", "old"], "old", [1]):
        with pytest.raises(InvalidDefinition, match=r"^environments: "):
            freeze(benchmark, database, Overrides(environments=bad))  # type: ignore[arg-type]


def test_two_definitions_differ_in_the_seed_but_not_in_the_hash() -> None:
    benchmark, database = make_benchmark(), make_database()
    first, second = freeze(benchmark, database), freeze(benchmark, database)
    assert first.seed != second.seed
    assert first.digest() == second.digest()


def test_quick_keeps_layers_and_routes() -> None:
    definition = freeze(make_benchmark(blocks=20, rounds=9), make_database(), Overrides(quick=True))
    assert (definition.layers, definition.routes) == (LAYER_NAMES, ROUTES)
    assert (definition.blocks, definition.rounds) == (limits.BLOCKS.quick, limits.ROUNDS.quick)
    assert definition.slice_ms == 0  # the pilot sets it, as in a full run
    assert definition.lead_in_ms == limits.QUICK_LEAD_IN_MS
    assert definition.cold_blocks == limits.QUICK_COLD_BLOCKS


@pytest.mark.parametrize(
    ("saved", "overrides", "expected"),
    [
        (2000, Overrides(), 2000),
        (2000, Overrides(quick=True), limits.DIAGNOSTIC_MS.quick),
        (100, Overrides(quick=True), 100),
        (0, Overrides(quick=True), 0),
        (0, Overrides(quick=True, diagnostic_ms=3000), 3000),
        (2000, Overrides(diagnostic_ms=0), 0),
    ],
)
def test_the_length_of_diagnostic_slices(saved: int, overrides: Overrides, expected: int) -> None:
    definition = freeze(make_benchmark(diagnostic_ms=saved), make_database(), overrides)
    assert definition.diagnostic_ms == expected


def test_diagnostics_do_not_change_the_hash() -> None:
    benchmark, database = make_benchmark(), make_database()
    silent = freeze(benchmark, database, Overrides(diagnostic_ms=0))
    assert freeze(benchmark, database, Overrides(diagnostic_ms=900)).digest() == silent.digest()


def test_quick_never_takes_more_than_the_benchmark() -> None:
    definition = freeze(make_benchmark(blocks=6, rounds=4), make_database(), Overrides(quick=True))
    assert (definition.blocks, definition.rounds) == (6, 4)


@pytest.mark.parametrize(
    ("saved", "given", "expected"),
    [
        ([20], None, (5,)),
        ([3], None, (3,)),
        ([1, 8, 32], None, (1, 8, 32)),  # a curve keeps its points
        ([20], [20], (20,)),
    ],
)
def test_a_quick_run_starts_few_clients(
    saved: list[int], given: list[int], expected: tuple[int, ...]
) -> None:
    definition = freeze(make_benchmark(clients=saved), make_database(), Overrides(quick=True, clients=given))
    assert definition.clients == expected


def test_an_override_wins_over_quick() -> None:
    overrides = Overrides(layers=["psycopg"], routes=["tcp"], clients=[1, 8], placement="scheduler",
                          slice_ms=0, rounds=4, blocks=8, quick=True)  # fmt: skip
    definition = freeze(make_benchmark(), make_database(), overrides)
    assert (definition.layers, definition.routes, definition.clients) == (("psycopg",), ("tcp",), (1, 8))
    assert (definition.placement, definition.slice_ms) == ("scheduler", 0)
    assert (definition.rounds, definition.blocks) == (4, 8)


def test_routes_that_the_database_lacks_are_left_out() -> None:
    benchmark, database = make_benchmark(), make_database()
    Target.objects.filter(route="pgbouncer").update(enabled=False)
    assert freeze(benchmark, database).routes == ("socket", "tcp")
    assert missing_routes(benchmark, database) == ["pgbouncer"]


def test_routes_given_by_name_must_exist() -> None:
    database = make_database()
    with pytest.raises(
        InvalidDefinition, match=r"routes: .*no enabled target for vpn; it has socket, tcp, pgbouncer"
    ):
        freeze(make_benchmark(), database, Overrides(routes=["tcp", "vpn"]))


def test_a_route_may_have_a_delay() -> None:
    benchmark, database = make_benchmark(routes=["tcp", "tcp+45ms", "vpn+45ms"]), make_database()
    assert freeze(benchmark, database).routes == ("tcp", "tcp+45ms")
    assert missing_routes(benchmark, database) == ["vpn+45ms"]


@pytest.mark.parametrize("route", ["tcp+45.0ms", "tcp+0ms", "tcp+99999ms", "tcp+1ms+1ms"])
def test_a_delay_has_one_form(route: str) -> None:
    with pytest.raises(InvalidDefinition, match="routes: Enter a JSON list of route names"):
        freeze(make_benchmark(), make_database(), Overrides(routes=[route]))


def test_a_unix_socket_has_no_delay() -> None:
    with pytest.raises(
        InvalidDefinition, match="socket is a Unix socket, which has no delay; name a TCP route"
    ):
        freeze(make_benchmark(), make_database(), Overrides(routes=["socket+45ms"]))


def test_a_database_without_any_of_the_routes() -> None:
    database = make_database()
    database.targets.all().delete()
    with pytest.raises(InvalidDefinition, match=r"routes: .*add a target"):
        freeze(make_benchmark(), database)


@pytest.mark.parametrize(
    ("field", "overrides"),
    [
        ("layers", {"layers": []}),
        ("layers", {"layers": ["oracle"]}),
        ("layers", {"layers": ["libpq", "libpq"]}),
        ("routes", {"routes": []}),
        ("routes", {"routes": ["No Route"]}),
        ("clients", {"clients": []}),
        ("clients", {"clients": [0]}),
        ("clients", {"clients": [-1]}),
        ("clients", {"clients": [True]}),
        ("clients", {"clients": [1.5]}),
        ("clients", {"clients": [65]}),
        ("clients", {"clients": [10**9]}),
        ("rates", {"rates": []}),
        ("rates", {"rates": [0]}),
        ("rates", {"rates": [-1.0]}),
        ("rates", {"rates": [True]}),
        ("rates", {"rates": ["100"]}),
        ("rates", {"rates": [[]]}),
        ("rates", {"rates": [None, None]}),
        ("rates", {"rates": [float("nan")]}),
        ("rates", {"rates": [float("inf")]}),
        ("rates", {"rates": [10**9]}),
        ("latency_limit_ms", {"latency_limit_ms": -1.0}),
        ("latency_limit_ms", {"latency_limit_ms": 0.01}),
        ("latency_limit_ms", {"latency_limit_ms": float("nan")}),
        ("placement", {"placement": "nowhere"}),
        ("blocks", {"blocks": 0}),
        ("blocks", {"blocks": 101}),
        ("blocks", {"blocks": "6"}),
        ("rounds", {"rounds": 0}),
        ("rounds", {"rounds": float("nan")}),
        ("slice_ms", {"slice_ms": -1}),
        ("slice_ms", {"slice_ms": 1}),
        ("slice_ms", {"slice_ms": 5001}),
        ("diagnostic_ms", {"diagnostic_ms": -1}),
        ("diagnostic_ms", {"diagnostic_ms": 49}),
        ("diagnostic_ms", {"diagnostic_ms": 10_001}),
    ],
)
def test_a_refusal_names_the_field(field: str, overrides: dict[str, Any]) -> None:
    with pytest.raises(InvalidDefinition, match=f"^{field}: "):
        freeze(make_benchmark(), make_database(), Overrides(**overrides))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", "libpq"),
        ("modes", ["turbo"]),
        ("schedule", "poisson"),
        ("routes", None),
        ("clients", {"a": 1}),
    ],
)
def test_a_wrong_value_in_a_row_is_refused(field: str, value: Any) -> None:
    benchmark = make_benchmark()
    setattr(benchmark, field, value)
    with pytest.raises(InvalidDefinition, match=f"^{field}: "):
        freeze(benchmark, make_database())


def test_arguments_must_be_scalars() -> None:
    benchmark = make_benchmark()
    Workload.objects.filter(benchmark_links__benchmark=benchmark).update(args=[["nested"]])
    with pytest.raises(InvalidDefinition, match=r"^args: "):
        freeze(benchmark, make_database())


def test_a_mode_that_no_layer_knows() -> None:
    benchmark = make_benchmark(layers=["psycopg2"], modes=["prepared"])
    with pytest.raises(InvalidDefinition, match=r"^modes: none of psycopg2 supports prepared"):
        freeze(benchmark, make_database())


def test_the_sites_limit_on_clients(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 4}
    with pytest.raises(InvalidDefinition, match=r"^clients: .* 1 to 4 \(PGPERF\['MAX_CLIENTS'\]\)"):
        freeze(make_benchmark(), make_database(), Overrides(clients=[8]))


def test_closed_and_open_loops_stand_in_one_definition() -> None:
    definition = freeze(make_benchmark(), make_database(), Overrides(rates=[None, 100, 0.5]))
    assert definition.rates == (None, 100, 0.5)
    assert Definition.from_json(json.loads(json.dumps(definition.to_json()))) == definition


def test_a_definition_without_rates_keeps_its_hash() -> None:
    """As runs of older versions have it: no field of open loops is in it."""
    definition = freeze(make_benchmark(), make_database())
    stored = definition.to_json()
    for name in ("rates", "schedule", "latency_limit_ms", "rate_search_ms"):
        del stored[name]
    assert Definition.from_json(stored).digest() == definition.digest()
    assert replace(definition, rates=(None, 100.0)).digest() != definition.digest()


def test_a_search_changes_the_hash() -> None:
    benchmark, database = make_benchmark(), make_database()
    plain, searching = (freeze(benchmark, database, Overrides(rate_search_ms=limit)) for limit in (0.0, 10.0))
    assert searching.rate_search_ms == 10.0
    assert searching.digest() != plain.digest()
    assert Definition.from_json(json.loads(json.dumps(searching.to_json()))) == searching


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"rates": [100.0]}, "closed loop beside it; add closed to the rates"),
        ({"latency_limit_ms": 20.0}, "choose one of the two"),
        ({"rate_search_ms": 1000.1}, "0.1 to 1000 ms"),
    ],
)
def test_a_search_needs_its_closed_loop_and_every_operation(asked: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^rate_search_ms: .*{refusal}"):
        freeze(make_benchmark(), make_database(), Overrides(**{"rate_search_ms": 10.0, **asked}))


def test_each_client_needs_a_rate_that_it_can_keep(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 1024}
    with pytest.raises(InvalidDefinition, match=r"^rates: 0\.1 operations/s are too few for 320 connections"):
        freeze(make_benchmark(), make_database(), Overrides(rates=[0.1], clients=[32], workers=10))


@pytest.mark.parametrize(("clients", "workers"), [([1], 5), ([1, 2], 3), ([4], 2)])
def test_each_worker_counts_against_the_sites_limit(settings: Any, clients: list[int], workers: int) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 4}
    said = (
        rf"^workers: {max(clients)} clients with {workers} workers .* more than 4 \(PGPERF\['MAX_CLIENTS'\]\)"
    )
    with pytest.raises(InvalidDefinition, match=said):
        freeze(make_benchmark(), make_database(), Overrides(clients=clients, workers=workers))


@pytest.mark.parametrize(("clients", "workers"), [([1, 2], 2), ([4], 1), ([1], 4)])
def test_as_many_workers_as_the_limit_allows(settings: Any, clients: list[int], workers: int) -> None:
    settings.PGPERF = {**settings.PGPERF, "MAX_CLIENTS": 4}
    overrides = Overrides(clients=clients, workers=workers)
    assert freeze(make_benchmark(), make_database(), overrides).workers == workers


@pytest.mark.parametrize("args", [[float("nan")], [float("inf")], [[1]], [{}], "text"])
def test_arguments_that_json_cannot_carry_are_refused(args: object) -> None:
    with pytest.raises(ValidationError):
        validators.scalar_list(args)


def test_scalars_are_arguments() -> None:
    validators.scalar_list(["é", 1, -2.5, True, None])


def test_load_hosts_that_are_asked_for_by_name_make_load() -> None:
    """Else the run would be made without them, and say nothing."""
    benchmark, database = make_benchmark(load_host_names=["a", "b"]), make_database()
    names = Overrides(load_host_names=["b", "c"])
    with pytest.raises(
        InvalidDefinition, match=r"^load_host_names: the run's own worker .* load_hosts .* such as 2$"
    ):
        freeze(benchmark, database, names)
    found = freeze(benchmark, database, replace(names, load_hosts=[0, 2]))
    assert (found.load_hosts, found.load_host_names) == ((0, 2), ("b", "c"))
    assert freeze(benchmark, database, Overrides(load_hosts=[0])).load_hosts == (0,)
    with pytest.raises(InvalidDefinition, match=r"^load_host_names: 2 names for 3 load hosts"):
        freeze(benchmark, database, Overrides(load_hosts=[3]))
