"""Which change tests a verdict, and what its outcome says."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis import verdict_kinds
from pgperf.analysis.interventions import INTERVENTIONS
from pgperf.analysis.interventions import added_distance_ms as added
from pgperf.analysis.open_loop import OpenLoop
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import (
    CONFIRMED,
    LIKELY,
    UNDECIDED,
    WITHDRAWN,
    Basis,
    Confirmation,
    Finding,
    Lead,
    Verdict,
    VerdictNumbers,
)

from .rows import row, summary


def judged(*args: Any, **more: Any) -> VariantSummary:
    found = summary(row(*args, **more))
    return replace(found, verdict=verdict_kinds.judge(found))


def word_of(variant: VariantSummary) -> str:
    assert variant.verdict
    return variant.verdict.word


def named(variant: VariantSummary, word: str) -> VariantSummary:
    """The same under another verdict."""
    assert variant.verdict
    return replace(variant, verdict=replace(variant.verdict, word=word))


def numbers_of(variant: VariantSummary) -> VerdictNumbers:
    assert variant.verdict
    return variant.verdict.numbers


def choose(word: str, variant: VariantSummary, *, used_up: bool = False) -> str:
    """The test of that verdict on a variant."""
    kind = verdict_kinds.kind_of(word)
    assert kind
    return kind.test(variant, Finding(Basis.SATURATED if used_up else Basis.LARGEST))


def outcome(word: str, name: str, own: VariantSummary, changed: VariantSummary | None) -> Confirmation:
    return verdict_kinds.confirm(Verdict(word), name, own, changed)


def evidence(word: str, name: str, own: VariantSummary, changed: VariantSummary | None) -> str:
    return verdict_kinds.confirmation_evidence(Verdict(word, confirmation=outcome(word, name, own, changed)))


ORM = judged()
LIBPQ = judged(58.0, client=10.0, server=20.0, layer="libpq")


@pytest.mark.parametrize(
    ("word", "more", "expected"),
    [
        ("client_cpu", {}, "lower_layer"),
        ("client_cpu", {"layer": "libpq"}, ""),
        ("pooler_cpu", {}, "bypass_pooler"),
        ("pool_queue", {}, "bypass_pooler"),
        ("server_cpu", {}, "light_statement"),
        ("server_io", {}, "light_statement"),
        ("server_wait", {}, "light_statement"),
        ("server_lock", {"clients": 4}, "one_client"),
        ("server_lock", {}, ""),
        ("latency", {}, "double_clients"),
        ("latency", {"clients": 4, "us": 5000.0}, "add_distance"),
        ("latency", {"clients": 4, "us": 1100.0}, "double_clients"),
        ("interpreter", {"workers": 10}, "processes"),
        ("disturbed", {}, ""),
        ("unknown", {}, ""),
    ],
)
def test_each_word_has_its_test(word: str, more: dict[str, Any], expected: str) -> None:
    assert choose(word, summary(row(**more))) == expected
    assert not expected or INTERVENTIONS[expected].title


@pytest.mark.parametrize(("layer", "expected"), [("django_orm", "light_statement"), ("django_view", "")])
def test_the_light_statement_is_no_page(layer: str, expected: str) -> None:
    verdict = judged(900.0, client=50.0, server=800.0, layer=layer).verdict
    assert verdict
    assert (verdict.word, verdict.intervention) == ("server_cpu", expected)


@pytest.mark.parametrize("word", ["server_cpu", "pooler_cpu"])
def test_cpus_that_are_used_up_are_tested_by_more_load(word: str) -> None:
    assert choose(word, summary(row(clients=8)), used_up=True) == "double_clients"


def test_what_is_taken_away_shows_in_the_time() -> None:
    assert outcome("client_cpu", "lower_layer", ORM, LIBPQ).outcome == CONFIRMED
    assert evidence("client_cpu", "lower_layer", ORM, LIBPQ) == (
        "the same statements through libpq: 58 instead of 211 µs; "
        "it took away 155 of 165 µs, and the time fell by 153 µs"
    )


@pytest.mark.parametrize(
    ("us", "client", "expected"),
    [
        (211.0 - 78.0, 10.0, CONFIRMED),  # half of the 155 that were taken away
        (211.0 - 77.0, 10.0, WITHDRAWN),
        (215.0, 10.0, WITHDRAWN),
        (60.0, 80.0, CONFIRMED),
        (60.0, 83.0, UNDECIDED),  # less than half was taken away
    ],
)
def test_what_was_taken_away_must_be_what_the_time_fell_by(us: float, client: float, expected: str) -> None:
    changed = judged(us, client=client, server=20.0, layer="libpq")
    assert outcome("client_cpu", "lower_layer", ORM, changed).outcome == expected


def test_a_time_that_fell_for_another_reason_confirms_nothing() -> None:
    """The light statement asks for no lock either: what it saved was not the server's processor
    time.
    """
    heavy = judged(900.0, client=50.0, server=300.0, events={"Lock": 0.2, "CPU": 0.3, "Client": 0.5})
    assert word_of(heavy) == "latency"
    claimed = named(heavy, "server_cpu")
    light = judged(60.0, client=20.0, server=5.0)
    assert outcome("server_cpu", "light_statement", claimed, light).outcome == WITHDRAWN


@pytest.mark.parametrize(("times", "expected"), [(3.0, CONFIRMED), (1.1, UNDECIDED), (1.0, WITHDRAWN)])
def test_processes_free_workers_of_their_interpreter(times: float, expected: str) -> None:
    shared = {"placement": "scheduler", "cpus": 8, "layer": "psycopg", "client": 95.0, "server": 30.0}
    own = judged(1000.0, workers=10, **shared)
    changed = judged(1000.0 / times, clients=10, **shared)
    own, changed = (
        replace(each, ops_per_s=rate) for each, rate in ((own, 10_000.0), (changed, 10_000.0 * times))
    )
    own = replace(own, verdict=verdict_kinds.judge(own))
    assert own.verdict
    found = verdict_kinds.confirm(own.verdict, "processes", own, changed)
    assert found.outcome == expected
    settled = verdict_kinds.confirmed(own.verdict, found)
    assert f"{times:.2f} times the throughput" in verdict_kinds.confirmation_evidence(settled)


def test_a_time_that_rose_did_not_fall_by_less_than_nothing() -> None:
    slower = judged(213.0, client=10.0, server=20.0, layer="libpq")
    assert evidence("client_cpu", "lower_layer", ORM, slower).endswith("and the time rose by 2.0 µs")
    own = judged(5000.0, client=20.0, server=30.0, clients=4, layer="libpq", route="tcp")
    far = judged(4900.0, client=20.0, server=30.0, clients=4, layer="libpq", route="tcp+2.5ms")
    assert evidence("latency", "add_distance", own, far).endswith("make an operation 100 µs shorter")


def test_locks_are_gone_when_there_is_one_client() -> None:
    locked = judged(8000.0, client=20.0, server=40.0, clients=4, events={"Lock": 0.74, "Timeout": 0.25})
    assert word_of(locked) == "server_lock"
    alone = judged(2100.0, client=20.0, server=40.0, events={"Timeout": 0.96})
    assert outcome("server_lock", "one_client", locked, alone).outcome == CONFIRMED


@pytest.mark.parametrize(
    ("times", "expected"), [(1.6, CONFIRMED), (1.59, UNDECIDED), (1.21, UNDECIDED), (1.2, WITHDRAWN)]
)
def test_latency_leaves_room_for_more_clients(times: float, expected: str) -> None:
    own = judged(100.0, client=10.0, server=20.0, layer="libpq")
    assert word_of(own) == "latency"
    changed = replace(own, ops_per_s=(own.ops_per_s or 0.0) * times)
    found = outcome("latency", "double_clients", own, changed)
    assert found.outcome == expected
    said = evidence("latency", "double_clients", own, changed)
    assert said == f"twice as many clients: {times:.2f} times the throughput"


@pytest.mark.parametrize(("ended", "expected"), [(700, UNDECIDED), (660, WITHDRAWN)])
def test_clients_that_hold_their_rate_could_do_more(ended: int, expected: str) -> None:
    """The total rate is the same with twice the clients: throughput cannot grow beyond it."""
    rate = OpenLoop(700.0, "constant", 700, 660, None, 0, 40, 1.0)
    own = judged(1500.0, client=10.0, server=20.0, layer="libpq", rate=700.0, open_loop=rate.to_json())
    changed = replace(own, ops_per_s=float(ended), open_loop=replace(rate, ended=ended, backlog=700 - ended))
    own = replace(own, ops_per_s=660.0)
    assert word_of(own) == "latency"
    assert outcome("latency", "double_clients", own, changed).outcome == expected
    said = (
        "1.06 times the throughput (all that the rate asks for)"
        if ended == 700
        else "1.00 times the throughput"
    )
    assert evidence("latency", "double_clients", own, changed) == f"twice as many clients: {said}"


def test_processes_that_hold_their_rate_are_left_open() -> None:
    rate = OpenLoop(700.0, "constant", 700, 700, None, 0, 0, 1.0)
    own = judged(1000.0, workers=10, layer="psycopg")
    changed = replace(own, open_loop=rate, ops_per_s=own.ops_per_s)
    test = INTERVENTIONS["processes"]
    numbers = test.measure("interpreter", own, changed)
    assert numbers
    assert test.decide("interpreter", numbers) == UNDECIDED
    numbers = test.measure("interpreter", own, replace(changed, open_loop=None))
    assert numbers
    assert test.decide("interpreter", numbers) == WITHDRAWN


@pytest.mark.parametrize(
    ("times", "us", "expected"),
    [
        (1.0, 320.0, CONFIRMED),
        (1.2, 320.0, CONFIRMED),
        (1.3, 320.0, UNDECIDED),
        (1.6, 320.0, WITHDRAWN),
        (0.8, 500.0, UNDECIDED),
    ],
)
def test_a_server_that_is_used_up_gives_no_more_and_stays_busy(
    times: float, us: float, expected: str
) -> None:
    own = judged(160.0, client=8.0, server=20.0, clients=8, queue={"server": 130.0}, layer="libpq")
    changed = judged(us, client=8.0, server=20.0, clients=16, queue={"server": 290.0}, layer="libpq")
    changed = replace(changed, ops_per_s=50_000 * times)
    assert outcome("server_cpu", "double_clients", own, changed).outcome == expected
    said = f"the server's CPUs {100 * 16 / us * 20:.0f} % busy, and the verdict “server CPU”"
    assert said in evidence("server_cpu", "double_clients", own, changed)


@pytest.mark.parametrize(
    ("times", "pooler", "expected"),
    [(1.0, 20.0, CONFIRMED), (1.3, 20.0, UNDECIDED), (1.6, 20.0, WITHDRAWN), (1.0, 5.0, UNDECIDED)],
)
def test_a_pooler_that_is_used_up_gives_no_more_and_is_named_again(
    times: float, pooler: float, expected: str
) -> None:
    """The server's CPUs have time left. Without the pooler an operation would take a fifth."""
    shared = {"client": 4.0, "server": 5.0, "layer": "libpq", "route": "pgbouncer", "cpus": 8}
    own = judged(160.0, clients=8, pooler=20.0, **shared)
    assert own.verdict
    assert (own.verdict.word, own.verdict.finding.where) == ("pooler_cpu", "pooler")
    assert own.verdict.intervention == "double_clients"
    changed = replace(judged(320.0, clients=16, pooler=pooler, **shared), ops_per_s=50_000 * times)
    assert outcome("pooler_cpu", "double_clients", own, changed).outcome == expected
    if expected == CONFIRMED:
        said = evidence("pooler_cpu", "double_clients", own, changed)
        assert said == "twice as many clients: 1.00 times the throughput, and the verdict “pooler CPU”"


