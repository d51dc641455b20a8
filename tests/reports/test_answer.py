"""The answer of a run: the bottleneck, what the ORM adds, how sure that is, what to try."""

from dataclasses import asdict
from typing import Any

import pytest

from pgperf.analysis import verdict_kinds
from pgperf.analysis.grade import Disturbance, Grade
from pgperf.analysis.ladder import Step
from pgperf.analysis.verdict import Basis, Capacity, Finding, Lead, VerdictNumbers
from pgperf.core.records import BUDGET, ENDING, Ending
from pgperf.models import Run, VariantResult
from pgperf.reports import answer
from pgperf.reports.answer import Point, adds, orm, routes
from pgperf.reports.run_json import run_json
from pgperf.reports.run_page import result_of
from pgperf.reports.run_rows import read
from pgperf.reports.sections.answer import part
from pgperf.reports.table import CAUTION
from tests import factories, page_run, site_steps
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts, checks

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return add_cpu_accounts(factories.make_results(factories.make_run()))


def told(run: Run) -> dict[str, Point]:
    return {point.question: point for point in answer.points(read(run))}


def judge(run: Run, route: str, **verdict: Any) -> None:
    row = run.variants.get(layer="django_orm", route=route, control=0)
    row.verdict = {**row.verdict, **verdict}
    row.save()


def graded(word: str, share: float, *found: Disturbance) -> dict[str, Any]:
    return {"grade": asdict(Grade(word, share, found))}


def test_the_questions_in_their_order(run: Run) -> None:
    assert list(told(run)) == ["Bottleneck", "What the ORM adds", "How sure", "What to do next"]


def test_routes_with_the_same_bottleneck_share_a_sentence(run: Run) -> None:
    point = told(run)["Bottleneck"]
    assert point.sentences == ("The client’s own work takes the largest part of the time (likely).",)
    assert point.lines[0].text.startswith("Django ORM · socket: 159 of 215 µs")


def test_a_busy_load_host_is_told_once_for_all_routes(run: Run) -> None:
    for share, route in ((0.9, "socket"), (0.89, "tcp"), (0.93, "pgbouncer")):
        judge(run, route, capacity=asdict(Capacity(True, "host", share)))
    (line,) = [note for note in told(run)["Bottleneck"].lines if "how much the server" in note.text]
    assert line.text == (
        "This run does not show how much the server could do: the CPUs of the clients' machine were 93 % busy at most"
        " (Django ORM · socket, Django ORM · tcp, Django ORM · pgbouncer)"
    )
    assert line.mark == CAUTION


def test_either_of_two_bottlenecks_is_one_claim_in_either_order(run: Run) -> None:
    ends = {"us": 4.0, "low": -2.0, "high": 10.0}
    judge(run, "socket", word="client_cpu", lead=asdict(Lead("client", "server", **ends)))
    for route in ("tcp", "pgbouncer"):
        judge(run, route, word="server_cpu", lead=asdict(Lead("server", "client", **ends)))
    (sentence,) = told(run)["Bottleneck"].sentences
    assert sentence.startswith("The longest part of the time is ")


def test_other_work_is_to_end_for_all_routes(run: Run) -> None:
    for name, route in (("cc1", "socket"), ("ld", "tcp"), ("ar", "pgbouncer")):
        crowded = graded("poor", 0.5, Disturbance("run_queue", "host", 90.0, 0.4, 0.9, (name,)))
        judge(run, route, word="disturbed", **crowded)
    assert told(run)["What to do next"].sentences == (
        "Measure again when the other work on the machine has ended.",
    )


def test_routes_with_different_bottlenecks_are_named(run: Run) -> None:
    judge(run, "tcp", word="server_cpu", certainty="confirmed")
    assert told(run)["Bottleneck"].sentences == (
        "socket, pgbouncer: The client’s own work takes the largest part of the time (likely).",
        "tcp: The server’s own work takes the largest part of the time (confirmed).",
    )


