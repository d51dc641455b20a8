"""Verdicts in words."""

import csv
import io
from typing import Any

import pytest

from pgperf.analysis import verdict_kinds
from pgperf.analysis.consistency_checks import Checks, LittlesLaw, UtilisationLaw
from pgperf.analysis.grade import Disturbance, Grade
from pgperf.analysis.rules import Facts
from pgperf.analysis.verdict import (
    Basis,
    Capacity,
    Confirmation,
    Finding,
    Lead,
    MeasuredChange,
    Verdict,
    VerdictNumbers,
)
from pgperf.analysis.verdict_kinds import VerdictKind
from pgperf.cli.result import report
from pgperf.models import VariantResult
from pgperf.reports import verdicts
from pgperf.reports.answer import claims
from pgperf.reports.csv_results import variants_csv
from pgperf.reports.labels import measured, variant_title
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read
from tests import factories
from tests.cpu_accounts import add_cpu_accounts, checks

pytestmark = pytest.mark.django_db


@pytest.fixture
def variants() -> list[VariantResult]:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=(1, 8))
    return list(add_cpu_accounts(run).variants.all())


def test_one_headline_for_each_route_of_its_last_layer_at_the_most_clients(
    variants: list[VariantResult],
) -> None:
    assert [found.title for found in verdicts.headlines(variants)] == [
        "Django ORM · socket · 8 clients", "Django ORM · tcp · 8 clients", "Django ORM · pgbouncer · 8 clients",
    ]  # fmt: skip


def test_the_evidence_does_not_repeat_the_title(variants: list[VariantResult]) -> None:
    numbers = VerdictNumbers(
        response_us=11.0, parts_us={"client": 9.0, "server": 2.0}, queue_us={"client": 0.0}
    )
    variants[0].verdict = Verdict("client_cpu", "likely", numbers=numbers).to_json()
    found = verdicts.verdicts(variants)[0]
    assert (found.word, found.certainty, found.short) == (
        "client CPU",
        "likely",
        "9.0 of 11 µs; server 2.0 µs",
    )
    assert found.evidence.startswith("client CPU")


@pytest.mark.parametrize(
    ("certainty", "intervention", "test"),
    [
        ("likely", "add_distance", "more simulated network delay to the server"),
        ("likely", "", ""),
        ("confirmed", "add_distance", ""),
        (None, "add_distance", ""),
    ],
)
def test_only_a_likely_verdict_can_be_tested(
    variants: list[VariantResult], certainty: str | None, intervention: str, test: str
) -> None:
    variants[0].verdict = Verdict("latency", certainty, intervention=intervention).to_json()
    assert verdicts.verdicts(variants)[0].test == test


def test_the_result_of_a_test_is_shown(variants: list[VariantResult]) -> None:
    tested = Confirmation("lower_layer", "confirmed", None, MeasuredChange(20.0, 11.0, 18.0, 9.0), run=12)
    variants[0].verdict = Verdict("client_cpu", "confirmed", confirmation=tested).to_json()
    found = verdicts.verdicts(variants)[0]
    assert found.test == ""
    assert list(map(str, found.notes)) == [
        "Run 12: confirmed; the same statements through libpq: 11 instead of 20 µs; "
        "it took away 9.0 of 18 µs, and the time fell by 9.0 µs"
    ]


def test_failed_checks_are_shown_with_their_numbers(variants: list[VariantResult]) -> None:
    assert verdicts.failed_checks(variants) == []
    variants[0].verdict = Verdict("unknown", checks=checks(variants[0], holds=False)).to_json()
    little, utilisation = verdicts.failed_checks(variants)
    assert little == (
        "libpq (C) · socket: Little's law: 1 client, of which throughput and time account for 0.80"
    )  # fmt: skip
    assert utilisation.startswith("libpq (C) · socket: utilisation law, server: ")


def test_a_check_that_was_not_made_has_not_failed(variants: list[VariantResult]) -> None:
    unchecked = Checks(LittlesLaw(1), {"server": UtilisationLaw()})
    variants[0].verdict = Verdict("unknown", checks=unchecked).to_json()
    assert verdicts.failed_checks(variants) == []


def withhold(variants: list[VariantResult], **shares: float) -> None:
    """The clients' CPUs were used up in some variants, by their layers."""
    for row in variants:
        capacity = Capacity(row.layer in shares, "clients", shares.get(row.layer, 0.5))
        row.verdict = Verdict("client_cpu", capacity=capacity).to_json()


WITHHELD = "This run does not show how much the server could do: the clients' CPUs were 93 % busy"


def test_a_withheld_capacity_is_said_once_for_all_variants(variants: list[VariantResult]) -> None:
    withhold(variants, **dict.fromkeys((row.layer for row in variants), 0.93))
    assert verdicts.withheld(variants) == WITHHELD
    assert [each.notes for each in verdicts.verdicts(variants)] == [()] * len(measured(variants))


