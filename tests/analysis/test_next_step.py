"""What to try next: the faster variant of the run, else what the verdict advises."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis import verdict_kinds
from pgperf.analysis.next_step import _BY_WORD, Advice, Distance, NextStep, next_step
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Basis, Finding, Verdict, VerdictNumbers

from .rows import row, summary


def variant(us: float = 211.0, **changes: Any) -> VariantSummary:
    """A variant whose interval is 2 % wide, with its verdict."""
    fields: dict[str, Any] = {"mode": "simple", "connect": "persistent", "workload": "books", **changes}
    record = summary(row(us, us_per_op_low=us * 0.99, us_per_op_high=us * 1.01, **fields))
    return VariantSummary.from_json({**record.to_json(), "verdict": verdict_kinds.judge(record).to_json()})


def advice(own: VariantSummary, *others: VariantSummary) -> NextStep:
    found = next_step(own, [own, *others])
    assert found
    return found


def test_a_faster_variant_of_the_run_is_advised_with_what_it_saved() -> None:
    found = advice(variant(), variant(150.0, mode="prepared"), variant(180.0, layer="django_cursor"))
    assert found == NextStep(
        Advice.ALTERNATIVE, 211.0, pytest.approx(61.0), True, (("mode", "prepared"),), found.least_us
    )
    assert found.least_us is not None
    assert 0 < found.least_us < 61


def test_a_saving_is_at_least_what_the_comparison_in_pairs_tells() -> None:
    own, faster = variant(), replace(variant(150.0, mode="prepared"), label="faster")
    found = next_step(own, [own, faster], savings={(own.label, "faster"): 58.5})
    assert found
    assert found.least_us == 58.5
    other = next_step(own, [own, faster], savings={("faster", own.label): -62.0})
    assert other
    assert other.least_us == advice(own, faster).least_us


@pytest.mark.parametrize(
    "changes",
    [
        {"layer": "libpq"},  # a measure, no choice
        {"layer": "pgbench"},
        {"layer": "fake"},
        {"layer": "django_orm_async", "mode": "prepared"},  # differs in two
        {"clients": 2},
        {"workload": "other"},
        {"environment": "other", "mode": "prepared"},
        {"control": 1},
        {"route": "socket+1ms"},
        {"route": "tcp+1ms"},
    ],
)
def test_what_a_program_would_not_use_instead_is_no_alternative(changes: dict[str, Any]) -> None:
    assert advice(variant(), variant(50.0, **changes)).advice == Advice.CLIENT_CODE


@pytest.mark.parametrize(("failed", "told"), [(1, Advice.ALTERNATIVE), (300, Advice.CLIENT_CPUS)])
@pytest.mark.parametrize("route", ["other", "web+5ms"])
def test_a_route_whose_requests_failed_is_neither_advised_nor_a_distance(
    failed: int, told: Advice, route: str
) -> None:
    """The requests that did not fail may be fast: the server answered little else."""
    http = {"requests": 1000, "errors": {"status 502": failed}}
    is_far = route != "other"
    beside = variant(500.0 if is_far else 50.0, layer="http", route=route, http=http)
    found = advice(variant(layer="http", route="web"), beside)
    if is_far:
        assert bool(found.distances) is (failed == 1)
    else:
        assert found.advice == told


def test_no_more_than_the_whole_can_be_saved() -> None:
    """Parallel workers of the server work at the same time."""
    found = advice(variant(100_000.0, client=50.0, server=250_000.0))
    assert (found.advice, found.of_us, found.us) == (Advice.PREPARE, 100_000.0, 100_000.0)


@pytest.mark.parametrize(
    ("route", "told"),
    [("pgbouncer+1ms", Advice.ALTERNATIVE), ("tcp", Advice.CLIENT_CODE), ("pgbouncer", Advice.CLIENT_CODE),
     ("pgbouncer+0.5ms", Advice.CLIENT_CODE)],
)  # fmt: skip
def test_a_delayed_route_is_compared_with_others_at_the_same_distance(route: str, told: Advice) -> None:
    """A program cannot choose how far away the server is."""
    assert advice(variant(route="tcp+1ms"), variant(100.0, route=route)).advice == told


def test_a_faster_way_of_the_same_delayed_route_is_an_alternative() -> None:
    found = advice(variant(route="tcp+1ms"), variant(100.0, route="tcp+1ms", mode="prepared"))
    assert found.changes == (("mode", "prepared"),)


def test_what_each_delay_of_a_route_costs_is_told_beside_the_advice() -> None:
    own = variant(30.0, client=20.0, route="tcp")
    far = [variant(us, route=route) for us, route in ((45_040.0, "tcp+45ms"), (735.0, "tcp+0.5ms"))]
    found = advice(own, *far, variant(20.0, client=15.0, route="tcp", mode="prepared"))
    assert found.advice == Advice.ALTERNATIVE
    assert found.distances == (
        Distance("tcp+0.5ms", 0.5, 735.0, 30.0),
        Distance("tcp+45ms", 45.0, 45_040.0, 30.0),
    )
    assert (found.distances[0].cost_us, found.distances[0].times) == (705.0, 24.5)
    assert advice(far[0], own).distances == (), "it is the undelayed route that has a distance"


@pytest.mark.parametrize(
    "changes",
    [
        {"route": "socket+0.5ms"},  # of another route
        {"route": "pgbouncer"},
        {"clients": 2},
        {"mode": "prepared"},
        {"layer": "libpq"},
        {"control": 1},
        {"us": 212.0},  # the intervals overlap
        {"us": None},
    ],
)
def test_the_cost_of_distance_is_that_of_the_same_variant_and_certain(changes: dict[str, Any]) -> None:
    us = changes.pop("us", 735.0)
    far = summary(row(us, us_per_op_low=us and us * 0.99, us_per_op_high=us and us * 1.01, mode="simple",
                      connect="persistent", workload="books", route="tcp+0.5ms"))  # fmt: skip
    far = replace(far, **changes)
    assert advice(variant(route="tcp"), far).distances == ()


@pytest.mark.parametrize("disturbs", ["near", "far"])
def test_a_disturbed_measurement_does_not_tell_what_distance_costs(disturbs: str) -> None:
    near, far = variant(route="tcp"), variant(735.0, route="tcp+0.5ms")
    assert advice(near, far).distances
    if disturbs == "near":
        near = replace(disturbed(0.0), route="tcp")
    else:
        far = replace(far, verdict=disturbed(0.0).verdict)
    assert advice(near, far).distances == ()


@pytest.mark.parametrize("us", [209.5, 208.0, 230.0])
def test_a_variant_that_is_not_certainly_faster_is_no_alternative(us: float) -> None:
    assert advice(variant(), variant(us, mode="prepared")).advice == Advice.CLIENT_CODE


@pytest.mark.parametrize(("high", "told"), [(150.0, Advice.ALTERNATIVE), (208.0, Advice.QUIET)])
def test_a_quieter_machine_comes_before_a_vague_saving(high: float, told: Advice) -> None:
    """After a disturbed measurement a change of code is advised only for a saving that is sure."""
    assert advice(disturbed(0.0), faster(high)).advice == told


@pytest.mark.parametrize(("added_us", "told"), [(54.0, Advice.ALTERNATIVE), (57.0, Advice.QUIET)])
def test_a_saving_may_not_be_the_time_that_others_took(added_us: float, told: Advice) -> None:
    """Of 111 µs, more than half is left or not."""
    found = advice(disturbed(added_us), faster(101.0))
    assert found.advice == told
    if told == Advice.ALTERNATIVE:
        assert (found.us, found.least_us) == (pytest.approx(111.0), pytest.approx(111.0 - added_us))


@pytest.mark.parametrize("source", ["throttling", "clock"])
def test_what_a_quiet_machine_would_not_save_is_part_of_a_saving(source: str) -> None:
    found = advice(disturbed(90.0, source), faster(101.0))
    assert (found.advice, found.us) == (Advice.ALTERNATIVE, pytest.approx(111.0))
    assert found.least_us == pytest.approx(0.99 * 211.0 - 101.0)


def disturbed(added_us: float, source: str = "steal") -> VariantSummary:
    """A variant of 211 µs to which the hypervisor may have added some."""
    own = variant()
    assert own.verdict is not None
    steal = {"source": source, "where": "host", "us": added_us, "share": 0.1, "cpus": None, "programs": []}
    verdict = {**own.verdict.to_json(), "word": "disturbed"}
    verdict["grade"] = {"word": "poor", "share": 0.1, "disturbances": [steal]}
    return VariantSummary.from_json({**own.to_json(), "verdict": verdict})


def faster(high: float) -> VariantSummary:
    """One of 100 µs."""
    return summary(row(100.0, us_per_op_low=90.0, us_per_op_high=high, mode="prepared", connect="persistent",
                       workload="books"))  # fmt: skip


def test_without_an_alternative_the_part_that_bounds_is_the_most_that_can_be_saved() -> None:
    assert advice(variant()) == NextStep(Advice.CLIENT_CODE, 211.0, pytest.approx(165.0))
    served = advice(variant(client=20.0, server=150.0))
    assert served == NextStep(Advice.PREPARE, 211.0, pytest.approx(150.0))
    assert advice(variant(client=30.0, server=30.0)).advice == Advice.ROUND_TRIPS


@pytest.mark.parametrize(
    ("own", "beside", "told"),
    [
        ({}, {}, Advice.PREPARE),
        ({"mode": "prepared"}, {}, Advice.STATEMENT),
        ({}, {"mode": "prepared"}, Advice.STATEMENT),  # this run shows what that brings
        ({}, {"mode": "prepared", "clients": 2}, Advice.PREPARE),
        ({}, {"mode": "prepared", "route": "tcp"}, Advice.PREPARE),
        ({"layer": "psycopg2"}, {}, Advice.STATEMENT),  # it has no prepared statements
        ({"layer": "http"}, {}, Advice.STATEMENT),
        ({"connect": "per_operation"}, {}, Advice.STATEMENT),  # a prepared one ends with its connection
        ({"connect": "request"}, {}, Advice.STATEMENT),
        ({"connect": "pool", "layer": "psycopg"}, {}, Advice.PREPARE),
    ],
)
def test_a_statement_may_be_prepared_where_the_run_does_not_show_what_that_brings(
    own: dict[str, Any], beside: dict[str, Any], told: Advice
) -> None:
    found = advice(variant(client=20.0, server=150.0, **own), variant(**beside))
    assert found.advice == told


@pytest.mark.parametrize("more", [{"clients": 1}, {"clients": 8, "queue": {"server": 130.0}}])
def test_a_copy_is_neither_prepared_nor_explained(more: dict[str, Any]) -> None:
    own = variant(160.0, client=8.0, server=20.0 if "queue" in more else 120.0, layer="psycopg", **more)
    assert own.verdict
    assert own.verdict.word == "server_cpu"
    found = next_step(own, [own], copies=True)
    assert found
    assert found.advice == Advice.COPY


@pytest.mark.parametrize(
    ("layer", "told", "benchmarks"),
    [
        ("http", Advice.PAGE_ROUND_TRIPS, ("page",)),
        ("django_view", Advice.PAGE_ROUND_TRIPS, ("page",)),
        ("libpq", Advice.ROUND_TRIPS, ("published-a", "n-plus-one")),
    ],
)
def test_round_trips_of_a_page_are_measured_on_a_page(
    layer: str, told: Advice, benchmarks: tuple[str, ...]
) -> None:
    found = advice(variant(client=20.0, server=20.0, layer=layer))
    assert (found.advice, found.benchmarks) == (told, benchmarks)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        ("django_view", Advice.VIEW),
        ("http", Advice.CLIENT_CPUS),
        ("libpq", Advice.CLIENT_ROWS),  # it has no objects, and no driver that could be faster
        ("pgbench", Advice.CLIENT_ROWS),
        ("psycopg", Advice.CLIENT_CODE),
    ],
)
def test_the_advice_on_a_busy_client_is_that_of_its_layer(layer: str, told: Advice) -> None:
    found = advice(variant(layer=layer))
    assert (found.advice, found.us) == (told, pytest.approx(165.0))


def test_more_web_workers_save_no_more_than_the_wait_for_one() -> None:
    """Eight requests at a time, two processes that are 95 % busy: each works for 2 ms of 8.4 ms."""
    busy = Verdict(
        "web_workers", finding=Finding(Basis.WEB_WORKERS, share=0.95), numbers=VerdictNumbers(web_workers=2)
    )
    record = variant(8421.0, layer="http", clients=8).to_json() | {"verdict": busy.to_json()}
    found = advice(VariantSummary.from_json(record))
    assert (found.advice, found.us) == (Advice.WEB_WORKERS, pytest.approx(8421.0 * (1 - 2 * 0.95 / 8)))


def test_at_a_rate_idle_clients_are_no_part_of_a_busy_web_worker() -> None:
    """A hundred clients at 475 requests/s: two processes that are 95 % busy work for 4 ms of 6 ms."""
    busy = Verdict(
        "web_workers", finding=Finding(Basis.WEB_WORKERS, share=0.95), numbers=VerdictNumbers(web_workers=2)
    )
    given = {"verdict": busy.to_json(), "ops_per_s": 475.0, "rate": 475.0, "schedule": "constant"}
    record = variant(6000.0, layer="http", clients=100).to_json() | given
    assert advice(VariantSummary.from_json(record)).us == pytest.approx(2000.0)


def test_a_mean_that_long_requests_raise_is_no_typical_request_of_a_web_worker() -> None:
    """The processes work for 4 ms in the mean of all requests, and for 2 ms of a typical one."""
    busy = Verdict(
        "web_workers", finding=Finding(Basis.WEB_WORKERS, share=0.95), numbers=VerdictNumbers(web_workers=2)
    )
    record = variant(6000.0, layer="http", clients=100).to_json()
    record |= {"verdict": busy.to_json(), "ops_per_s": 475.0}
    record["cpu_account"] = {**record["cpu_account"], "mean_us_per_op": 12_000.0}
    assert advice(VariantSummary.from_json(record)).us == pytest.approx(4000.0)


def test_cpus_that_are_used_up_need_more_of_them() -> None:
    full = variant(1320.0, client=165.0, server=21.0, clients=8, queue={"client": 1100.0})
    assert advice(full).advice == Advice.CLIENT_CPUS


def test_no_part_bounds_what_a_used_up_resource_costs() -> None:
    """Eight clients wait for the server's one CPU, where no run queue shows that."""
    full = variant(168.0, client=8.0, server=20.0, clients=8, layer="psycopg")
    assert full.verdict
    assert (full.verdict.word, full.verdict.finding.basis) == ("server_cpu", Basis.SATURATED)
    assert advice(full) == NextStep(Advice.SERVER_CPUS, 168.0, None)