USED_UP = judged(160.0, client=8.0, server=20.0, clients=8, queue={"server": 130.0}, layer="libpq")


def test_busy_clients_do_not_confirm_that_the_server_is_used_up() -> None:
    """The clients' CPUs are fully used, the server's by three quarters."""
    clients = judged(320.0, client=20.0, server=15.0, clients=16, queue={"client": 260.0}, layer="libpq")
    used = numbers_of(clients).utilisation
    assert (used["clients"], used["server"]) == (pytest.approx(1.0), pytest.approx(0.75))
    assert outcome("server_cpu", "double_clients", USED_UP, clients).outcome == UNDECIDED
    said = "the server's CPUs 75 % busy, and the verdict “client CPU”"
    assert said in evidence("server_cpu", "double_clients", USED_UP, clients)


def test_a_server_that_stays_busy_but_is_bound_by_others_is_left_open() -> None:
    clients = judged(320.0, client=20.0, server=18.0, clients=16, queue={"client": 260.0}, layer="libpq")
    assert numbers_of(clients).server_side == pytest.approx(0.9)
    assert word_of(clients) == "client_cpu"
    assert outcome("server_cpu", "double_clients", USED_UP, clients).outcome == UNDECIDED


def test_on_cpus_that_all_share_those_are_the_server_s() -> None:
    shared = {"client": 8.0, "server": 20.0, "layer": "libpq", "placement": "together"}
    own = judged(224.0, clients=8, queue={"server": 150.0, "client": 40.0}, **shared)
    changed = judged(448.0, clients=16, queue={"server": 310.0, "client": 100.0}, **shared)
    assert outcome("server_cpu", "double_clients", own, changed).outcome == CONFIRMED
    unseen = replace(changed, verdict=Verdict("server_cpu"))
    assert outcome("server_cpu", "double_clients", own, unseen).outcome == UNDECIDED


