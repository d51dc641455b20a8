"""The time that others took at most, its bounds and the grade that follows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.consistency_checks import Checks
from pgperf.analysis.disturbances import disturbances, grade, waits_for_others
from pgperf.analysis.grade import Disturbance, Grade, Source
from pgperf.analysis.hosts import hosts
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.top import Process, Top
from pgperf.analysis.verdict_kinds import grade_sentence, judge

from .rows import Row, remote, row, summary


def found(given_row: Row, top: Top | None = None) -> tuple[Disturbance, ...]:
    time = TimeBreakdown.of(summary(given_row))
    on_hosts = hosts(summary(given_row), time.cpu)
    return disturbances(on_hosts, time, waits_for_others(on_hosts, time), top)


def graded(given_row: Row) -> Grade:
    time = TimeBreakdown.of(summary(given_row))
    return grade(hosts(summary(given_row), time.cpu), time, found(given_row))


def test_stolen_time_is_that_of_all_cpus_while_an_operation_runs() -> None:
    (stolen,) = found(row(200.0, share={"steal": 0.05}, cpus=2))
    assert (stolen.source, stolen.where, stolen.us) == ("steal", "host", pytest.approx(20.0))
    (whole,) = found(row(200.0, share={"steal": 0.9}, cpus=2))
    assert whole.us == pytest.approx(200.0)


def test_a_wait_is_no_longer_than_others_worked() -> None:
    """Others kept 0.2 of two CPUs busy: 80 of 400 µs."""
    (short,) = found(row(queue={"client": 12.0}, share={"other": 0.1}))
    assert (short.source, short.us, short.cpus) == ("run_queue", 12.0, pytest.approx(0.2))
    (long,) = found(row(400.0, queue={"client": 90.0, "server": 30.0}, share={"other": 0.1}))
    assert long.us == pytest.approx(80.0)
    assert not found(row(queue={"client": 90.0}, share={"other": 0.049})), "the background of any host"


def crowded(by_side: dict[str, float], **more: Any) -> Row:
    """8 clients that queue for 500 of 800 µs, beside a program that keeps one of two CPUs busy."""
    fields = {"client": 85.0, "server": 50.0, "clients": 8, "queue": {"client": 500.0}, **more}
    given_row = row(800.0, share={"other": 0.5}, **fields)
    given_row["cpu_account"]["others_by_side"] = by_side
    return given_row


@pytest.mark.parametrize(
    ("by_side", "us", "grade_word"),
    [
        ({"clients": 0.0, "server": 1.0}, None, "good"),  # it runs on the server's CPU
        ({"clients": 0.02, "server": 1.0}, 16.0, "fair"),
        ({"clients": 1.0, "server": 0.02}, 500.0, "poor"),
        ({"clients": 0.3, "server": 0.7}, 240.0, "poor"),
        ({}, 500.0, "poor"),  # an older run: not known
    ],
)
def test_a_role_waits_only_for_others_on_its_own_cpus(
    by_side: dict[str, float], us: float | None, grade_word: str
) -> None:
    given_row = crowded(by_side)
    assert [each.us for each in found(given_row)] == ([] if us is None else [pytest.approx(us)])
    assert graded(given_row).word == grade_word
    if us is None:
        assert judge(summary(given_row), Checks()).word == "client_cpu"


def test_waits_of_both_sides_are_no_longer_than_others_worked() -> None:
    """Both sides may have had all of them, who worked for 800 µs at most."""
    given_row = crowded(
        {"clients": 1.0, "server": 1.0}, queue={"client": 600.0, "server": 500.0}, client=10.0
    )
    (both,) = found(given_row)
    assert both.us == pytest.approx(min(800.0, sum(TimeBreakdown.of(summary(given_row)).queue.values())))


def test_few_others_on_each_side_may_be_many_on_the_host() -> None:
    """0.08 of a CPU on each side: 64 of 800 µs, twice."""
    given_row = crowded({"clients": 0.5, "server": 0.5}, queue={"client": 500.0, "server": 200.0})
    given_row["cpu_account"]["share"]["other"] = 0.08
    (both,) = found(given_row)
    assert both.us == pytest.approx(128.0)
    given_row["cpu_account"]["share"]["other"] = 0.049
    assert not found(given_row), "the background of any host"


def test_a_pooler_waits_with_the_clients_unless_it_is_beside_the_server() -> None:
    given_row = crowded({"clients": 0.0, "server": 1.0}, pooler=20.0, queue={"pooler": 100.0})
    assert not found(given_row)
    given_row["cpu_account"]["role_cpus"] |= {"pooler_beside_server": True}
    assert [each.us for each in found(given_row)] == [pytest.approx(100.0)]


def test_where_others_are_not_known_all_waiting_may_be_for_them() -> None:
    (unseen,) = found(row(queue={"client": 20.0}, share={"other": None, "unattributed": None}))
    assert (unseen.us, unseen.cpus) == (20.0, None)


def test_each_host_has_its_own() -> None:
    both = found(remote(queue={"client": 12.0}, share={"other": 0.2}, there={"steal": 0.01}))
    assert [(each.source, each.where) for each in both] == [("steal", "server's host"), ("run_queue", "host")]


def test_the_busiest_other_programs_are_named() -> None:
    processes = [
        {"role": "client", "name": "python", "cpu_percent": 60.0},
        {"role": "other", "name": "make", "cpu_percent": 4.0},
        {"role": "other", "name": "cc1", "pid": 41, "user": "builder", "cpu_percent": 40.0},
        {"role": "other", "name": "ld", "cpu_percent": 70.0},
    ]
    seen = Top.from_json({"processes": processes})
    (crowded,) = found(row(queue={"client": 12.0}, share={"other": 0.2}), seen)
    assert crowded.programs == ("ld", "cc1 (pid 41, user builder)")


def test_a_run_that_ended_before_its_diagnostic_slice_names_programs_too() -> None:
    backup = {"role": "other", "pid": 41, "name": "backup", "user": "root", "cpu_percent": 40.0}
    crowded = row(queue={"client": 12.0}, share={"other": 0.2})
    crowded["cpu_account"]["programs"] = [backup, {**backup, "pid": 42, "name": "cron", "cpu_percent": 4.0}]
    crowded["diagnostics"] = crowded["top"] = None
    grade = judge(summary(crowded), Checks()).grade
    assert [each.programs for each in grade.disturbances] == [("backup (pid 41, user root)",)]


def test_a_program_that_blocks_and_the_diagnostic_slice_saw_is_named_once() -> None:
    rival = Process(role="other", pid=41, name="backup", user="root", cpu_percent=40.0)
    seen = Top.from_json(
        {"processes": [{"role": "other", "pid": 41, "name": "backup", "user": "root", "cpu_percent": 90.0}]}
    )
    given_row = row(queue={"client": 12.0}, share={"other": 0.2})
    time = TimeBreakdown.of(summary(given_row))
    on_hosts = hosts(summary(given_row), time.cpu)
    waits = waits_for_others(on_hosts, time)
    (crowded,) = disturbances(on_hosts, time, waits, seen, programs=[rival])
    assert crowded.programs == ("backup (pid 41, user root)",)


def test_programs_that_disturbed_a_slice_which_was_repeated_are_named_too() -> None:
    quiet = {"role": "other", "name": "sshd", "cpu_percent": 6.0}
    rival = {"role": "other", "name": "backup", "cpu_percent": 90.0}
    stored = {"processes": [quiet], "disturbed_by": [rival, {**quiet, "cpu_percent": 7.0}]}
    seen = Top.from_json(stored)
    assert seen is not None
    assert Top.from_json(seen.to_json()) == seen
    (crowded,) = found(row(queue={"client": 12.0}, share={"other": 0.2}), seen)
    assert crowded.programs == ("backup", "sshd")


@pytest.mark.parametrize(
    ("own", "stolen", "others"), [(0.1, 0.2, 0.2), (0.9, 0.9, 0.9), (0.5, 0.0, 0.0), (0.0, 0.3, 0.3)]
)
def test_what_others_took_is_told_from_a_quota_and_the_clock(
    own: float, stolen: float, others: float
) -> None:
    found = [Disturbance(Source.STEAL, "host", 50.0 * stolen, stolen)] if stolen else []
    found += [Disturbance(Source.THROTTLING, "client", 50.0 * own, own)] if own else []
    assert Grade("poor", min(1.0, own + stolen), tuple(found)).others == pytest.approx(others)


@pytest.mark.parametrize(
    ("steal", "word"), [(0.0, "good"), (0.0099, "good"), (0.01, "fair"), (0.0749, "fair"), (0.075, "poor")]
)
def test_the_grade_follows_from_the_share_of_the_time(steal: float, word: str) -> None:
    assert graded(row(cpus=2, share={"steal": steal})).word == word


def test_a_grade_needs_steal_and_the_clients_run_queue_unless_it_is_poor_anyway() -> None:
    assert graded(row(share={"steal": None})).word == "unknown"
    assert graded(row(queue={"client": None})).word == "unknown"
    assert graded(row(us=None)).word == "unknown"
    assert graded(row(400.0, share={"steal": None, "other": 0.4}, queue={"client": 90.0})).word == "poor"


@given(
    us=st.floats(1, 1e6), queue=st.floats(0, 1e6), steal=st.floats(0, 1), other=st.floats(0, 1),
    cpus=st.integers(1, 256),
)  # fmt: skip
def test_no_disturbance_exceeds_the_response_time_and_the_grade_s_share_not_all_of_it(
    us: float, queue: float, steal: float, other: float, cpus: int
) -> None:
    given_row = row(us, queue={"client": queue}, share={"steal": steal, "other": other}, cpus=cpus)
    assert all(0 <= each.us <= us * (1 + 1e-9) for each in found(given_row))
    assert 0 <= (graded(given_row).share or 0.0) <= 1


def test_throttling_is_named_and_graded_but_takes_no_verdict_away() -> None:
    """The server's quota stops it for half of the time, in which operations of both clients wait: a
    larger one would shorten the operation.
    """
    throttled = row(1000.0, client=100.0, server=300.0, queue={"server": 550.0}, clients=2)
    throttled["cpu_account"]["throttled_us_per_op"] = {"client": 0.0, "server": 250.0}
    verdict = judge(summary(throttled), Checks(), [])
    (named,) = verdict.grade.disturbances
    assert (named.source, named.where, named.us) == ("throttling", "server", 500.0)
    assert verdict.grade.word == "poor"
    assert verdict.word == "server_cpu"
    assert grade_sentence(verdict.grade) == (
        "a CPU quota kept the server from working for 50 % of the time (throttling) (at most 500 µs)"
    )


@pytest.mark.parametrize(
    ("placement", "clients", "us"),
    [
        ("apart", 1, 500.0),
        ("apart", 4, 500.0),
        ("apart", 8, 1000.0),
        ("together", 2, 1000.0),
        ("scheduler", 8, 500.0),
    ],
)
def test_the_kernel_adds_up_the_throttling_of_each_cpu(placement: str, clients: int, us: float) -> None:
    """On eight CPUs, four of which are the server's: as many stand still at once as connections have
    work for.
    """
    throttled = row(2000.0, client=100.0, server=300.0, clients=clients, cpus=8, placement=placement)
    throttled["cpu_account"]["throttled_us_per_op"] = {"server": 500.0}
    (named,) = judge(summary(throttled), Checks(), []).grade.disturbances
    assert (named.source, named.us) == ("throttling", us)


def test_throttled_time_is_no_wait_for_other_processes() -> None:
    """Others are busy too, but of 550 µs in the run queue the quota explains 500."""
    busy = row(1000.0, client=100.0, server=300.0, queue={"server": 550.0}, share={"other": 0.3})
    assert judge(summary(busy), Checks(), []).word == "disturbed"
    busy["cpu_account"]["throttled_us_per_op"] = {"server": 500.0}
    verdict = judge(summary(busy), Checks(), [])
    assert verdict.word == "server_cpu"
    assert [(each.source, each.us, each.share) for each in verdict.grade.disturbances] == [
        ("throttling", 500.0, 0.5), ("run_queue", pytest.approx(50.0), pytest.approx(0.05)),
    ]  # fmt: skip


def test_an_operation_is_not_throttled_for_longer_than_it_takes() -> None:
    throttled = row(100.0)
    throttled["cpu_account"]["throttled_us_per_op"] = {"client": 900.0}
    (named,) = judge(summary(throttled), Checks(), []).grade.disturbances
    assert named.us == 100.0


def test_a_slow_clock_lengthens_each_operation_by_one_read() -> None:
    timed = row(100.0)
    timed["cpu_account"]["clock_read_ns"] = 3_000.0
    grade = judge(summary(timed), Checks(), []).grade
    (named,) = grade.disturbances
    assert (named.source, named.us, named.share, grade.word) == ("clock", 3.0, 0.03, "fair")
    assert grade_sentence(grade) == (
        "reading the host's clock took 3.0 % of the time (see its clock source) (at most 3.0 µs)"
    )


def test_a_small_disturbance_is_not_named_but_told_to_be_there() -> None:
    """The grade counts it, so what is named is less than the grade says."""
    large, small = (Disturbance("run_queue", "host", us, us / 1000, 1.6) for us in (640.0, 20.0))
    assert grade_sentence(Grade("poor", 0.66, (large, small))) == (
        "64 % of the time in the run queue, while other processes kept 1.6 of the host's CPUs busy"
        " (at most 640 µs); the rest is smaller"
    )
    assert "the rest" not in grade_sentence(Grade("poor", 0.64, (large,)))


def test_a_slow_clock_takes_no_verdict_away() -> None:
    """Its time is known, so it changes no word, however near the parts are."""
    timed = row(100.0, client=40.0, server=39.5)
    timed["cpu_account"]["clock_read_ns"] = 3_000.0
    assert (
        judge(summary(timed), Checks(), []).word
        == judge(summary(row(100.0, client=40.0, server=39.5)), Checks(), []).word
        == "client_cpu"
    )


def test_a_quick_clock_is_no_disturbance() -> None:
    assert judge(summary(row(100.0)), Checks(), []).grade.disturbances == ()
