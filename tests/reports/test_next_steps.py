"""The sentence for each advice: it says what to change and what that saves."""

from dataclasses import replace
from typing import Any

import pytest

from example.books.benchmarks import BENCHMARKS as EXAMPLE
from pgperf.analysis.grade import Disturbance, Grade
from pgperf.analysis.next_step import Advice, Distance, NextStep
from pgperf.analysis.verdict import Basis, Finding, Verdict
from pgperf.catalog import BENCHMARKS
from pgperf.core.records import Ending
from pgperf.models import Run
from pgperf.reports import next_steps
from tests import factories
from tests.analysis.rows import row, summary


def sentence(found: NextStep, **verdict: Any) -> str:
    return f"{next_steps._advice(found, Verdict('x', **verdict))} {next_steps._saving(found)}".strip()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("layer", "psycopg_c"), "Use psycopg 3 (C) instead. In this run that saved 40 of 210 µs."),
        (("mode", "prepared"), "Send prepared statements. In this run that saved 40 of 210 µs."),
        (("route", "socket"), "Take the route socket. In this run that saved 40 of 210 µs."),
        (("connect", "per_operation"), "Use connections of the mode per operation."),
    ],
)
def test_an_alternative_names_its_change_and_the_measured_saving(change: tuple[str, str], text: str) -> None:
    assert sentence(NextStep(Advice.ALTERNATIVE, 210.0, 40.0, True, (change,))).startswith(text)


@pytest.mark.parametrize(("least_us", "ending"), [(5.0, "µs (at least 5)."), (19.9, "µs (at least 20)."),
                                                  (20.0, "210 µs."), (None, "210 µs.")])  # fmt: skip
def test_a_saving_that_may_be_much_smaller_says_so(least_us: float | None, ending: str) -> None:
    found = NextStep(Advice.ALTERNATIVE, 210.0, 40.0, True, (("mode", "prepared"),), least_us)
    assert sentence(found).endswith(ending)


@pytest.mark.parametrize(("word", "ending"), [("disturbed", "300 of 800 µs (at least 200)."),
                                              ("client_cpu", "300 of 800 µs.")])  # fmt: skip
def test_a_saving_in_a_disturbed_measurement_is_told_with_what_is_sure(word: str, ending: str) -> None:
    """The page has both times, 800 and 500 µs, so a reader subtracts them."""
    record = replace(summary(row()), verdict=Verdict(word))
    found = NextStep(Advice.ALTERNATIVE, 800.0, 300.0, True, (("mode", "prepared"),), 200.0)
    assert next_steps._shown(record, found).saving.endswith(ending)


@pytest.mark.parametrize("advice", [each for each in Advice if each != Advice.ALTERNATIVE])
def test_every_advice_has_a_sentence(advice: Advice) -> None:
    finding = Finding(Basis.UNEXPLAINED, missing=("server CPU",), grant="GRANT a TO b")
    assert sentence(NextStep(advice, 210.0), finding=finding).endswith(".")


def test_a_bound_is_not_told_as_a_measured_saving() -> None:
    assert sentence(NextStep(Advice.PREPARE, 210.0, 150.0)).endswith("At most 150 of 210 µs can be saved.")


@pytest.mark.parametrize(
    "advice",
    [Advice.LOCKS, Advice.DISKS, Advice.SERVER_WAITS, Advice.STATEMENT, Advice.CLIENT_ROWS, Advice.COPY,
     Advice.WEB_WORKERS],
)  # fmt: skip
def test_a_saving_that_no_benchmark_measures_is_told_as_such(advice: Advice) -> None:
    assert sentence(NextStep(advice, 210.0, 150.0)).endswith(
        "At most 150 of 210 µs can be saved. No benchmark of pgperf measures that saving: compare a run"
        " after the change with this one."
    )


def test_connections_to_keep_are_advised_after_the_saving_of_the_main_advice() -> None:
    own = replace(summary(row(5000.0)), verdict=Verdict("client_cpu"))
    found = NextStep(Advice.CLIENT_CODE, 5000.0, 2600.0, connecting_us=2100.0)
    assert next_steps._shown(own, found).text.endswith(
        "At most 2,600 of 5,000 µs can be saved. Keep connections open, too: connecting and closing take"
        " 2,100 of 5,000 µs."
    )