@pytest.mark.parametrize(("us", "expected"), [(7000.0, CONFIRMED), (6900.0, UNDECIDED), (5950.0, WITHDRAWN)])
def test_all_of_a_delay_shows_where_nothing_hides_it(us: float, expected: str) -> None:
    own = judged(5000.0, client=20.0, server=30.0, clients=4, layer="libpq", route="tcp")
    assert added(own) == 2.5
    far = judged(us, client=20.0, server=30.0, clients=4, layer="libpq", route="tcp+2.5ms")
    assert outcome("latency", "add_distance", own, far).outcome == expected


def test_what_is_not_found_again_is_withdrawn_and_what_was_disturbed_is_left_open() -> None:
    assert outcome("server_cpu", "light_statement", ORM, LIBPQ).outcome == WITHDRAWN
    said = evidence("server_cpu", "light_statement", ORM, LIBPQ)
    assert said.startswith("measured again, the verdict was “client CPU”: ")
    assert said.count("client CPU") == 1
    disturbed = judged(share={"steal": 0.5})
    assert outcome("client_cpu", "lower_layer", disturbed, LIBPQ).outcome == UNDECIDED
    assert outcome("client_cpu", "lower_layer", ORM, None).outcome == UNDECIDED
    unseen = judged(58.0, client=None, layer="libpq")
    assert outcome("client_cpu", "lower_layer", ORM, unseen).outcome == UNDECIDED


OPEN = Lead("client", "server", 2.0, -3.0, 6.0)  # either may be the longer one


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        (Verdict("client_cpu", lead=OPEN), Verdict("server_cpu"), UNDECIDED),
        (Verdict("server_cpu"), Verdict("client_cpu", lead=OPEN), UNDECIDED),
        (Verdict("client_cpu", lead=OPEN), Verdict("pooler_cpu"), WITHDRAWN),
        (Verdict("client_cpu", lead=replace(OPEN, low=1.0)), Verdict("server_cpu"), WITHDRAWN),
    ],
)
def test_the_second_of_two_words_does_not_refute_them(first: Verdict, again: Verdict, expected: str) -> None:
    found = verdict_kinds.confirm(first, "lower_layer", replace(ORM, verdict=again), LIBPQ)
    assert (found.outcome, found.again) == (expected, again)
    settled = verdict_kinds.confirmed(replace(first, certainty=LIKELY), found)
    assert settled.certainty == (LIKELY if expected == UNDECIDED else WITHDRAWN)