@pytest.mark.parametrize(
    ("others", "said"),
    [(1, "All routes but r0: text"), (2, "All routes but r0, r1: text"), (3, "6 of 9 routes: text"),
     (6, "r6, r7, r8: text"), (0, "text")],
)  # fmt: skip
def test_many_routes_are_counted_and_not_listed(others: int, said: str) -> None:
    shown = [VariantResult(pk=at + 1, route=f"r{at}") for at in range(9)]
    assert routes.of_routes("text", shown[others:], shown) == said


def test_a_withdrawn_verdict_is_not_claimed(run: Run) -> None:
    for route in factories.ROUTES:
        judge(run, route, certainty="withdrawn")
    assert told(run)["Bottleneck"].sentences == ("A test has withdrawn the verdict client CPU.",)


def test_a_quota_is_not_other_processes(run: Run) -> None:
    for row in run.variants.all():
        row.verdict = {**row.verdict, **graded("poor", 0.2, Disturbance("throttling", "client", 40.0, 0.2))}
        row.save()
    found = told(run)
    assert found["How sure"].sentences == (
        "The measurement is much disturbed: all disturbances took at most 20.0 % of the time.",
    )
    assert "Waiting for other processes" not in found["What the ORM adds"].sentences[0]
    judge(run, "socket", **graded("poor", 0.2, Disturbance("run_queue", "host", 40.0, 0.2)))
    assert "Waiting for other processes" in told(run)["What the ORM adds"].sentences[0]


def test_a_pool_without_a_free_connection_has_a_sentence_of_its_own(run: Run) -> None:
    finding = asdict(Finding(Basis.NO_FREE_CONNECTION, share=0.1))
    for route in factories.ROUTES:
        judge(run, route, word="pool_queue", certainty=None, finding=finding)
    assert told(run)["Bottleneck"].sentences == (
        "All server connections of the pool are in use, and clients wait for one.",
    )


@pytest.mark.parametrize("word", verdict_kinds.words())
def test_every_verdict_has_a_plain_sentence(run: Run, word: str) -> None:
    for route in factories.ROUTES:
        judge(run, route, word=word, certainty=None)
    (sentence,) = told(run)["Bottleneck"].sentences
    assert len(sentence.split()) > 3
    assert sentence[0].isupper()


def test_a_client_that_mostly_waits_for_its_own_workers_is_said_so(run: Run) -> None:
    numbers = VerdictNumbers(parts_us={"client": 40.0, "interpreter": 227.0, "latency": 173.0})
    for route in factories.ROUTES:
        judge(run, route, word="client_cpu", certainty="likely", numbers=asdict(numbers))
    (sentence,) = told(run)["Bottleneck"].sentences
    assert sentence.startswith(
        "The client’s work and its workers’ waits for each other take the largest part"
    )


def test_failed_requests_are_what_the_answer_is_about(run: Run) -> None:
    for route in factories.ROUTES:
        judge(run, route, word="unknown", certainty=None, finding=asdict(Finding(Basis.FAILED_REQUESTS)))
    found = told(run)
    assert found["Bottleneck"].sentences == ("Nothing was measured: each slice had a failed request.",)


def test_the_step_of_the_orm_in_a_disturbed_run_is_not_what_raw_sql_would_save(run: Run) -> None:
    judge(run, "tcp", **graded("poor", 0.3))
    (sentence,) = told(run)["What the ORM adds"].sentences
    assert sentence.endswith("Waiting for other processes is part of it, so raw SQL may save less.")
    judge(run, "tcp", **graded("fair", 0.1))
    assert told(run)["What the ORM adds"].sentences[0].endswith("Raw SQL would save it.")


def test_a_disturbed_cursor_makes_the_step_of_the_orm_doubtful_too(run: Run) -> None:
    poor = graded("poor", 0.3)
    for row in run.variants.filter(layer="django_cursor", route="tcp"):
        row.verdict = {**row.verdict, **poor}
        row.save()
    (sentence,) = told(run)["What the ORM adds"].sentences
    assert sentence.endswith("so raw SQL may save less.")


