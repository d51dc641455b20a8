"""The plan: its variants, controls and cohorts, and their order."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.catalog.driver_queries import BATCH, COPYFROM, ONE_PLUS_ONE
from pgperf.catalog.driver_suite import DRIVER_SUITE_PUBLISHED
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Cohort, Definition, LeftOut, Page, Variant, WorkloadDefinition
from pgperf.runner.plan import (
    COHORT_CONNECTIONS,
    COHORT_PAGE_PROCESSES,
    COHORT_SIZE,
    make_plan,
    round_order,
    sharing,
    warm_up_turns,
)
from tests.runner.builders import definition

LADDER = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
ROUTES = ("socket", "tcp", "pgbouncer")


def test_more_combinations_than_a_page_can_plan_are_refused_at_once() -> None:
    many = [f"tcp+{ms}ms" for ms in range(1, 1001)]
    with pytest.raises(InvalidDefinition, match=r"layers: 3 layers, 1000 routes make 3,000 combinations"):
        make_plan(definition(layers=LADDER[:3], routes=tuple(many)))
    with pytest.raises(InvalidDefinition, match="at most 2,000"):
        make_plan(
            definition(layers=LADDER, clients=tuple(range(1, 65)), rates=tuple(map(float, range(1, 20_001))))
        )


def test_orm_overhead_is_one_cohort_with_two_controls() -> None:
    plan = make_plan(definition(layers=LADDER, routes=ROUTES))
    assert len(plan.cohorts) == 1
    assert [v.label for v in plan.variants if v.control] == [
        "libpq · socket · control 1",
        "django_orm · pgbouncer · control 1",
    ]
    assert len(plan.variants) == 17


def test_layers_come_in_ladder_order_whatever_the_definition_says() -> None:
    plan = make_plan(definition(layers=("django_orm", "libpq")))
    assert [v.layer for v in plan.variants if not v.control] == ["libpq", "django_orm"]


def test_layers_without_workers_have_a_process_for_each_connection() -> None:
    plan = make_plan(
        definition(layers=("libpq", "psycopg", "asyncpg"), clients=(1, 2), workers=10, modes=("extended",))
    )
    found = {(v.layer, v.clients, v.workers) for v in plan.variants}
    assert found == {
        (layer, count * (1 if workers > 1 else 10), workers)
        for layer, workers in (("libpq", 1), ("psycopg", 10), ("asyncpg", 10))
        for count in (1, 2)
    }
    assert {v.connections for v in plan.variants} == {10, 20}


@pytest.mark.parametrize(("api", "inserts"), [("best", True), ("dbapi", False)])
def test_of_a_suite_the_orm_runs_the_batch_by_bulk_create(api: str, inserts: bool) -> None:
    plan = make_plan(
        definition(workloads=(COPYFROM, BATCH, ONE_PLUS_ONE), layers=("psycopg", "django_orm"), bulk_api=api)
    )
    assert {v.workload for v in plan.variants if v.layer == "django_orm"} == ({"batch"} if inserts else set())
    assert {v.workload for v in plan.variants if v.layer == "psycopg"} == {"copyfrom", "batch", "oneplusone"}
    reasons = {each.workload: each.reason for each in plan.skipped if each.layer == "django_orm"}
    assert "no call of the ORM" in reasons["oneplusone"]
    assert "bulk_create" in reasons["copyfrom"]


def test_workers_that_would_reconnect_are_left_out_with_the_reason() -> None:
    modes = ("persistent", "per_operation")
    plan = make_plan(definition(layers=("libpq", "psycopg"), workers=10, connection_modes=modes))
    found = {(v.layer, v.connect) for v in plan.variants}
    assert found == {("libpq", "persistent"), ("libpq", "per_operation"), ("psycopg", "persistent")}
    assert [(each.layer, each.connect) for each in plan.skipped] == [("psycopg", "per_operation")]
    assert "keep their connections" in plan.skipped[0].reason


def test_as_many_processes_beside_a_process_with_workers() -> None:
    plan = make_plan(definition(layers=("psycopg",), workers=4, as_processes=True))
    assert [(v.clients, v.workers, v.control) for v in plan.variants[:2]] == [(1, 4, 0), (4, 1, 0)]


def test_a_single_variant_gets_one_control() -> None:
    assert [v.control for v in make_plan(definition()).variants] == [0, 1]


def test_skipped_layers_keep_their_reason() -> None:
    left = LeftOut(layer="libpq", reason="not built")
    plan = make_plan(definition(layers=LADDER), [left])
    assert "libpq" not in {v.layer for v in plan.variants}
    assert plan.skipped == (left,)


def test_a_plan_without_variants_is_refused_with_the_reasons() -> None:
    with pytest.raises(InvalidDefinition, match="libpq: not built"):
        make_plan(definition(layers=("libpq",)), [LeftOut(layer="libpq", reason="not built")])


def test_an_unknown_layer_is_named() -> None:
    with pytest.raises(InvalidDefinition, match="layers: unknown odbc"):
        make_plan(definition(layers=("odbc",)))


def test_big_benchmarks_go_cohort_by_cohort_and_share_the_reference() -> None:
    plan = make_plan(definition(layers=LADDER, routes=ROUTES, clients=(1, 8)))
    reference = plan.variants[0]
    assert len(plan.cohorts) > 1
    for cohort in plan.cohorts:
        assert cohort.variants[cohort.reference] == reference
        assert len(cohort.variants) <= COHORT_SIZE
    assert len(plan.variants) == 32


class TestManyClients:
    """1 to 32 clients of two layers over three routes, as in `client-scaling`."""

    counts = (1, 2, 4, 8, 16, 32)
    plan = make_plan(definition(layers=("libpq", "django_orm"), routes=ROUTES, clients=counts))

    def test_each_route_is_a_cohort_with_every_number_of_clients(self) -> None:
        assert [{v.route for v in cohort.variants[1:]} for cohort in self.plan.cohorts] == [
            {"socket"}, {"tcp"}, {"pgbouncer"},
        ]  # fmt: skip
        assert [v.clients for v in self.plan.variants if v.layer == "libpq" and not v.control] == [
            *self.counts
        ] * 3

    def test_a_cohort_has_at_most_64_clients_beside_reference_and_controls(self) -> None:
        for cohort in self.plan.cohorts:
            beside = {self.plan.variants[0]} if cohort.variants[1].route != "socket" else set()
            own = [v for v in cohort.variants if not v.control and v not in beside]
            assert sum(v.clients for v in sharing(own)) == COHORT_CONNECTIONS

    def test_the_largest_of_a_layer_and_route_has_the_clients_and_the_others_drive_some_of_them(self) -> None:
        families = sharing(self.plan.cohorts[0].variants)
        assert [(v.label, [m.clients for m in members]) for v, members in families.items()] == [
            ("libpq · socket · 32 clients", [*self.counts]),
            ("django_orm · socket · 32 clients", [*self.counts]),
            ("libpq · socket · control 1", [1]),
        ]

    def test_controls_have_the_fewest_clients_as_theirs_are_their_own(self) -> None:
        assert [v.label for v in self.plan.variants if v.control] == [
            "libpq · socket · control 1",
            "django_orm · pgbouncer · control 1",
        ]

    def test_the_order_of_client_counts_does_not_matter(self) -> None:
        turned = replace(self.plan.definition, clients=(32, 1, 8, 2, 16, 4))
        assert make_plan(turned).cohorts == self.plan.cohorts

    @given(
        st.sets(st.sampled_from(LADDER), min_size=1),
        st.sets(st.sampled_from(ROUTES), min_size=1),
        st.sets(st.sampled_from(("simple", "extended")), min_size=1),
        st.sets(st.integers(1, 64), min_size=1, max_size=25),
    )
    def test_every_plan_has_valid_cohorts(
        self, layers: set[str], routes: set[str], modes: set[str], counts: set[int]
    ) -> None:
        plan = make_plan(
            definition(layers=tuple(layers), routes=tuple(routes), modes=tuple(modes), clients=tuple(counts))
        )
        reference = plan.variants[0]
        seen: set[Variant] = set()
        for cohort in plan.cohorts:
            assert cohort.variants[cohort.reference] == reference
            assert not seen & (set(cohort.variants) - {reference})
            seen |= set(cohort.variants)
            for variant in cohort.variants:
                assert replace(variant, control=0) in cohort.variants
        wanted = len(layers) * len(routes) * len(modes) * len(counts)
        assert sum(not variant.control for variant in seen) == wanted


def held(cohort: Cohort, reference: Variant) -> int:
    """The connections of a cohort, without those of the reference and of controls."""
    return sum(v.connections for v in sharing(cohort.variants) if not v.control and v != reference)


@given(
    st.sets(st.sampled_from(("libpq", "pgbench", "pgbench_one_thread", "psycopg")), min_size=1),
    st.sets(st.sampled_from(ROUTES), min_size=1),
    st.integers(1, 40),
    st.integers(1, 10),
)
def test_a_cohort_is_cut_by_the_connections_that_it_holds(
    layers: set[str], routes: set[str], clients: int, workers: int
) -> None:
    """One process of pgbench, or of several workers, has many. A variant alone may have too many."""
    plan = make_plan(
        definition(layers=tuple(layers), routes=tuple(routes), clients=(clients,), workers=workers)
    )
    reference = plan.variants[0]
    for cohort in plan.cohorts:
        alone = len([v for v in cohort.variants if not v.control and v != reference]) <= 1
        assert held(cohort, reference) <= COHORT_CONNECTIONS or alone


def test_a_published_suite_of_workers_has_a_cohort_for_each_workload() -> None:
    """Six drivers and modes with ten workers: 60 connections, and ten of the control."""
    suite = DRIVER_SUITE_PUBLISHED
    left = [
        LeftOut(layer=layer, mode=mode, reason="")
        for layer, mode in (("psycopg2", "prepared"), ("asyncpg_uvloop", "simple"))
    ]
    plan = make_plan(
        definition(
            workloads=suite.workloads, layers=suite.layers, modes=suite.modes, workers=suite.workers,
            bulk_api=suite.bulk_api, row_type=suite.row_type,
        ),
        left,
    )  # fmt: skip
    assert [{v.workload for v in cohort.variants} for cohort in plan.cohorts] == [
        {work.name} for work in suite.workloads
    ]
    assert {sum(v.connections for v in cohort.variants) for cohort in plan.cohorts} == {70}


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5))
def test_a_round_has_every_variant_once_and_keeps_routes_together(seed: int, block: int, round_: int) -> None:
    plan = make_plan(definition(layers=LADDER, routes=ROUTES, seed=seed))
    order = round_order(plan, 0, block, round_)
    assert sorted(order) == list(range(17))
    routes = [plan.cohorts[0].variants[index].route for index in order]
    assert sum(a != b for a, b in itertools.pairwise(routes)) == len(ROUTES) - 1


def test_compared_variants_are_closer_than_in_a_plain_shuffle() -> None:
    plan = make_plan(definition(layers=LADDER, routes=("socket",)))
    orders = [round_order(plan, 0, 0, round_) for round_ in range(200)]
    control = next(index for index, v in enumerate(plan.variants) if v.control and v.layer == "libpq")
    distance = sum(abs(order.index(0) - order.index(control)) for order in orders) / len(orders)
    assert distance < 2.0  # a plain shuffle of seven has 8/3
    assert {order.index(0) for order in orders} == set(range(7))


def test_a_control_is_as_often_first_of_its_route_as_its_original() -> None:
    """The first follows a slice of another route, so a control would differ from its original."""
    plan = make_plan(definition(layers=LADDER, routes=ROUTES))
    variants = plan.cohorts[0].variants
    firsts: Counter[int] = Counter()
    for round_ in range(600):
        order = round_order(plan, 0, 0, round_)
        assert sorted(order) == list(range(len(variants)))
        firsts.update(next(own) for _route, own in itertools.groupby(order, lambda at: variants[at].route))
    for control in (at for at, variant in enumerate(variants) if variant.control):
        original = variants.index(replace(variants[control], control=0))
        both = firsts[control] + firsts[original]
        assert both > 100
        assert abs(firsts[control] - both / 2) < 3.5 * math.sqrt(both) / 2


def test_rounds_differ_and_repeat_with_the_seed() -> None:
    plan = make_plan(definition(layers=LADDER, routes=ROUTES))
    orders = {tuple(round_order(plan, 0, 0, round_)) for round_ in range(10)}
    assert len(orders) == 10
    assert round_order(plan, 0, 1, 2) == round_order(plan, 0, 1, 2)


class TestTwoWorkloads:
    """A workload beside another: next to each other on each rung, in one cohort."""

    what = definition(
        workloads=(
            WorkloadDefinition("loop", "", orm="x.loop"),
            WorkloadDefinition("cure", "", orm="x.cure"),
        ),
        layers=("libpq", "psycopg", "django_orm"), routes=("socket",),
    )  # fmt: skip

    def test_every_rung_has_both_workloads(self) -> None:
        plan = make_plan(self.what)
        assert len(plan.cohorts) == 1
        assert [(v.layer, v.workload) for v in plan.variants if not v.control] == [
            (layer, work) for layer in ("libpq", "psycopg", "django_orm") for work in ("loop", "cure")
        ]
        assert plan.variants[1].label == "libpq · socket · cure"

    def test_a_single_workload_is_not_named(self) -> None:
        (first, *_rest) = make_plan(replace(self.what, workloads=self.what.workloads[:1])).variants
        assert first.label == "libpq · socket"

    def test_compared_variants_are_close_together(self) -> None:
        plan = make_plan(self.what)
        apart = []
        for round_ in range(40):
            order = [plan.cohorts[0].variants[i] for i in round_order(plan, 0, 0, round_)]
            assert sorted(map(str, order)) == sorted(map(str, plan.cohorts[0].variants))
            apart += [
                abs(order.index(v) - order.index(replace(v, workload="cure")))
                for v in order
                if v.workload == "loop" and not v.control
            ]
        assert sum(apart) / len(apart) < 2.4  # any order would give 3

    def test_one_of_them_may_be_left_to_the_orm(self) -> None:
        plan = make_plan(self.what, [LeftOut(workload="cure", reason="why")])
        assert [(v.layer, v.workload) for v in plan.variants if not v.control] == [
            ("libpq", "loop"), ("psycopg", "loop"), ("django_orm", "loop"), ("django_orm", "cure"),
        ]  # fmt: skip


class TestSteps:
    """The steps of a site, near and far: those of one distance are compared directly."""

    builds_on = {"apache": "", "nginx": "apache", "pooled": "nginx", "tls": "pooled", "atomic": "pooled"}

    def site(self, clients: int = 20, more: int = 0) -> Definition:
        builds_on = {**self.builds_on, **{f"more{at}": "apache" for at in range(more)}}
        far = {f"{name}+45ms": f"{base}+45ms" if base else "" for name, base in builds_on.items()}
        return definition(
            workloads=(WorkloadDefinition("list", "", page=Page("/")),), layers=("http",), clients=(clients,),
            connection_modes=("per_operation",), routes=(*builds_on, *far), web_routes={**builds_on, **far},
        )  # fmt: skip

    def test_those_of_both_distances_share_a_cohort_where_they_fit(self) -> None:
        assert len(make_plan(self.site()).cohorts) == 1

    @pytest.mark.parametrize("more", [4, 8])
    def test_a_step_shares_a_cohort_with_the_step_that_it_builds_on(self, more: int) -> None:
        plan = make_plan(self.site(more=more))
        reference = plan.variants[0]
        routes = [{v.route for v in cohort.variants if v != reference} for cohort in plan.cohorts]
        assert [{route.endswith("+45ms") for route in own} for own in routes] == [{False}, {True}]
        assert all(cohort.variants[cohort.reference] == reference for cohort in plan.cohorts)
        for step, base in plan.definition.web_routes.items():
            assert (
                any({step, base} <= {v.route for v in cohort.variants} for cohort in plan.cohorts) or not base
            )

    def test_more_clients_than_may_stand_by_are_split(self) -> None:
        plan = make_plan(self.site(clients=100))
        assert [len(cohort.variants) for cohort in plan.cohorts] == [3, 3, 2, 3, 3, 3]
        for cohort in plan.cohorts:
            own = [v for v in cohort.variants if not v.control and v != plan.variants[0]]
            assert sum(v.clients for v in own) <= COHORT_PAGE_PROCESSES

    def test_other_clients_beside_them_have_the_usual_limit(self) -> None:
        both = replace(
            self.site(clients=40), layers=("libpq", "http"), routes=(*self.builds_on, "tcp", "socket")
        )
        cohorts = make_plan(both).cohorts
        assert [len({v.route for v in c.variants if v.layer == "libpq"}) for c in cohorts] == [0, 1, 1]

    def test_the_clients_of_one_step_warm_up_at_a_time(self) -> None:
        variants = make_plan(
            replace(self.site(), layers=("libpq", "http"), routes=("nginx", "tcp", "tls"))
        ).variants
        turns = [[v.route for v in turn] for turn in warm_up_turns(variants)]
        assert turns == [["tcp"], ["nginx"], ["tls"], ["nginx"], ["tls"]]


class TestSuite:
    """Three or more workloads take turns; each has a control and, where it must, a cohort."""

    names = ("one", "two", "three", "four")
    works = tuple(WorkloadDefinition(name, "SELECT 1", orm="pgperf.light") for name in names)
    three = definition(workloads=works[:3], layers=LADDER, routes=("socket",))

    def test_the_variants_come_by_workload(self) -> None:
        found = [(v.workload, v.layer) for v in make_plan(self.three).variants if not v.control]
        assert found == [(name, layer) for name in self.names[:3] for layer in LADDER]

    def test_each_workload_has_a_control_at_one_end_of_its_ladder(self) -> None:
        plan = make_plan(replace(self.three, workloads=self.works))
        assert [(v.workload, v.layer) for v in plan.variants if v.control] == [
            ("one", "libpq"), ("two", "django_orm"), ("three", "libpq"), ("four", "django_orm"),
        ]  # fmt: skip

    @given(st.integers(0, 50), st.integers(0, 5))
    def test_a_round_has_every_workload_once_and_together(self, seed: int, round_: int) -> None:
        plan = make_plan(replace(self.three, seed=seed))
        order = [plan.cohorts[0].variants[index] for index in round_order(plan, 0, 0, round_)]
        assert sorted(map(str, order)) == sorted(map(str, plan.cohorts[0].variants))
        turns = [name for name, _own in itertools.groupby(v.workload for v in order)]
        assert sorted(turns) == sorted(self.names[:3])

    def test_the_workloads_take_turns_in_a_new_order(self) -> None:
        plan = make_plan(self.three)
        first = {plan.cohorts[0].variants[round_order(plan, 0, 0, r)[0]].workload for r in range(30)}
        assert first == set(self.names[:3])

    @given(
        st.integers(3, 12),
        st.sets(st.sampled_from(LADDER), min_size=1),
        st.sets(st.sampled_from(ROUTES), min_size=1),
        st.sets(st.integers(1, 16), min_size=1, max_size=3),
    )
    def test_a_large_suite_is_split_by_workload_first(
        self, count: int, layers: set[str], routes: set[str], clients: set[int]
    ) -> None:
        works = tuple(WorkloadDefinition(f"w{at}", "SELECT 1", orm="pgperf.light") for at in range(count))
        plan = make_plan(
            definition(workloads=works, layers=tuple(layers), routes=tuple(routes), clients=tuple(clients))
        )
        wanted = count * len(layers) * len(routes) * len(clients)
        assert sum(not variant.control for variant in plan.variants) == wanted
        for name in {variant.workload for variant in plan.variants}:
            own = [v for v in plan.variants if v.workload == name]
            cohorts = [set(own) & set(c.variants) for c in plan.cohorts if set(own) & set(c.variants)]
            assert set().union(*cohorts) == set(own)
            small = len(own) <= COHORT_SIZE and sum(v.clients for v in sharing(own)) <= COHORT_CONNECTIONS
            assert len(cohorts) == 1 or not small
            assert len(cohorts) == 1 or set.intersection(*cohorts), "nothing to compare them through"
        for cohort in plan.cohorts:
            assert all(replace(v, control=0) in cohort.variants for v in cohort.variants)
