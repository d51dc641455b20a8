"""Verdicts on pages: the web servers' CPU time, and requests that wait for a free worker."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.grade import Disturbance, Source
from pgperf.analysis.hosts import HostRoles, sides
from pgperf.analysis.rules import Facts
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import CONFIRMED, UNDECIDED, WITHDRAWN, Basis, Verdict
from pgperf.analysis.verdict_kinds import confirm, confirmation_evidence, confirmed, evidence, judge
from tests.analysis.rows import row


def page(
    us: float, *, web: float | None, proxy: float = 0.0, workers: int | None = 2, **more: Any
) -> VariantSummary:
    """A variant of the layer http on 8 CPUs, half of them the clients'."""
    made = row(us, layer="http", route="web", cpus=8, **{"client": 100.0, "server": 1000.0, **more})
    made["cpu_us_per_op"] |= {"web": web, "proxy": proxy}
    made["cpu_account"] |= {"web_workers": workers}
    made["cpu_account"]["share"] |= {"web": 0.1, "proxy": 0.0}
    waits = {"web": 0.0, "proxy": 0.0}
    made["cpu_account"]["wait_us_per_op"] = {**waits, **made["cpu_account"]["wait_us_per_op"]}
    return VariantSummary.from_json(made)


def verdict(variant: VariantSummary) -> Verdict:
    return judge(variant)


def test_the_parts_of_a_request_add_up() -> None:
    time = TimeBreakdown.of(page(10_000.0, web=6_000.0, proxy=200.0))
    parts = {name: us for name, us in time.parts().items() if us}
    assert parts["web"] == 6_000.0
    assert parts["proxy"] == 200.0
    assert sum(parts.values()) == pytest.approx(10_000.0)


def test_a_slow_template_is_web_cpu() -> None:
    found = verdict(page(10_000.0, web=8_000.0))
    assert found.word == "web_cpu"
    assert evidence(found).startswith("web server CPU: 8.00 of 10.0 ms")


def test_a_busy_proxy_is_proxy_cpu() -> None:
    assert verdict(page(10_000.0, web=1_000.0, proxy=7_000.0)).word == "proxy_cpu"


def test_the_other_roles_share_what_the_clients_leave() -> None:
    variant = page(10_000.0, web=8_000.0)
    found = sides(variant, TimeBreakdown.of(variant).cpu)
    assert found["clients"].roles == ("client",)
    assert found["server"].roles == ("proxy", "web", "pooler", "server")
    assert found["server"].cpus == 4


def test_a_database_that_has_fewer_cpus_than_web_servers_is_judged_by_its_own() -> None:
    """1,000 requests per second, of 3.72 ms in PostgreSQL on 4 CPUs and 1 ms in web servers on 7."""
    stored = page(8_000.0, web=1_000.0, server=3_720.0, clients=8, workers=15).to_json()
    stored["cpu_account"]["role_cpus"] = {"clients": 1, "server": 7, "pooler": 1, "database": 4}
    variant = VariantSummary.from_json(stored)
    assert variant.to_json()["cpu_account"]["role_cpus"] == stored["cpu_account"]["role_cpus"]
    found = verdict(variant)
    assert (found.word, found.finding.where) == ("server_cpu", "database")
    assert "8 clients, the CPUs of PostgreSQL and its pooler 93 % busy" in evidence(found)
    used = found.numbers.utilisation
    assert (used["server"], used["database"]) == (pytest.approx(4.72 / 7), pytest.approx(0.93))
    assert found.numbers.server_side == pytest.approx(0.93)


def test_cpus_that_are_used_up_come_before_workers() -> None:
    found = verdict(page(8_000.0, web=3_500.0, clients=8, workers=2))
    assert (found.word, found.finding.basis) == ("web_cpu", Basis.SATURATED)


def test_all_workers_are_busy() -> None:
    """8 clients, one worker that takes 900 µs of each 1,000 that a request gets."""
    found = verdict(page(8_000.0, web=700.0, server=210.0, clients=8, workers=1))
    assert (found.word, found.finding.basis) == ("web_workers", Basis.WEB_WORKERS)
    assert "8 clients, one process of the web server, 91 % busy" in evidence(found)


