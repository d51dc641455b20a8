"""Verdicts in words."""

import pytest

from pgperf.analysis import interventions, verdict
from pgperf.models import VariantResult
from pgperf.reports import verdicts
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


def test_the_evidence_does_not_say_the_word_twice(variants: list[VariantResult]) -> None:
    variants[0].verdict = {
        "word": "client_cpu",
        "certainty": "likely",
        "evidence": "client CPU: 9 of 11 µs; server 2 µs",
    }
    found = verdicts.verdicts(variants)[0]
    assert (found.word, found.certainty, found.short) == ("client CPU", "likely", "9 of 11 µs; server 2 µs")
    assert found.evidence.startswith("client CPU")


@pytest.mark.parametrize(
    ("certainty", "intervention", "test"),
    [
        ("likely", "add_distance", "a longer way to the server"),
        ("likely", "", ""),
        ("confirmed", "add_distance", ""),
        (None, "add_distance", ""),
    ],
)
def test_only_what_is_likely_can_be_put_to_the_test(
    variants: list[VariantResult], certainty: str | None, intervention: str, test: str
) -> None:
    variants[0].verdict = {"word": "latency", "certainty": certainty, "intervention": intervention}
    assert verdicts.verdicts(variants)[0].test == test


def test_what_a_test_found(variants: list[VariantResult]) -> None:
    variants[0].verdict |= {
        "certainty": "confirmed",
        "confirmation": {"run": 12, "outcome": "confirmed", "evidence": "it fell by 9 µs"},
    }
    found = verdicts.verdicts(variants)[0]
    assert (found.tested_by, found.found, found.test) == (12, "confirmed. it fell by 9 µs", "")


def test_laws_that_fail_are_told_with_their_numbers(variants: list[VariantResult]) -> None:
    assert verdicts.broken_laws(variants) == []
    variants[0].verdict["checks"] = checks(variants[0], holds=False)
    little, utilisation = verdicts.broken_laws(variants)
    assert little == (
        "libpq (C) · socket: Little's law: 1 client, of whom throughput and time account for 0.80"
    )  # fmt: skip
    assert utilisation.startswith("libpq (C) · socket: utilisation law, server: ")


def test_a_law_that_could_not_be_checked_has_not_failed(variants: list[VariantResult]) -> None:
    variants[0].verdict["checks"] = {"little": {"holds": None}, "utilisation": {"server": {"holds": None}}}
    assert verdicts.broken_laws(variants) == []


def test_what_may_not_be_claimed_is_said(variants: list[VariantResult]) -> None:
    variants[0].verdict["checks"] = {"capacity": {"withheld": True, "why": "the host was 93% busy"}}
    assert verdicts.verdicts(variants)[0].cautions == [
        "Says nothing of what the server could do: the host was 93% busy"
    ]


def test_every_word_and_intervention_has_a_title() -> None:
    words = [*verdict.WORDS, *interventions.TITLES]
    titles = [verdicts.word_title(word) for word in verdict.WORDS]
    titles += [verdicts.intervention_title(name) for name in interventions.TITLES]
    untold = [
        word
        for word, title in zip(words, titles, strict=True)
        if "_" in word and title == word.replace("_", " ")
    ]
    assert untold == []
    assert verdicts.word_title("of_tomorrow") == "of tomorrow"


def test_variants_without_a_verdict_are_left_out() -> None:
    rows = list(factories.make_results(factories.make_run()).variants.all())
    assert verdicts.verdicts(rows) == verdicts.headlines(rows) == []