@pytest.mark.parametrize("step_us", [0.0, -3.0])
def test_an_orm_that_is_no_slower_than_the_cursor_takes_nothing(step_us: float) -> None:
    step = Step("django_orm", "ORM", 215.0, 200.0, 230.0, step_us, -9.0, 3.0, 1.0, None, None)
    assert orm.share_sentence([step], is_disturbed=False).startswith(
        "This run shows no time that the ORM takes"
    )


def test_a_share_that_rounds_to_nothing_is_said_in_words(run: Run) -> None:
    for route in factories.ROUTES:
        judge(run, route, **graded("good", 0.0002))
    assert told(run)["How sure"].sentences == (
        "The measurement is undisturbed: other work took less than 0.1 % of the time.",
    )


def test_the_step_of_the_orm_is_what_raw_sql_would_save(run: Run) -> None:
    point = told(run)["What the ORM adds"]
    assert point.sentences == ("The ORM takes 125 µs, 54 to 58 % of the time. Raw SQL would save it.",)
    (line,) = point.lines
    assert line.text.startswith("Over socket 125 of 215 µs (95 % interval 113 … 140), tcp 125 of 226 µs")


@pytest.mark.parametrize(("low", "high", "saving"), [
    (63.0, 187.0, "Raw SQL would save it."),
    (62.0, 140.0, "Raw SQL would save 62.0 µs at least."),
    (113.0, 188.0, "Raw SQL would save 113 µs at least."),
    (-20.0, 140.0, "The intervals are too wide to tell what raw SQL would save."),
    (None, None, "The intervals are too wide to tell what raw SQL would save."),
])  # fmt: skip
def test_a_saving_is_claimed_as_far_as_the_interval_tells_it(
    low: float | None, high: float | None, saving: str
) -> None:
    step = Step("django_orm", "ORM", 215.0, 200.0, 230.0, 125.0, low, high, 3.1, None, None)
    takes = "takes" if saving.endswith("it.") else "seems to take"
    text = orm.share_sentence([step], is_disturbed=False)
    assert text == f"The ORM {takes} 125 µs, 58 % of the time. {saving}"
    disturbed = orm.share_sentence([step], is_disturbed=True)
    assert disturbed.startswith(f"The ORM {takes} 125 µs, 58 % of the time. Waiting for other processes")
    assert "at least" not in disturbed, "others may have added more than the interval tells"


def test_the_orm_is_told_of_the_fewest_clients() -> None:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=(1, 8))
    assert told(run)["What the layers add"].sentences[0].startswith("socket · 1 client: Django ORM takes")
    run = factories.make_results(factories.make_run(), clients=(1, 8))
    assert told(run)["What the ORM adds"].sentences[0].startswith("1 client: The ORM takes 125 µs")


def test_each_point_has_the_clients_of_a_run_with_several_numbers_of_them() -> None:
    run = add_cpu_accounts(factories.make_results(factories.make_run(), clients=(1, 8)))
    found = told(run)
    assert all("8 clients: " in text for text in found["Bottleneck"].sentences)
    assert found["What the ORM adds"].sentences[0].startswith("1 client: ")
    assert found["How sure"].sentences[0].startswith("The measurement of 8 clients is ")
    assert all("8 clients: " in text for text in found["What to do next"].sentences)
    split, spent = part(read(run))["figures"]
    assert (split.title, spent.title) == ("Time by layer, 1 client", "Time by resource, 8 clients")


def test_routes_and_clients_stand_before_a_sentence() -> None:
    shown = [VariantResult(pk=at + 1, route=f"r{at}") for at in range(3)]
    assert routes.of_routes("text", shown, shown, "8 clients") == "8 clients: text"
    assert routes.of_routes("text", shown[1:], shown, "8 clients") == "r1, r2 · 8 clients: text"