def test_what_connecting_costs_is_no_bound_where_a_resource_is_used_up() -> None:
    phases = {"connect": {"mean": 150.0}, "operate": {"mean": 10.0}, "close": {"mean": 8.0}}
    full = variant(168.0, client=8.0, server=20.0, clients=8, connect="per_operation", phases_us=phases)
    assert full.verdict
    assert full.verdict.finding.basis == Basis.SATURATED
    assert advice(full) == NextStep(Advice.KEEP_CONNECTIONS, 168.0, None)


def test_an_operation_that_mostly_connects_should_keep_its_connection() -> None:
    phases = {"connect": {"mean": 150.0}, "operate": {"mean": 40.0}, "close": {"mean": 10.0}}
    found = advice(variant(connect="per_operation", phases_us=phases))
    assert found == NextStep(Advice.KEEP_CONNECTIONS, 211.0, pytest.approx(211.0 * 160 / 200))
    phases["connect"]["mean"] = 500.0  # long operations raise the means of the phases
    found = advice(variant(connect="per_operation", phases_us=phases))
    assert found.us == pytest.approx(211.0 * 510 / 550)
    phases["connect"]["mean"] = 20.0
    assert advice(variant(connect="per_operation", phases_us=phases)).advice == Advice.CLIENT_CODE