@pytest.mark.parametrize(
    ("other", "word"),
    [(0.125, "disturbed"), (0.0, "web_workers")],  # of 8 CPUs; without others, requests wait for their own
)
def test_a_worker_that_waits_for_another_program_is_not_busy(other: float, word: str) -> None:
    """100 requests/s of 4 ms of web CPU, and 5 ms in its run queue: 0.45 of the time, not 0.95."""
    crowded = {"queue": {"web": 5_000.0}, "share": {"other": other}}
    found = verdict(page(40_000.0, web=4_000.0, server=500.0, clients=4, workers=1, **crowded))
    assert found.word == word
    if other:
        assert found.finding.basis == Basis.RUN_QUEUE


def test_a_worker_that_is_busy_in_spite_of_others_stays_busy() -> None:
    crowded = {"queue": {"web": 500.0}, "share": {"other": 0.125}}
    found = verdict(page(8_000.0, web=700.0, server=210.0, clients=8, workers=1, **crowded))
    assert (found.word, found.finding.share) == ("web_workers", pytest.approx(0.91))


def waiting(event: str, backends: int, workers: int) -> Verdict:
    """8 clients, 800 ms for each request; the web servers' backends wait for that event."""
    sampled = {"samples": 100, "wait_events": {event: 0.96, "CPU": 0.04}, "backends": backends}
    return verdict(
        page(800_000.0, web=1_000.0, server=500.0, clients=8, workers=workers, diagnostics=sampled)
    )


@pytest.mark.parametrize(
    ("event", "workers"), [("Lock", 1), ("IO", 1), ("Timeout", 1), ("IO", 2), ("Timeout", 2)]
)
def test_a_worker_is_busy_while_its_statement_waits(event: str, workers: int) -> None:
    found = waiting(event, backends=workers, workers=workers)
    assert (found.word, found.finding.basis) == ("web_workers", Basis.WEB_WORKERS)
    assert found.finding.share == pytest.approx(0.96 + 0.015 / workers, abs=0.01)


def test_workers_that_may_wait_for_each_other_s_locks_are_not_named() -> None:
    """More of them would wait for the same lock."""
    assert waiting("Lock", backends=2, workers=2).word != "web_workers"


def test_a_process_that_serves_several_requests_at_once_is_not_busy_with_one() -> None:
    """A process with four threads, each of which waits for a statement of its own."""
    assert waiting("Timeout", backends=4, workers=1).word != "web_workers"


def test_threads_that_were_free_are_seen_by_work_and_waits_together() -> None:
    """One process with four threads and two clients: 0.3 of the time at work, 0.9 in waits."""
    sampled = {
        "samples": 100,
        "wait_events": {"Timeout": 0.45, "CPU": 0.1, "Client": 0.45},
        "backends": 2,
    }
    variant = page(100_000.0, web=10_000.0, server=5_000.0, clients=2, workers=1, diagnostics=sampled)
    facts = Facts.of(variant)
    assert facts._per_web_worker([facts.time.waits["server_wait"]]) == pytest.approx(0.9)
    assert facts.web_busy == pytest.approx(0.3)
    assert verdict(variant).word != "web_workers"


def filled(queue_us: float) -> VariantSummary:
    """A worker that is 89.5 % busy without its waits for other programs, which are so long."""
    crowded = {"queue": {"web": queue_us}, "share": {"other": 0.125}}
    return page(8_000.0, web=685.0, server=210.0, clients=8, workers=1, **crowded)


@pytest.mark.parametrize(("queue_us", "word"), [(10.0, "unknown"), (159.0, "unknown"), (161.0, "disturbed")])
def test_short_waits_for_others_do_not_disturb_workers(queue_us: float, word: str) -> None:
    """Of 8 ms, 160 µs are the 2 % from which on disturbances count."""
    assert Facts.of(filled(queue_us))._others_fill_workers
    assert verdict(filled(queue_us)).word == word


@pytest.mark.parametrize(("here_us", "where"), [(200.0, "host"), (10.0, "server's host")])
def test_who_fills_workers_is_looked_for_on_their_own_host(here_us: float, where: str) -> None:
    facts = Facts.of(filled(161.0))
    there = HostRoles("server's host", ("server",), 0.0, 1.0)
    waits = {"server's host": 900.0, "host": here_us}
    found = tuple(Disturbance(Source.RUN_QUEUE, title, us, 0.1) for title, us in waits.items())
    overturned = replace(facts, hosts=(there, *facts.hosts), disturbances=found).overturned()
    assert overturned
    assert overturned.where == where


def test_as_many_workers_as_clients_keep_none_waiting() -> None:
    assert verdict(page(8_000.0, web=700.0, server=210.0, clients=8, workers=8)).word == "latency"