def test_a_withheld_capacity_names_its_variants(variants: list[VariantResult]) -> None:
    withhold(variants, django_orm=0.93)
    first, second, third, *others = (
        variant_title(row) for row in measured(variants) if row.layer == "django_orm"
    )
    assert (
        verdicts.withheld(variants)
        == f"{WITHHELD} ({first}, {second}, {third} and {len(others)} more variants)"
    )
    withhold(variants)
    assert verdicts.withheld(variants) == ""


def test_the_most_that_was_used_up_is_told_for_all(variants: list[VariantResult]) -> None:
    withhold(variants, django_orm=0.93, libpq=0.91)
    assert verdicts.withheld(variants) == f"{WITHHELD} at most"


def test_what_limits_the_load_is_named_for_each_cause(variants: list[VariantResult]) -> None:
    withhold(variants)
    for row, busy in zip(variants, ("clients", "network"), strict=False):
        row.verdict = Verdict("client_cpu", capacity=Capacity(True, busy, 0.93, "far")).to_json()
    first, second, *_others = map(variant_title, variants)
    told = f"{WITHHELD} ({first}); the network of load host far was 93 % busy ({second})"
    assert verdicts.withheld(variants) == told


def test_a_word_of_another_version_is_its_own_title() -> None:
    assert verdicts.word_title("of_tomorrow") == "of tomorrow"
    assert verdicts.intervention_title("of_tomorrow") == "of tomorrow"


def _cold_cache(facts: Facts) -> Finding | None:
    """Decides before every other rule."""
    return Finding(Basis.INPUTS, share=0.25) if facts.clients == 8 else None


def _sentence(verdict: Verdict) -> str:
    return f"the cache was cold in {100 * verdict.finding.share:.0f} % of the rounds"