def test_an_operation_that_mostly_works_may_connect() -> None:
    """Connecting takes a fifth of an operation, though its mean is above half of `us_per_op`."""
    phases = {"connect": {"mean": 520.0}, "operate": {"mean": 2000.0}, "close": {"mean": 10.0}}
    found = advice(variant(1000.0, client=600.0, connect="per_operation", phases_us=phases))
    assert found.advice == Advice.CLIENT_CODE


@pytest.mark.parametrize(("connect_us", "told"), [(2000.0, 420.0), (480.0, 100.0), (280.0, None)])
def test_a_tenth_of_the_time_for_connections_is_advice_beside_the_main_one(
    connect_us: float, told: float | None
) -> None:
    """Of 1 ms per operation; the means of the phases have all of the long operations."""
    operate_us = 5000.0 - connect_us - 20.0
    phases = {"connect": {"mean": connect_us}, "operate": {"mean": operate_us}, "close": {"mean": 20.0}}
    own = variant(1000.0, client=600.0, connect="per_operation", phases_us=phases)
    found = advice(own)
    assert found.advice == Advice.CLIENT_CODE
    assert found.connecting_us == (None if told is None else pytest.approx(1000.0 * (connect_us + 20) / 5000))
    assert ("connection-cost" in found.benchmarks) is (told is not None)


