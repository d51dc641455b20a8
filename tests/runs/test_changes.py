"""Changes are found and announced once, when a run ends, and never fail it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, transaction
from django.db.models import F

from pgperf import signals
from pgperf.models import ChangePoint, ComparisonResult, Run
from pgperf.runs import changes
from pgperf.runs.change_text import day, layers, levels, sentence, told
from pgperf.runs.layer_changes import layers_of
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


def steps(heard: list[dict[str, Any]]) -> list[ChangePoint]:
    """Without those of the headline figure."""
    return [given["change"] for given in heard if given["change"].layers is None]


def record_all(runs: list[Run]) -> list[list[ChangePoint]]:
    return [changes.record(run) for run in runs]


def slow_down(runs: list[Run], layer: str, more_us: float) -> None:
    """The step of one layer, on which the layers above it stand."""
    for run in runs:
        rows = list(run.variants.order_by("position"))
        place = [row.layer for row in rows].index(layer)
        for row in rows[place:]:
            row.us_per_op += more_us
            row.save()
        for pair in ComparisonResult.objects.filter(run=run).select_related("variant", "baseline"):
            pair.ratio = pair.variant.us_per_op / pair.baseline.us_per_op
            pair.delta_us = pair.variant.us_per_op - pair.baseline.us_per_op
            pair.delta_low_us, pair.delta_high_us = pair.delta_us - 0.2, pair.delta_us + 0.2
            pair.save()


def test_each_change_is_announced_once_and_at_its_run(heard: list[dict[str, Any]]) -> None:
    """That of the step, and that of the headline figure."""
    runs = make_history(30, stepped)
    found = [change for each in record_all(runs) for change in each]
    assert [change.below for change in found] == ["", BASE]
    change = found[1]
    assert (change.label, change.layers) == (LABEL, None)
    assert abs([run.pk for run in runs].index(change.run_id) - 20) <= 1
    assert change.after_us - change.before_us == pytest.approx(12, abs=0.5)
    assert change.before_ratio == pytest.approx(1.14, abs=0.01)
    assert change.after_ratio == pytest.approx(1.31, abs=0.01)
    assert [(each["change"], each["run"].pk) for each in heard] == [(each, each.found_by) for each in found]
    assert change.found_by in [run.pk for run in runs[22:26]]
    assert ChangePoint.objects.count() == 2


def test_a_second_change_is_found_after_the_first(heard: list[dict[str, Any]]) -> None:
    record_all(make_history(45, lambda at: 10.0 if at < 15 else 20.0 if at < 30 else 14.0))
    assert [round(change.after_us) for change in steps(heard)] == [20, 14]


def test_a_change_of_the_headline_names_the_layers(heard: list[dict[str, Any]]) -> None:
    """Here the third of four, whose step all layers above it stand on."""
    runs = make_history(24, layers=("libpq", "psycopg", "django_cursor", "django_orm"))
    slow_down(runs[16:], "django_cursor", 14.0)
    record_all(runs)
    [headline] = [given["change"] for given in heard if given["change"].layers is not None]
    assert (headline.label, headline.below) == ("django_orm · socket", "")
    assert headline.run_id == runs[16].pk
    assert headline.after_us - headline.before_us == pytest.approx(14, abs=0.6)
    found = layers_of(headline)
    assert [(each.label.split()[0], each.changed) for each in found] == [
        ("django_orm", False), ("django_cursor", True), ("psycopg", False), ("libpq", False),
    ]  # fmt: skip
    assert found[1].apart_us == pytest.approx(14, abs=0.6)
    assert found[1].low_us < 14 < found[1].high_us
    assert found[1].after_ratio == pytest.approx(found[1].before_ratio + 14 / 80, abs=0.01)
    assert sum(each.apart_us for each in found) == pytest.approx(14, abs=0.6)
    words = levels(headline)
    assert words.startswith(
        "its time per operation, the headline figure (of a suite, the geometric mean), was "
    )
    assert re.search(r" \d+ µs and is 11[345] µs \(1\.1\d times\)$", words)
    step, total = layers(headline)
    assert step.startswith("Django cursor · socket over psycopg 3 · socket: 14 µs slower (1.1")
    assert re.fullmatch(r"this step explains \+14 µs of \+1[345] µs", total)
    assert [change.label.split()[0] for change in steps(heard)] == ["django_cursor"]
    assert told([given["change"] for given in heard]) == [headline]


def test_a_change_that_no_layer_has_alone_is_said_to_be_none(heard: list[dict[str, Any]]) -> None:
    """0.5 µs in each of four layers, none of which counts."""
    runs = make_history(30, layers=("libpq", "psycopg", "django_cursor", "django_orm"))
    for layer in ("libpq", "psycopg", "django_cursor", "django_orm"):
        slow_down(runs[16:], layer, 0.5)
    record_all(runs)
    [headline] = [given["change"] for given in heard]
    assert layers(headline) == ["no layer’s step changed beyond its noise"]


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
    assert len(steps(heard)) == found


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


def test_both_times_of_a_sentence_have_one_unit() -> None:
    step = {"label": LABEL, "below": BASE, "before_us": 90_000.0, "after_us": 99_800.0, "low_us": 9e3, "high_us": 1e4,
            "before_ratio": 2.0, "after_ratio": 2.1, "changed": True}  # fmt: skip
    change = ChangePoint(label=LABEL, before_us=170_000.0, after_us=180_400.0, layers=[step])
    assert layers(change)[-1] == "this step explains +9.80 ms of +10.4 ms"


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
    assert len(steps(heard)) == 1

    def broken(*_given: Any) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(changes, "series_of", broken)
    assert changes.record(Run.objects.order_by("-pk")[0]) == []


def test_the_changes_of_a_run_are_stored_together_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, heard: list[dict[str, Any]]
) -> None:
    """One that is stored alone is never announced: no later run finds it again."""
    runs, new = make_history(24, stepped), changes._new

    def break_off(*given: Any) -> list[ChangePoint]:
        if new(*given):
            raise DatabaseError("gone")
        return []

    with monkeypatch.context() as patch:
        patch.setattr(changes, "_new", break_off)
        assert [change for each in record_all(runs) for change in each] == []
    assert not ChangePoint.objects.exists()
    assert len(changes.record(runs[-1])) == len(heard) == 2


def test_a_failing_comparison_of_environments_keeps_no_change_back(
    monkeypatch: pytest.MonkeyPatch, heard: list[dict[str, Any]]
) -> None:
    def broken(_run: Run) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(changes, "_record_environments", broken)
    found = [change for each in record_all(make_history(24, stepped)) for change in each]
    assert len(found) == len(heard) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stored", [False, True])
def test_a_restart_of_the_sites_database_keeps_no_change_back(
    stored: bool, monkeypatch: pytest.MonkeyPatch, heard: list[dict[str, Any]]
) -> None:
    """Also where the COMMIT took effect and its answer was lost."""
    cuts: list[str] = []

    @contextmanager
    def cut(using: str) -> Iterator[None]:
        with transaction.atomic(using=using):
            yield
            cuts_now = not cuts and ChangePoint.objects.exists()
            if cuts_now:
                cuts.append(using)
            if cuts_now and not stored:
                raise OperationalError("the server is gone")
        if cuts_now:
            raise OperationalError("the server is gone")

    runs = make_history(24, stepped)
    monkeypatch.setattr(changes, "transaction", SimpleNamespace(atomic=cut))
    found = [change for run in runs for change in changes.record(run, retry_s=10.0)]
    assert cuts
    assert [each["change"] for each in heard] == found
    assert [change.below for change in found] == ["", BASE]


def test_words(heard: list[dict[str, Any]]) -> None:
    record_all(make_history(24, lambda at: 22.0 if at < 14 else 10.0))
    [change] = steps(heard)
    since = f"since run {change.run_id}, {day(Run.objects.get(pk=change.run_id))}"
    assert sentence(change) == f"psycopg 3 · socket: 12 µs faster {since}"
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


def test_the_first_run_of_a_full_window_is_not_taken_for_the_first_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the run before it was deleted, it is compared with none, and so keeps that open."""
    monkeypatch.setattr(changes, "WINDOW", 2)
    runs = make_history(4, environment=_other_kernel)
    record_all(runs[:3])
    Run.objects.filter(pk=runs[2].pk).update(environment_changes=None)
    changes.record(runs[3])
    assert Run.objects.get(pk=runs[2].pk).environment_changes is None


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