def test_other_work_that_is_known_has_to_end() -> None:
    crowded = Grade("poor", 0.5, (Disturbance("run_queue", "host", 90.0, 0.4, 0.9, ("cc1", "ld")),))
    assert sentence(NextStep(Advice.QUIET), grade=crowded) == (
        "Measure again when the other work on the machine has ended."
    )
    assert "quieter time" in sentence(NextStep(Advice.QUIET))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("steal", "when the machine is quieter"),
        ("run_queue", "when the machine is quieter"),
        ("throttling", "a larger CPU quota"),
        ("clock", "a clock source"),
    ],
)
def test_the_remedy_is_that_of_the_largest_disturbance(source: str, text: str) -> None:
    small = Disturbance("steal", "host", 1.0, 0.01)
    assert text in next_steps.remedy(Grade("poor", 0.4, (small, Disturbance(source, "client", 80.0, 0.4))))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("conditions", "is_advised"),
    [
        ({"authentication": "scram-sha-256", "tls": "none"}, True),
        ({"authentication": "trust", "tls": "none"}, False),
        ({"authentication": "scram-sha-256", "tls": "TLSv1.3"}, False),
        (None, True),
    ],
)
def test_a_route_with_another_login_is_no_alternative(
    conditions: dict[str, str] | None, is_advised: bool
) -> None:
    run = factories.make_results(factories.make_run())
    logins = {"tcp": {"authentication": "scram-sha-256", "tls": "none"}, "socket": conditions}
    run.environment = {**run.environment, "connections": logins}
    run.save()
    rows = list(Run.objects.get(pk=run.pk).variants.all())
    (own,) = [row for row in rows if (row.layer, row.route) == ("django_orm", "tcp")]
    others = {row.route for row in next_steps._alternatives(own, rows)}
    assert ("socket" in others) is is_advised
    assert "tcp" in others


def test_a_benchmark_that_measures_an_advice_is_one_of_the_catalog() -> None:
    named = {advice: NextStep(advice).benchmark for advice in Advice}
    assert {name for name in named.values() if name} <= set(BENCHMARKS)
    assert named[Advice.KEEP_CONNECTIONS] == "connection-cost"
    assert named[Advice.ALTERNATIVE] == "", "the run itself has measured it"


def test_each_advice_that_a_benchmark_can_confirm_names_one_that_exists() -> None:
    """The others are for the site to try: no benchmark has locks, disks or more web workers."""
    named = {advice: NextStep(advice).benchmarks for advice in Advice}
    assert {name for names in named.values() for name in names} <= {*BENCHMARKS, *EXAMPLE}
    assert named[Advice.ROUND_TRIPS] == ("published-a", "n-plus-one")
    assert [advice for advice, names in named.items() if not names] == [
        Advice.ALTERNATIVE, Advice.CLIENT_ROWS, Advice.STATEMENT, Advice.COPY, Advice.WEB_WORKERS, Advice.LOCKS,
        Advice.DISKS, Advice.SERVER_WAITS, Advice.QUIET, Advice.GRANT, Advice.REQUESTS, Advice.FIGURES, Advice.TIME,
    ]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "told"), [("copy", "for each row"), ("batch", "EXPLAIN"), ("", "EXPLAIN")])
def test_a_copy_is_known_by_the_run_s_definition(kind: str, told: str) -> None:
    run = factories.make_results(factories.make_run())
    row = run.variants.get(layer="django_orm", route="tcp", control=0)
    row.verdict = factories.stored_verdict("server_cpu")
    row.run.definition = {"workloads": [{"name": row.workload, "bulk": {"kind": kind} if kind else None}]}
    assert told in next_steps.shown_step(row, [row]).advice


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reason", "blocks", "diagnostic_ms", "told"),
    [("budget", 4, 1000, "a larger time budget"), ("budget", 7, 1000, "Make these figures known"),
     ("precision", 6, 1000, "Make these figures known"), ("budget", 4, 0, "Make these figures known")],
)  # fmt: skip
def test_a_run_without_time_for_diagnostic_slices_needs_more_of_it(
    reason: str, blocks: int, diagnostic_ms: int, told: str
) -> None:
    run = factories.make_results(factories.make_run())
    row = run.variants.get(layer="django_orm", route="tcp", control=0)
    unseen = Finding(Basis.UNEXPLAINED, missing=("wait events",))
    row.verdict, row.diagnostics = Verdict("unknown", finding=unseen).to_json(), {}
    ending = Ending(reason=reason, blocks=blocks, seconds=60.0, budget_s=60.0, precision=None, target=None)
    row.run.environment = {**run.environment, "ending": ending.to_json()}
    row.run.definition = {**run.definition, "diagnostic_ms": diagnostic_ms}
    assert told in next_steps.shown_step(row, [row]).advice


@pytest.mark.django_db
def test_a_run_leads_to_another_benchmark_than_its_own() -> None:
    run = factories.make_results(factories.make_run())
    row = run.variants.get(layer="django_orm", route="tcp", control=0)
    row.verdict = factories.stored_verdict()
    assert next_steps.shown_step(row, [row]).benchmarks == ("layers-and-modes",)
    row.run.benchmark_name = "layers-and-modes"
    assert next_steps.shown_step(row, [row]).benchmarks == ()


def test_the_figures_on_distance_can_be_divided_and_subtracted() -> None:
    text = next_steps._distance(Distance("tcp+0.5ms", 0.5, 735.0, 30.0))
    assert text == "In this run 0.5 ms of simulated network delay cost 705 µs: 735 instead of 30.0 µs, ×24.5."
    assert next_steps._distance(Distance("tcp+45ms", 45.0, 45_400.0, 215.0)) == (
        "In this run 45 ms of simulated network delay cost 45.2 ms: 45.4 instead of 0.215 ms, ×211.2."
    )