def test_connections_are_no_second_advice_where_they_are_the_first_or_the_run_is_repeated() -> None:
    phases = {"connect": {"mean": 20.0}, "operate": {"mean": 40.0}, "close": {"mean": 10.0}}
    own = variant(connect="per_operation", phases_us=phases)
    assert advice(own).connecting_us
    assert advice(own, variant(100.0, mode="prepared", connect="per_operation")).connecting_us
    assert advice(own, variant(100.0, connect="pool")).connecting_us is None
    assert own.verdict is not None
    again = replace(own, verdict=replace(own.verdict, word="disturbed"))
    assert (advice(again).advice, advice(again).connecting_us) == (Advice.QUIET, None)
    phases["connect"]["mean"] = 150.0
    mostly = advice(variant(connect="per_operation", phases_us=phases))
    assert (mostly.advice, mostly.connecting_us) == (Advice.KEEP_CONNECTIONS, None)


def test_a_disturbed_measurement_is_repeated_before_anything_is_advised() -> None:
    phases = {"connect": {"mean": 150.0}, "operate": {"mean": 40.0}, "close": {"mean": 10.0}}
    record = variant(connect="per_operation", phases_us=phases).to_json()
    record["verdict"] = Verdict("disturbed", finding=Finding(Basis.STEAL)).to_json()
    assert advice(VariantSummary.from_json(record)).advice == Advice.QUIET