def test_one_entry_adds_a_verdict_to_pages_and_json(
    variants: list[VariantResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = VerdictKind(
        "cold_cache", "cold cache", _cold_cache, _sentence, test=lambda variant, finding: "one_client"
    )
    monkeypatch.setattr(verdict_kinds, "VERDICTS", (entry, *verdict_kinds.VERDICTS))
    row = next(row for row in variants if row.clients == 8 and not row.control)
    row.verdict = verdict_kinds.judge(row.record).to_json()
    row.save()
    assert "rounds" not in str(row.verdict)  # the sentence is not stored
    shown = next(each for each in verdicts.verdicts(variants) if each.label == row.label)
    assert (shown.word, shown.evidence, shown.test) == (
        "cold cache", "the cache was cold in 25 % of the rounds", "one client alone",
    )  # fmt: skip
    found = next(each for each in run_json(row.run)["variants"] if each["label"] == row.label)["verdict"]
    assert (found["word"], found["evidence"]) == ("cold_cache", "the cache was cold in 25 % of the rounds")
    text = report(read(row.run))
    assert "cold cache, likely" in text
    assert "the cache was cold in 25 % of the rounds" in variants_csv(row.run)


def test_variants_without_a_verdict_are_left_out() -> None:
    rows = list(factories.make_results(factories.make_run()).variants.all())
    assert verdicts.verdicts(rows) == verdicts.headlines(rows) == []


GRADE = Grade(
    "poor", 0.24, (Disturbance("steal", "host", 191.0, 0.12), Disturbance("run_queue", "host", 2.0, 0.02))
)


def test_a_disturbed_measurement_is_graded_beside_its_verdict(variants: list[VariantResult]) -> None:
    verdict = Verdict("client_cpu", "likely", grade=GRADE)
    for row in variants:
        row.verdict = verdict.to_json()
    found = verdicts.headlines(variants)[0]
    assert (found.word, found.grade) == ("client CPU", "much disturbed")
    assert str(found.notes[0]) == (
        "Other processes and the hypervisor took at most 24.0 % of the time:"
        " the hypervisor took 12 % of the host's CPU time (steal)"
        " (at most 191 µs); the rest is smaller"
    )
    claim = verdicts.verdict_table(variants).rows[0][1]
    assert claim.lines == [
        "client CPU, likely",
        "measurement much disturbed: disturbances took at most 24.0 % of the time",
    ]


@pytest.mark.parametrize(
    ("grade", "said"),
    [
        (Grade("good", 0.004), "measurement undisturbed: disturbances took at most 0.4 % of the time"),
        (Grade("good", 0.0), "measurement undisturbed: disturbances took less than 0.1 % of the time"),
        (Grade("fair", 0.03), "measurement slightly disturbed: disturbances took at most 3.0 % of the time"),
        (Grade(), "pgperf could not find out how disturbed the measurement was"),
    ],
)
def test_every_grade_is_shown_with_its_share(variants: list[VariantResult], grade: Grade, said: str) -> None:
    variants[0].verdict = Verdict("client_cpu", "likely", grade=grade).to_json()
    assert verdicts.verdict_table(variants).rows[0][1].lines == ["client CPU, likely", said]


def test_two_bottlenecks_are_named_with_their_difference(variants: list[VariantResult]) -> None:
    for row in variants:
        row.verdict = Verdict("client_cpu", "likely", lead=Lead("client", "server", 2.0, -3.0, 6.0)).to_json()
    found = verdicts.headlines(variants)[0]
    assert found.word == "client CPU or server CPU"
    assert str(found.notes[0]) == "the difference of the two is 2.00 µs, between −3.00 and 6.00"


@pytest.mark.parametrize("hidden", ["waiting", "unseen"])
def test_an_unattributed_part_may_be_the_longest(variants: list[VariantResult], hidden: str) -> None:
    for row in variants:
        row.verdict = Verdict("client_cpu", "likely", lead=Lead("client", hidden, 2.0, -3.0, 6.0)).to_json()
    found = verdicts.headlines(variants)[0]
    assert (found.word, str(found.notes[0])) == (
        "client CPU",
        "an unattributed part may be longer: the difference from the time that could not be divided is 2.00 µs,"
        " between −3.00 and 6.00",
    )
    assert claims.plain(variants[0]) == (
        "The longest part of the time is client CPU, or one that the run does not see (likely)."
    )
    alone = Lead("client", hidden, 2.0)
    (note,) = verdicts._notes(Verdict("client_cpu", "likely", lead=alone))
    assert str(note).startswith("the next part is time that could not be divided, 2.00 µs less")


def test_the_lead_of_a_single_block_has_a_caution(variants: list[VariantResult]) -> None:
    for row in variants:
        row.verdict = Verdict("client_cpu", "likely", lead=Lead("client", "server", 2.0)).to_json()
    found = verdicts.headlines(variants)[0]
    assert (found.word, *map(str, found.notes)) == (
        "client CPU",
        "the next part is server CPU, 2.00 µs less; too few blocks were measured to tell how sure that is",
    )


@pytest.mark.parametrize(
    ("lead", "shown", "is_open"),
    [
        (Lead("client", "server", 2.0, -3.0, 6.0), ["server", "2.0", "-3.0", "6.0", "True"], True),
        (Lead("client", "server", 9.0, 3.0, 16.0), ["server", "9.0", "3.0", "16.0", "False"], False),
        (Lead("client", "server", 2.0), ["server", "2.0", "", "", ""], None),
    ],
)
def test_files_have_the_lead_and_whether_it_is_open(
    variants: list[VariantResult], lead: Lead, shown: list[str], is_open: bool | None
) -> None:
    variants[0].verdict = Verdict("client_cpu", "likely", lead=lead).to_json()
    variants[0].save()
    run = variants[0].run
    row = next(csv.DictReader(io.StringIO(variants_csv(run))))
    assert [row[f"verdict_lead_{key}"] for key in ("runner_up", "us", "low", "high", "is_open")] == shown
    assert run_json(run)["variants"][0]["verdict"]["lead"]["is_open"] is is_open


def _last_lines(variants: list[VariantResult], layer: str) -> list[str]:
    """What the evidence of these verdicts ends in."""
    rows = zip(verdicts.verdicts(variants), verdicts.verdict_table(variants).rows, strict=True)
    return [row[2].lines[-1] for found, row in rows if found.label.startswith(f"{layer} ")]


def _judged(variants: list[VariantResult], **stored: Any) -> list[VariantResult]:
    """The ORM over each route with one client, as fast over all of them."""
    found = [row for row in variants if (row.layer, row.clients) == ("django_orm", 1)]
    for row in found:
        row.us_per_op, row.us_per_op_low, row.us_per_op_high = 211.0, 209.0, 213.0
        row.verdict = Verdict("client_cpu", "likely", **stored).to_json()
    return found


def test_each_verdict_ends_in_what_to_try_next_and_long_advice_is_said_once(
    variants: list[VariantResult],
) -> None:
    shown = _judged(variants)
    shown[1].cpu_us_per_op = {**shown[1].cpu_us_per_op, "client_user": 90.0, "client_sys": 10.0}
    first, second, third = _last_lines(shown, "django_orm")
    assert first.startswith("Next: Do less in the client: fetch fewer rows or columns")
    assert second == "Next: the same as for Django ORM · socket. At most 101 of 211 µs can be saved."
    assert third.startswith("Next: the same as for Django ORM · socket. At most 1")


def test_short_advice_is_repeated_with_its_own_saving(variants: list[VariantResult]) -> None:
    shown = _judged(variants)
    shown[0].us_per_op, shown[0].us_per_op_low, shown[0].us_per_op_high = 180.0, 179.0, 181.0
    assert (
        _last_lines(shown, "django_orm")[1:]
        == ["Next: Take the route socket. In this run that saved 31 of 211 µs."] * 2
    )


def test_a_verdict_that_a_test_has_withdrawn_gives_no_advice(variants: list[VariantResult]) -> None:
    (row, *_others) = _judged(variants)
    row.verdict = Verdict("client_cpu", "withdrawn").to_json()
    assert not any("Next:" in line for cell in verdicts.verdict_table([row]).rows[0] for line in cell.lines)


def test_pages_the_terminal_and_files_have_the_next_step(variants: list[VariantResult]) -> None:
    rows = read(variants[0].run)
    said = verdicts.verdicts(rows.variants)[0].next_step.text
    assert said
    assert f"Next: {said}" in " ".join(report(rows).split())
    files = csv.DictReader(io.StringIO(variants_csv(variants[0].run)))
    assert next(iter(files))["next_step"] == said