def test_a_run_with_one_number_of_clients_does_not_name_it(run: Run) -> None:
    said = [text for point in told(run).values() for text in point.sentences]
    assert not [text for text in said if "1 client" in text]
    assert [figure.title for figure in part(read(run))["figures"]] == ["Time by layer", "Time by resource"]


def ended(run: Run, **fields: Any) -> Run:
    ending = {
        "reason": BUDGET,
        "blocks": 9,
        "seconds": 91.0,
        "budget_s": 90.0,
        "precision": 0.04,
        "target": 0.02,
    }
    run.environment = {**run.environment, ENDING: Ending(**{**ending, **fields}).to_json()}
    return run


def test_the_remedy_of_a_run_that_used_up_its_time_stands_with_the_advice_alone(run: Run) -> None:
    text = "For narrower intervals: run longer or on a quieter machine."
    assert told(ended(run))["What to do next"].sentences[-1] == text
    assert result_of(read(run)).ending == "90 s used up; the ratios are known to ±4 %, not to ±2 %."
    assert text not in told(ended(run, precision=0.01))["What to do next"].sentences


def test_a_disturbed_run_is_told_once_to_be_measured_again(run: Run) -> None:
    crowded = graded("poor", 0.5, Disturbance("run_queue", "host", 90.0, 0.4, 0.9, ("cc1",)))
    for route in factories.ROUTES:
        judge(run, route, word="disturbed", **crowded)
    (sentence,) = told(ended(run))["What to do next"].sentences
    assert sentence.startswith("Measure again")


def test_the_remedy_stands_alone_where_there_is_no_other_advice() -> None:
    run = ended(factories.make_results(factories.make_run()))
    point = told(run)["What to do next"]
    assert point.sentences == ("For narrower intervals: run longer or on a quieter machine.",)
    assert point.anchor == ""


def test_the_remedy_of_a_suite_follows_its_advice() -> None:
    run = ended(make_catalog_run("driver-suite-published"))
    assert [text.split(" ")[0] for text in told(run)["What to do next"].sentences] == ["Open", "For"]


def test_the_ratios_of_a_single_block_have_a_caution(run: Run) -> None:
    def cautions() -> list[str]:
        return [note.text for note in told(run)["What the ORM adds"].lines if note.mark == CAUTION]

    assert cautions() == []
    run.comparisons.filter(position__gt=0).update(sample="rounds")
    assert cautions() == [], "another comparison is of several blocks"
    run.comparisons.update(sample="rounds")
    assert cautions() == [
        "One block was measured. Its rounds alone make the intervals, which do not tell how far another block"
        " would differ."
    ]


def test_a_run_without_the_orm_compares_its_layers() -> None:
    run = factories.make_results(factories.make_run(), layers=("libpq", "psycopg"), routes=("socket",))
    point = told(run)["What the layers add"]
    assert point.sentences == (
        "socket: psycopg 3 takes ×1.097 the time of libpq (C), 6.7 µs more per operation.",
    )


def test_no_point_is_empty() -> None:
    """A run of one layer, and steps without effects."""
    alone = factories.make_results(factories.make_run(), layers=("libpq",), routes=("socket",))
    site = site_steps.make_run()
    site.comparisons.all().delete()
    for run in (alone, site):
        assert run.variants.exists()
        assert all(any(point.sentences) for point in told(run).values())
        assert "What the layers add" not in told(run)


def test_a_suite_has_the_means_of_its_layers() -> None:
    found = told(make_catalog_run("driver-suite-published"))
    assert list(found) == ["Bottleneck", "How the layers compare", "How sure", "What to do next"]
    assert "in all 7 workloads" in found["Bottleneck"].sentences[0]
    assert "geometric mean" in found["How the layers compare"].sentences[0]


