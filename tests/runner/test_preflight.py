"""Preflight refuses a run that exceeds a guardrail, with the numbers."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.catalog.client_scaling import CLIENT_SCALING
from pgperf.catalog.driver_queries import BATCH, COPYFROM
from pgperf.core.exceptions import BudgetTooShort, PreflightRefused, asked_budget_s
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, LeftOut, Page, WorkloadDefinition
from pgperf.runner import preflight, run_time
from pgperf.runner.plan import make_plan
from tests.runner.builders import definition

PLENTY = preflight.Headroom(free_connections=1000, memory_bytes=64 << 30)


def test_estimate_counts_clients_controls_and_the_control_connection() -> None:
    plan = make_plan(definition(clients=(8,)))
    assert preflight.estimate(plan).connections == 8 * 2 + 1


def test_the_connection_that_empties_tables_is_counted() -> None:
    what = definition(workloads=(COPYFROM,), layers=("psycopg",), bulk_api="dbapi")
    assert preflight.estimate(make_plan(what)).connections == 1 * 2 + 1 + 1


def test_shared_clients_are_counted_once() -> None:
    shared = preflight.estimate(make_plan(definition(clients=(1, 2, 4, 8))))
    assert shared.connections == 8 + 1 + 1  # one control of one client, and the monitor
    assert shared.memory_bytes == 9 * 20 << 20


def test_each_worker_is_a_connection() -> None:
    need = preflight.estimate(make_plan(definition(clients=(2,), workers=5)))
    assert need.connections == 2 * (2 * 5) + 1
    assert need.memory_bytes == 2 * 2 * (20 + 4) << 20


def test_fewer_workers_are_offered() -> None:
    plan, few = make_plan(definition(workers=10)), preflight.Headroom(60, 64 << 30)
    with pytest.raises(PreflightRefused, match=r"It fits with workers 5"):
        preflight.check(plan, few, 0.25, 1800)


def seconds(layers: tuple[str, ...] = ("psycopg",), **fields: Any) -> float:
    return preflight.estimate(make_plan(definition(layers=layers, slice_ms=0, rounds=10, **fields))).seconds


def test_a_connection_for_each_operation_takes_longer_than_one_that_stays() -> None:
    """50 operations of 12 ms in each slice, where a fast query has 50 ms."""
    fast, slow = (seconds(connection_modes=(mode,)) for mode in ("persistent", "per_operation"))
    assert slow - fast > 10 * 2 * (0.600 - 0.050)


def test_clients_that_connect_share_the_cpus() -> None:
    """20 clients need five operations each, and three to lead in: a slice of about a second."""
    assert seconds(connection_modes=("per_operation",), clients=(20,)) > 10 * 2 * 0.9


@pytest.mark.parametrize("work", [COPYFROM, BATCH], ids=lambda work: work.name)
def test_inserting_many_rows_is_predicted_by_their_number(work: WorkloadDefinition) -> None:
    assert work.bulk is not None
    fewer = replace(work, bulk=replace(work.bulk, rows=work.bulk.rows // 10))
    own, tenth = (seconds(workloads=(each,), bulk_api="dbapi") for each in (work, fewer))
    assert own > tenth > 2
    assert seconds(workloads=(work,), bulk_api="dbapi", workers=10) > own


def test_the_window_that_a_definition_names_is_used_as_it_is() -> None:
    given = definition(layers=("psycopg",), connection_modes=("per_operation",), slice_ms=200)
    (cohort,) = make_plan(given).cohorts
    lengths = run_time.predicted_slice_s(given, cohort)
    assert list(lengths.values()) == [pytest.approx(0.200 + 10 * 0.012 + 0.012)] * 2


def test_no_slice_is_predicted_to_be_longer_than_the_longest() -> None:
    what = definition(layers=("psycopg",), connection_modes=("per_operation",), slice_ms=0, clients=(60,))
    (cohort,) = make_plan(what).cohorts
    assert max(run_time.predicted_slice_s(what, cohort).values()) <= 10


def test_clients_of_one_thread_connect_one_after_the_other() -> None:
    one, each = (
        seconds((layer,), connection_modes=("per_operation",), clients=(20,))
        for layer in ("pgbench_one_thread", "pgbench")
    )
    assert one > 1.4 * each


def test_pgbench_measures_whole_seconds() -> None:
    what = definition(layers=("pgbench",), clients=(20,))
    assert set(run_time.predicted_slice_s(what, make_plan(what).cohorts[0]).values()) == {1}


def test_the_time_beside_lead_in_and_window_counts() -> None:
    """Backends that leave, and a table that is counted and truncated."""
    stay, leave = (
        definition(layers=("psycopg",), connection_modes=(mode,)) for mode in ("persistent", "per_operation")
    )
    fill = definition(layers=("psycopg",), workloads=(COPYFROM,))
    overhead_s = [
        run_time.predicted_round_s(what, cohort) - sum(run_time.predicted_slice_s(what, cohort).values())
        for what in (stay, leave, fill)
        for cohort in make_plan(what).cohorts
    ]
    assert overhead_s[0] < min(overhead_s[1:])


def test_each_block_starts_and_ends_its_clients() -> None:
    """40 clients of Django and psycopg in 5 more blocks take six seconds in each."""
    one, six = (
        preflight.estimate(
            make_plan(definition(layers=("psycopg", "django_cursor"), clients=(20,), blocks=blocks))
        ).seconds
        for blocks in (1, 6)
    )
    assert one > 6
    assert six - one > 5 * 6


@pytest.mark.parametrize(
    ("layer", "starts"),
    [
        ("libpq", 1),  # the ORM captures its statements
        ("django_orm", 1 + 1 + 2 + 1),  # and repeats them; a cold block, and one with two clients at once
    ],
)
def test_a_site_that_starts_slowly_takes_longer_where_it_is_started(layer: str, starts: int) -> None:
    usual_s = LAYERS["django_orm"].start_seconds
    usual, slow = (
        make_plan(
            definition(
                workloads=(WorkloadDefinition("own", "", orm="site.call", start_s=start_s),),
                layers=(layer,),
                blocks=2,
            )
        )
        for start_s in (usual_s, usual_s + 4)
    )
    assert run_time.seconds(slow) - run_time.seconds(usual) == pytest.approx(starts * 4)


def site(restart_s: float = 0.0, **changes: Any) -> Definition:
    """Two steps of a web site, one of them at a distance too."""
    steps = {"near": "", "tls": "near", "near+45ms": ""}
    return definition(
        workloads=(WorkloadDefinition("page", "", page=Page("/")),), layers=("http",), routes=tuple(steps),
        web_routes=steps, blocks=6, restart_s=restart_s, **changes,
    )  # fmt: skip


def test_web_servers_that_start_anew_before_each_block_take_time() -> None:
    """Those of both steps; a distance has no servers of its own."""
    plain, anew = (run_time.seconds(make_plan(site(restart_s))) for restart_s in (0.0, 3.0))
    assert anew - plain == pytest.approx(6 * 2 * 3)


def test_a_hook_beside_a_benchmark_without_pages_takes_no_time() -> None:
    plain, anew = (run_time.seconds(make_plan(definition(restart_s=each))) for each in (0.0, 3.0))
    assert anew == plain


def test_a_run_is_refused_before_it_starts_where_restarts_alone_exceed_its_budget() -> None:
    preflight.check(make_plan(site(budget_s=60)), PLENTY, 0.25, 1800)
    with pytest.raises(
        BudgetTooShort,
        match=r"6 blocks take at least 1\d\d s \(\d min \d+ s\) .*has 60 s \(1 min 0 s\); .*of 1\d\d s",
    ):
        preflight.check(make_plan(site(budget_s=60, restart_s=8.0)), PLENTY, 0.25, 1800)


def test_a_refusal_names_the_field_of_the_form_and_minutes() -> None:
    refusal = str(preflight.too_short(1186.4, 59.6))
    assert refusal.startswith(
        "time budget: 6 blocks take at least 1187 s (19 min 47 s) on this machine, and the run has 60 s (1 min 0 s);"
    )
    assert asked_budget_s(refusal) == 1306
    assert preflight.lasting(59.4) == "59 s"
    test = str(preflight.too_short(1186.4, 59.6, chosen=False))
    assert test.endswith("the run has 60 s (1 min 0 s); try again when the machine is quieter")
    assert asked_budget_s(test) is None


def test_six_blocks_must_fit_by_the_plan_alone() -> None:
    plan, fixed = make_plan(site(budget_s=60, restart_s=8.0)), make_plan(site(restart_s=8.0))
    assert preflight.time_refusal(make_plan(site(budget_s=60)), 1800) == ""
    assert fixed.definition.is_fixed
    assert preflight.time_refusal(fixed, 1) == ""
    assert "has 60 s" in preflight.time_refusal(plan, 1800)
    assert asked_budget_s(preflight.time_refusal(plan, 1800))
    assert asked_budget_s(preflight.time_refusal(plan, 100)) is None
    assert "allowed are 100 s (1 min 40 s)" in preflight.time_refusal(plan, 100)


def test_more_rounds_take_longer() -> None:
    short, long = (preflight.estimate(make_plan(definition(rounds=n))).seconds for n in (1, 100))
    assert long - short == pytest.approx(99 * 2 * 0.009)


def test_several_clients_take_time_to_start_together() -> None:
    plans = [make_plan(definition(clients=(8,), rounds=n)) for n in (1, 100)]
    short, long = (preflight.estimate(plan).seconds for plan in plans)
    assert long - short == pytest.approx(99 * 2 * (0.009 + 0.025 + 0.008))


def test_in_a_cold_block_one_client_of_each_variant_starts_alone() -> None:
    cold, warm = (
        preflight.estimate(make_plan(definition(clients=(1, 8), cold_blocks=n))).seconds for n in (1, 0)
    )
    assert cold - warm == pytest.approx(
        2 * 0.08 / 2
    )  # the largest's first and the control, rather than side by side


def test_a_plan_within_the_guardrails_passes() -> None:
    plan = make_plan(definition())
    assert preflight.check(plan, PLENTY, 0.25, 1800) == preflight.estimate(plan)


@pytest.mark.parametrize(
    ("headroom", "seconds", "words"),
    [
        (
            preflight.Headroom(8, 64 << 30),
            1800,
            r"connections: the run needs 3 at once, allowed are 2 \(25 % of 8",
        ),
        (preflight.Headroom(1000, 1 << 20), 1800, "memory: the clients need about 40 MiB"),
        (PLENTY, 1, "time: the run would take about"),
    ],
)
def test_each_guardrail_refuses_with_its_numbers(
    headroom: preflight.Headroom, seconds: float, words: str
) -> None:
    with pytest.raises(PreflightRefused, match=words):
        preflight.check(make_plan(definition()), headroom, 0.25, seconds)


def test_a_refusal_offers_a_plan_that_fits() -> None:
    plan = make_plan(definition(clients=(1, 8, 64), routes=("socket", "tcp")))
    room = preflight.Headroom(free_connections=200, memory_bytes=64 << 30)
    with pytest.raises(PreflightRefused, match=r"choose fewer .*\. It fits with clients 1, 8$"):
        preflight.check(plan, room, 0.25, 1800)


def test_more_clients_than_free_slots_are_refused_with_the_numbers() -> None:
    """32 of two layers on one route, the reference on another, a control, the monitor, and two that
    ask the server.
    """
    what = definition(
        layers=CLIENT_SCALING.layers,
        routes=CLIENT_SCALING.routes,
        clients=CLIENT_SCALING.clients,
        diagnostic_ms=1000,
    )
    with pytest.raises(
        PreflightRefused, match=r"needs 69 at once, allowed are 24 \(25 % of 97 free slots\)"
    ) as no:
        preflight.check(make_plan(what), preflight.Headroom(97, 64 << 30), 0.25, 1800)
    assert str(no.value).endswith("It fits with clients 1, 2, 4, 8")


def pgbench(clients: int) -> Definition:
    """A process of pgbench makes all connections of a variant."""
    return definition(
        layers=("libpq", "pgbench", "pgbench_one_thread"), routes=("tcp", "pgbouncer"), clients=(clients,),
        connection_modes=("persistent", "per_operation"),
    )  # fmt: skip


def test_a_run_of_many_connections_is_split_until_it_fits() -> None:
    """160 on a route: variants of two connection modes, the reference and a control."""
    need = preflight.check(make_plan(pgbench(20)), preflight.Headroom(556, 64 << 30), 0.25, 1800)
    assert need.connections == 20 * (3 + 1 + 1) + 1


def test_connections_of_a_single_variant_that_do_not_fit_are_refused_with_the_remedy() -> None:
    with pytest.raises(
        PreflightRefused, match=r"needs 241 at once, allowed are 139 .* It fits with clients 40"
    ):
        preflight.check(make_plan(pgbench(80)), preflight.Headroom(556, 64 << 30), 0.25, 1800)


def test_a_refusal_offers_half_the_clients_or_one_route() -> None:
    plan = make_plan(definition(clients=(8,), routes=("socket", "tcp")))
    need = preflight.estimate(plan).connections
    assert preflight.offers(plan, lambda smaller: preflight.estimate(smaller).connections < need) == [
        "clients 4",
        "routes socket",
    ]


def test_a_smaller_plan_in_which_nothing_is_left_is_not_offered() -> None:
    """The layers of the first route were left out, as for its TLS: it alone is no plan."""
    asked = definition(layers=("psycopg",), routes=("here", "there"), clients=(40,))
    left_out = [LeftOut(layer="psycopg", route="here", reason="TLS")]
    plan = make_plan(asked, left_out)
    with pytest.raises(PreflightRefused, match="choose fewer"):
        preflight.check(plan, preflight.Headroom(60, 64 << 30), 0.25, 1800)
    assert preflight.offers(plan, lambda smaller: False) == []


def test_a_refusal_offers_no_plan_if_none_fits() -> None:
    with pytest.raises(PreflightRefused, match=r"layers or clients$"):
        preflight.check(make_plan(definition()), preflight.Headroom(0, 64 << 30), 0.25, 1800)