def test_requests_that_may_wait_for_a_worker_are_not_taken_for_latency() -> None:
    found = verdict(page(8_000.0, web=300.0, server=100.0, clients=8, workers=1))
    assert found.word == "unknown"


def test_web_servers_that_are_not_seen_are_not_seen() -> None:
    found = verdict(page(10_000.0, web=None, workers=None))
    assert found.word == "unknown"
    assert "web CPU" in found.finding.missing


def test_a_row_of_before_web_servers_has_none() -> None:
    stored = row(211.0)
    found = VariantSummary.from_json(stored)
    assert (found.cpu_us_per_op.web, found.cpu_us_per_op.proxy) == (0.0, 0.0)
    assert TimeBreakdown.of(found).unseen is None


SLOW_VIEW = page(10_000.0, web=8_000.0)
BUSY_WORKER = page(8_000.0, web=700.0, server=210.0, clients=8, workers=1)


def measured(variant: VariantSummary, **changes: Any) -> VariantSummary:
    return replace(variant, verdict=judge(variant), **changes)


def in_process(us: float, *, client: float, server: float = 1000.0) -> VariantSummary:
    return measured(
        VariantSummary.from_json(row(us, layer="django_view", route="tcp", client=client, server=server))
    )


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (SLOW_VIEW, "in_process"),
        (BUSY_WORKER, "double_clients"),
        (page(10_000.0, web=1_000.0, proxy=7_000.0), ""),
        (page(10_000.0, web=1_000.0, server=7_000.0), ""),  # SELECT 1 is no page
    ],
)
def test_a_page_is_tested_by_what_a_web_route_allows(variant: VariantSummary, expected: str) -> None:
    assert verdict(variant).intervention == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (in_process(8_500.0, client=7_300.0), CONFIRMED),
        (in_process(3_000.0, client=2_000.0, server=900.0), UNDECIDED),  # the web server's own work
        (in_process(12_000.0, client=4_500.0, server=7_000.0), UNDECIDED),  # bound by the server there
    ],
)
def test_the_time_of_a_view_moves_with_it(changed: VariantSummary, expected: str) -> None:
    found = confirm(verdict(SLOW_VIEW), "in_process", measured(SLOW_VIEW), changed)
    assert found.outcome == expected


def test_a_view_that_moved_is_said_in_numbers() -> None:
    own = verdict(SLOW_VIEW)
    found = confirm(own, "in_process", measured(SLOW_VIEW), in_process(8_500.0, client=7_300.0))
    assert confirmation_evidence(confirmed(own, found)) == (
        "the view in process, without a web server: in process the view takes 8.50 instead of 10.0 ms; "
        "the client uses 7.30 ms of CPU time, the web server used 8.00 ms"
    )


@pytest.mark.parametrize(("times", "expected"), [(1.0, CONFIRMED), (1.3, UNDECIDED), (1.7, WITHDRAWN)])
def test_busy_workers_serve_no_more_with_twice_the_clients(times: float, expected: str) -> None:
    twice = measured(page(16_000.0, web=700.0, server=210.0, clients=16, workers=1))
    own = measured(BUSY_WORKER, ops_per_s=1_000.0)
    found = confirm(verdict(BUSY_WORKER), "double_clients", own, replace(twice, ops_per_s=1_000.0 * times))
    assert found.outcome == expected
    assert found.numbers
    assert found.numbers.changed_word == "web_workers"


@pytest.mark.parametrize(
    ("workers", "times", "expected"),
    [
        (2, 1.9, CONFIRMED),
        (2, 1.1, UNDECIDED),
        (2, 1.0, WITHDRAWN),
        (1, 1.9, UNDECIDED),  # it has no more of them now
        (None, 1.9, UNDECIDED),
    ],
)
def test_busy_workers_serve_more_when_there_are_more(
    workers: int | None, times: float, expected: str
) -> None:
    more = measured(
        page(4_200.0, web=700.0, server=210.0, clients=8, workers=workers), ops_per_s=1_000.0 * times
    )
    own = measured(BUSY_WORKER, ops_per_s=1_000.0)
    found = confirm(verdict(BUSY_WORKER), "web_processes", own, more)
    assert found.outcome == expected
    assert Verdict.from_json(confirmed(verdict(BUSY_WORKER), found).to_json()).confirmation == found
    assert confirmation_evidence(confirmed(verdict(BUSY_WORKER), found)) == (
        f"a step whose web server has more processes: {workers or '?'} instead of 1; "
        f"{times:.2f} times the throughput, 4,200 instead of 8,000 µs"
    )