def test_a_much_disturbed_suite_is_to_be_measured_again() -> None:
    run = make_catalog_run("driver-suite-published")
    assert told(run)["What to do next"].sentences[0].startswith("Open Layers")
    row = run.variants.filter(control=0)[2]
    row.verdict = {**factories.stored_verdict(), **graded("poor", 0.7)}
    row.save()
    assert told(run)["What to do next"].sentences == ("Run it again when the machine is quieter.",)


def test_the_sentences_and_charts_of_a_suite_are_about_one_setting() -> None:
    run = add_cpu_accounts(make_catalog_run("driver-suite"))
    found = told(run)
    variant, _colon, _verdict = found["Bottleneck"].sentences[0].partition(":")
    layer, _dot, setting = variant.partition(" · ")
    assert found["How the layers compare"].sentences[0].startswith(f"{setting}: geometric mean")
    means, spent = part(read(run))["figures"]
    assert means.title.startswith(f"Time of each layer: {setting}, mean of ")
    assert spent.title == f"Time by resource: {layer} · {setting}"


def test_the_steps_of_a_site_are_named() -> None:
    found = told(add_cpu_accounts(site_steps.make_run()))
    assert [text.split(":")[0] for text in found["What each step changes"].sentences] == [
        "web_nginx", "web_pgbouncer", "web_advised",
    ]  # fmt: skip
    assert found["What each step changes"].lines == ()
    assert "Take the route web_advised." in found["What to do next"].sentences[0]


def test_a_page_has_its_layers_before_the_steps_of_its_site() -> None:
    run = page_run.make_run()
    questions = list(told(run))
    assert questions.index("What the layers add") + 1 == questions.index("What each step changes")
    assert [figure.name for figure in part(read(run))["figures"]] == ["split", "steps"]


def test_a_few_pieces_of_advice_are_given_and_the_rest_is_counted() -> None:
    found = told(page_run.make_run())["What to do next"]
    assert len(found.sentences) == 3
    assert found.lines[-1].text == "1 more is listed with the verdicts."


def test_steps_alone_have_no_layers() -> None:
    run = add_cpu_accounts(site_steps.make_run())
    assert [figure.name for figure in part(read(run))["figures"]] == ["steps", "spent"]


def test_of_many_steps_the_largest_are_named_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adds, "MOST_STEPS", 2)
    point = told(site_steps.make_run())["What each step changes"]
    assert [text.split(":")[0] for text in point.sentences] == ["web_nginx", "web_pgbouncer"]
    assert [line.text for line in point.lines] == ["1 more step makes a smaller difference."]


def test_the_worst_grade_is_told_with_its_cause(run: Run) -> None:
    for route in factories.ROUTES:
        judge(run, route, **graded("good", 0.01))
    assert told(run)["How sure"].sentences == (
        "The measurement is undisturbed: other work took at most 1.0 % of the time.",
    )
    judge(run, "tcp", **graded("poor", 0.31, Disturbance("run_queue", "host", 60.0, 0.28, 1.2, ("gcc",))))
    point = told(run)["How sure"]
    assert point.mark == "fair", "as on the dashboard: a cross is for what failed"
    assert point.sentences == (
        "The measurement is much disturbed: other work took at most 31.0 % of the time.",
    )
    assert point.lines[0].text.startswith("Django ORM · tcp: 28 % of the time in the run queue")
    assert "gcc" in point.lines[0].text


def test_failed_checks_come_first(run: Run) -> None:
    row = run.variants.get(layer="libpq", route="tcp", control=0)
    row.verdict = verdict_kinds.judge(row.record, checks(row, holds=False)).to_json()
    row.save()
    point = told(run)["How sure"]
    assert point.mark == "poor"
    assert point.sentences == ("2 consistency checks failed. Do not trust the figures until you know why.",)
    assert "Little's law: 1 client" in point.lines[0].text
    assert "utilisation law" in point.lines[1].text
    assert point.lines[2].text.startswith("The measurement is ")