def test_failed_requests_come_before_missing_figures() -> None:
    record = variant(layer="http").to_json() | {"us_per_op": None}
    record["verdict"] = Verdict("unknown", finding=Finding(Basis.FAILED_REQUESTS)).to_json()
    assert advice(VariantSummary.from_json(record)).advice == Advice.REQUESTS


def test_what_is_unknown_needs_a_grant_or_its_figures() -> None:
    assert advice(variant(client=60.0, server=None)).advice == Advice.FIGURES
    unseen = Verdict(
        "unknown", finding=Finding(Basis.UNEXPLAINED, missing=("server CPU",), grant="GRANT a TO b")
    )
    record = variant().to_json() | {"verdict": unseen.to_json()}
    assert advice(VariantSummary.from_json(record)).advice == Advice.GRANT


@pytest.mark.parametrize(
    ("changes", "time_was_up", "told"),
    [
        ({"diagnostics": None}, True, Advice.TIME),
        ({"diagnostics": None}, False, Advice.FIGURES),
        ({"diagnostics": None, "server": None}, True, Advice.FIGURES),  # more time would not show it
        ({"events": {}}, True, Advice.FIGURES),  # there was a diagnostic slice
    ],
)
def test_without_time_for_diagnostic_slices_a_run_needs_more_of_it(
    changes: dict[str, Any], time_was_up: bool, told: Advice
) -> None:
    own = variant(**{"client": 20.0, "server": 20.0, **changes})
    found = next_step(own, [own], time_was_up=time_was_up)
    assert found
    assert own.verdict
    assert (own.verdict.word, found.advice) == ("unknown", told)


def test_every_word_has_an_advice() -> None:
    assert {*_BY_WORD, "unknown"} == set(verdict_kinds.words())
    assert next_step(summary(row()), []) is None, "a variant without a verdict"
