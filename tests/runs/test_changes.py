"""Changes are found and announced once, when a run ends, and never fail it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError
from django.db.models import F

from pgperf import signals
from pgperf.models import ChangePoint, ComparisonResult, Run
from pgperf.runs import changes
from pgperf.runs.change_text import levels, sentence
from tests import factories
from tests.histories import BASE, LABEL, make_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def heard() -> Iterator[list[dict[str, Any]]]:
    """What receivers of the signal get."""
    found: list[dict[str, Any]] = []

    def receive(**given: Any) -> None:
        found.append(given)

    signals.change_found.connect(receive)
    yield found
    signals.change_found.disconnect(receive)


def stepped(at: int) -> float:
    return 10.0 if at < 20 else 22.0


def record_all(runs: list[Run]) -> list[list[ChangePoint]]:
    return [changes.record(run) for run in runs]


def test_each_change_is_announced_once_and_at_its_run(heard: list[dict[str, Any]]) -> None:
    runs = make_history(30, stepped)
    found = [each for each in record_all(runs) if each]
    assert len(found) == 1
    [[change]] = found
    assert (change.label, change.below) == (LABEL, BASE)
    assert abs([run.pk for run in runs].index(change.run_id) - 20) <= 1
    assert change.after_us - change.before_us == pytest.approx(12, abs=0.5)
    assert change.before_ratio == pytest.approx(1.14, abs=0.01)
    assert change.after_ratio == pytest.approx(1.31, abs=0.01)
    assert [(each["change"], each["run"].pk) for each in heard] == [(change, change.found_by)]
    assert change.found_by in [run.pk for run in runs[22:26]]
    assert ChangePoint.objects.count() == 1


def test_a_second_change_is_found_after_the_first(heard: list[dict[str, Any]]) -> None:
    record_all(make_history(45, lambda at: 10.0 if at < 15 else 20.0 if at < 30 else 14.0))
    assert [round(each["change"].after_us) for each in heard] == [20, 14]


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ({"blocks": 2}, 1),
        ({"blocks": 1, "rounds": 2}, 1),
        ({"blocks": 20}, 0),
        ({"blocks": 2, "budget_s": 60}, 0),
    ],
)
def test_wide_intervals_of_two_blocks_do_not_hide_a_change(
    heard: list[dict[str, Any]], definition: dict[str, int], found: int
) -> None:
    """±3 µs of two blocks are 0.24 µs of noise, and 1.4 µs of twenty."""
    runs = make_history(24, lambda at: 10.0 if at < 14 else 12.0, definition=definition)
    ComparisonResult.objects.update(delta_low_us=F("delta_us") - 3, delta_high_us=F("delta_us") + 3)
    record_all(runs)
    assert len(heard) == found


def test_the_lowest_layer_changes_in_time(heard: list[dict[str, Any]]) -> None:
    runs = make_history(24, layers=("libpq",))
    for run in runs[14:]:
        row = run.variants.get()
        row.us_per_op *= 1.2
        row.save()
    record_all(runs)
    [given] = heard
    assert (given["change"].label, given["change"].below) == (BASE, "")
    assert given["change"].before_ratio is None
    assert sentence(given["change"]).startswith("libpq (C) · socket: 14 µs slower since run ")
    assert "time per operation" in levels(given["change"])


def test_a_change_of_long_times_is_told_in_milliseconds() -> None:
    change = ChangePoint(
        label=BASE, before_us=170_000.0, after_us=182_400.0, run=factories.make_run(), below=LABEL,
    )  # fmt: skip
    assert sentence(change).startswith("libpq (C) · socket: 12.4 ms slower since run ")
    assert levels(change) == "its step over psycopg 3 · socket was 170 ms and is 182 ms"


def test_runs_of_others_are_no_part_of_a_series(heard: list[dict[str, Any]]) -> None:
    """Other databases, definitions and ends."""
    make_history(20)
    other = factories.make_database("other")
    record_all(make_history(8, lambda at: 22.0, database=other))
    record_all(make_history(8, lambda at: 22.0, definition_hash="0" * 64))
    make_history(8, lambda at: 22.0, status=Run.Status.FAILED)
    record_all(make_history(2))
    assert heard == []


def test_a_run_without_a_benchmark_has_no_history() -> None:
    make_history(20)
    [last] = make_history(1)
    last.benchmark = None
    last.save()
    assert changes.record(last) == []


def test_a_failing_receiver_or_database_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, heard: list[dict[str, Any]]
) -> None:
    def fail(**_given: Any) -> None:
        raise RuntimeError("receiver")

    signals.change_found.connect(fail)
    try:
        record_all(make_history(24, stepped))
    finally:
        signals.change_found.disconnect(fail)
    assert len(heard) == 1

    def broken(*_given: Any) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(changes, "series_of", broken)
    assert changes.record(Run.objects.order_by("-pk")[0]) == []


def test_words(heard: list[dict[str, Any]]) -> None:
    record_all(make_history(24, lambda at: 22.0 if at < 14 else 10.0))
    change = heard[0]["change"]
    ended = Run.objects.get(pk=change.run_id).finished_at
    assert ended
    assert sentence(change) == f"psycopg 3 · socket: 12 µs faster since run {change.run_id}, {ended.date()}"
    assert levels(change).startswith("its step over libpq (C) · socket was 22 µs and is 10 µs (1.3")


def _other_kernel(at: int) -> dict[str, Any]:
    machine = {
        **factories.ENVIRONMENT["machine"],
        "kernel": "6.18.0" if at < 2 else "6.19.0",
        "load_average": [at],
    }
    server = {**factories.ENVIRONMENT["server"], "jit": "on" if at < 1 else "off"}
    return {**factories.ENVIRONMENT, "machine": machine, "server": server}


@pytest.mark.parametrize("record", [lambda runs: record_all(runs), lambda runs: changes.record(runs[-1])])
def test_the_environment_is_compared_with_that_of_the_run_before(
    record: Callable[[list[Run]], object],
) -> None:
    """For each run as it ends, and for those that ended before pgperf compared them."""
    runs = make_history(4, environment=_other_kernel)
    record(runs)
    first, second, third, fourth = (Run.objects.get(pk=run.pk).environment_changes for run in runs)
    assert first == {"since": None, "differences": []}
    assert second == {"since": runs[0].pk, "differences": [["server.jit", "on", "off"]]}
    assert third == {"since": runs[1].pk, "differences": [["machine.kernel", "6.18.0", "6.19.0"]]}
    assert fourth["differences"] == []


def test_what_a_comparison_lists_is_marked_but_no_captured_statement() -> None:
    def environment(at: int) -> dict[str, Any]:
        return {
            **factories.ENVIRONMENT,
            "server_host": {"agent": "db1", "kernel": f"6.{at}", "agent_cpu_percent": at},
            "setting_sources": {"work_mem": "user"} if at else {},
            "captures": {"books": {"plans": {"SELECT": [f"Seq Scan (rows={at})"]}}},
        }

    runs = make_history(2, environment=environment)
    record_all(runs)
    changed = Run.objects.get(pk=runs[1].pk).environment_changes
    assert changed["differences"] == [
        ["server_host.kernel", "6.0", "6.1"], ["setting_sources.work_mem", "", "user"],
    ]  # fmt: skip