def test_a_few_of_many_failed_checks_are_listed(run: Run) -> None:
    for row in run.variants.filter(layer="libpq", control=0):
        row.verdict = verdict_kinds.judge(row.record, checks(row, holds=False)).to_json()
        row.save()
    lines = [note.text for note in told(run)["How sure"].lines]
    failed = 2 * run.variants.filter(layer="libpq", control=0).count()
    assert sum("law" in text for text in lines) == 3
    assert lines[3] == f"{failed - 3} more are listed with the verdicts."


def test_controls_that_differ_are_counted(run: Run) -> None:
    assert (
        "2 variants were measured twice as controls: no false difference."
        in told(run)["How sure"].lines[-1].text
    )
    run.comparisons.filter(pk=run.comparisons.filter(aa=True).first().pk).update(outcome="differs")
    assert (
        "1 of 2 variants that were measured twice as controls shows a false difference."
        in told(run)["How sure"].lines[-1].text
    )
    run.comparisons.filter(aa=True).update(outcome="differs")
    assert "2 of 2 variants that were measured twice as controls show" in told(run)["How sure"].lines[-1].text


def test_a_quick_run_says_so(run: Run) -> None:
    run.quick = True
    said = told(run)["How sure"].lines[-1].text
    assert "The run was a quick one" in said


def test_a_saving_that_differs_by_route_names_its_own(run: Run) -> None:
    point = told(run)["What to do next"]
    assert point.sentences == ("Use Django cursor instead. In this run that saved 125 of 215 µs.",)
    assert [line.text for line in point.lines] == ["The saving is that of socket."]


def far_away() -> Run:
    """A run of the ORM over tcp with and without a delay, and over pgbouncer."""
    routes = ("tcp", "tcp+0.5ms", "pgbouncer")
    made = factories.make_results(factories.make_run(), routes=routes, layers=("libpq", "django_orm"))
    return add_cpu_accounts(made)


def test_what_distance_costs_comes_after_the_advice_with_its_route() -> None:
    *advised, last = told(far_away())["What to do next"].sentences
    assert advised
    assert all("network delay" not in text for text in advised)
    cost = "In this run 0.5 ms of simulated network delay cost 500 µs"
    assert last == f"tcp: {cost}: 726 instead of 226 µs, ×3.21."


def test_the_cost_of_distance_has_the_figures_of_the_comparison() -> None:
    """Both follow from one fit, so a reader who divides the times finds the ratio."""
    run = far_away()
    compared = run.comparisons.get(variant__layer="django_orm", variant__route="tcp+0.5ms", baseline__route="tcp",
                                   baseline__layer="django_orm")  # fmt: skip
    near, far = compared.baseline, compared.variant
    (found,) = (each for each in run_json(run)["variants"] if each["label"] == near.label)
    assert found["next_step"]["distances"] == [
        {"route": "tcp+0.5ms", "ms": 0.5, "us": far.us_per_op, "cost_us": pytest.approx(compared.delta_us),
         "times": pytest.approx(compared.ratio)}
    ]  # fmt: skip
    assert found["next_step"]["of_us"] == near.us_per_op
    assert "500 µs: 726 instead of 226 µs, ×3.21." in found["next_step"]["text"]


def test_a_disturbed_run_does_not_tell_what_distance_costs() -> None:
    run = far_away()
    judge(run, "tcp", word="disturbed", certainty=None)
    assert not [text for text in told(run)["What to do next"].sentences if "distance" in text]


def test_a_run_without_cpu_accounts_claims_nothing() -> None:
    found = told(factories.make_results(factories.make_run()))
    assert found["Bottleneck"].sentences == ("Not known: this run has no CPU accounts.",)
    assert found["How sure"].sentences == ("pgperf could not find out how disturbed the measurement was.",)
    assert "What to do next" not in found


def test_a_run_without_figures_has_no_answer() -> None:
    assert answer.points(read(factories.make_run(Run.Status.FAILED))) == []
