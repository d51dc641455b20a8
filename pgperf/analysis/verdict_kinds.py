"""The verdicts: one entry each, with its word, title, rule, evidence and test. Pure.

To add a verdict, write its rule and add its entry to `VERDICTS`. A run stores the word and the
numbers; pages, JSON and files make the sentences with the functions here. A verdict is "likely"
until a test confirms it or withdraws it (`pgperf.analysis.interventions`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pgperf.analysis import evidence as sentences
from pgperf.analysis import interventions, rules
from pgperf.analysis.consistency_checks import Checks
from pgperf.analysis.evidence import Sentence
from pgperf.analysis.facts import SATURATED, Facts
from pgperf.analysis.interventions import INTERVENTIONS
from pgperf.analysis.rules import Rule
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import (
    LIKELY,
    UNDECIDED,
    WITHDRAWN,
    Basis,
    Capacity,
    Confirmation,
    Finding,
    Verdict,
)
from pgperf.core.layers import BASE_LAYER, connects
from pgperf.core.translation import gettext_noop

Test = Callable[[VariantSummary, Finding], str]

DISTURBED, UNKNOWN = "disturbed", "unknown"
#: With a load host so busy, a run does not show how much the server could do.
HOST_BUSY = 0.80


@dataclass(frozen=True)
class VerdictKind:
    """One word with its rule, evidence and test.

    `part` is the part of the time breakdown that a test removes. `claims` is False for words that
    name no bottleneck.
    """

    word: str
    title: str
    rule: Rule
    evidence: Sentence
    test: Test = interventions.no_test  # the name of the intervention for a variant; "" for none
    part: str = ""
    claims: bool = True


def _by(name: str) -> Test:
    return lambda variant, finding: name


def _by_lower_layer(variant: VariantSummary, _finding: Finding) -> str:
    return "" if variant.layer == BASE_LAYER else interventions.LOWER_LAYER


def _by_one_client(variant: VariantSummary, _finding: Finding) -> str:
    return interventions.ONE_CLIENT if variant.clients > 1 else ""


def _by_load_or_statement(_variant: VariantSummary, finding: Finding) -> str:
    """Double the clients if the server is used up, otherwise give it a light statement."""
    used_up = finding.basis == Basis.SATURATED
    return interventions.DOUBLE_CLIENTS if used_up else interventions.LIGHT_STATEMENT


def _by_distance_or_load(variant: VariantSummary, _finding: Finding) -> str:
    long = (TimeBreakdown.of(variant).waits["latency"] or 0.0) >= interventions.LONG_US
    return interventions.ADD_DISTANCE if long and variant.clients > 1 else interventions.DOUBLE_CLIENTS


def _cpu(role: str, title: str, test: Test) -> VerdictKind:
    return VerdictKind(f"{role}_cpu", title, rules.cpu(role), sentences.of_cpu(title, role), test, role)


def _wait(part: str, title: str, test: Test, rule: Rule | None = None) -> VerdictKind:
    return VerdictKind(part, title, rule or rules.wait(part), sentences.of_part(title, part), test, part)


VERDICTS: tuple[VerdictKind, ...] = (
    _cpu("client", gettext_noop("client CPU"), _by_lower_layer),
    _cpu("pooler", gettext_noop("pooler CPU"), _by(interventions.BYPASS_POOLER)),
    _cpu("server", gettext_noop("server CPU"), _by_load_or_statement),
    VerdictKind(
        "pool_queue",
        gettext_noop("queue for the pool"),
        rules.pool_queue,
        sentences.of_pool_queue("queue for the pool"),
        _by(interventions.BYPASS_POOLER),
        "pool_queue",
    ),
    _wait("server_lock", gettext_noop("locks in the server"), _by_one_client),
    _wait("server_io", gettext_noop("server I/O"), _by(interventions.LIGHT_STATEMENT)),
    _wait("server_wait", gettext_noop("other waits in the server"), _by(interventions.LIGHT_STATEMENT)),
    _wait("latency", gettext_noop("network and waking up"), _by_distance_or_load, rules.latency),
    VerdictKind(
        DISTURBED, gettext_noop("disturbed"), rules.disturbed, sentences.of_disturbance, claims=False
    ),
    VerdictKind(UNKNOWN, gettext_noop("unknown"), rules.unknown, sentences.of_unknown, claims=False),
)


def words() -> tuple[str, ...]:
    return tuple(kind.word for kind in VERDICTS)


def kind_of(word: str) -> VerdictKind | None:
    """The entry of a word; None for one that this version does not know."""
    return next((kind for kind in VERDICTS if kind.word == word), None)


def title(word: str) -> str:
    """The title of a word; the word itself where this version does not know it."""
    kind = kind_of(word)
    return kind.title if kind else word.replace("_", " ")


def judge(variant: VariantSummary, checks: Checks | None = None) -> Verdict:
    """The verdict on a variant, from the rule whose basis comes first."""
    facts = Facts.of(variant)
    found = [(kind, finding) for kind in VERDICTS if (finding := kind.rule(facts))]
    kind, finding = min(found, key=lambda each: list(Basis).index(each[1].basis))
    return Verdict(
        word=kind.word,
        certainty=LIKELY if kind.claims else None,
        finding=finding,
        numbers=facts.numbers(),
        checks=checks or Checks(),
        capacity=_capacity(facts),
        intervention=kind.test(variant, finding) if connects(variant.layer) else "",
    )


def evidence(verdict: Verdict) -> str:
    """The sentence that gives the verdict's numbers."""
    kind = kind_of(verdict.word)
    return kind.evidence(verdict) if kind else ""


def confirm(
    verdict: Verdict, intervention: str, own: VariantSummary, changed: VariantSummary | None
) -> Confirmation:
    """What a test says of the verdict: `own` is the variant measured again, `changed` the one
    beside it.
    """
    again, kind = own.verdict, kind_of(verdict.word)
    if again and again.word in (DISTURBED, UNKNOWN):
        return Confirmation(intervention, UNDECIDED, again)
    if again and again.word != verdict.word:
        return Confirmation(intervention, WITHDRAWN, again)
    if not (again and kind and changed and own.us_per_op and changed.us_per_op):
        return Confirmation(intervention, UNDECIDED)
    test = INTERVENTIONS[intervention]
    numbers = test.measure(kind.part, own, changed)
    return Confirmation(
        intervention, test.decide(verdict.word, numbers) if numbers else UNDECIDED, numbers=numbers
    )


def confirmed(verdict: Verdict, confirmation: Confirmation) -> Verdict:
    """The verdict with the outcome of its test."""
    settled = confirmation.outcome if confirmation.outcome != UNDECIDED else verdict.certainty
    return replace(verdict, certainty=settled, confirmation=confirmation)


def confirmation_evidence(verdict: Verdict) -> str:
    """The sentence that tells what a test of the verdict measured; "" for one that was not tested."""
    found = verdict.confirmation
    if found is None:
        return ""
    test = INTERVENTIONS[found.intervention]
    if found.numbers:
        return f"{test.title}: {test.sentence(found.numbers)}"
    if found.again is None:
        return f"{test.title}: not measured"
    return f"measured again it was {found.again.word}: {evidence(found.again)}"


def _capacity(facts: Facts) -> Capacity:
    """Withheld where the clients' CPUs, or those of the load host, were used up."""
    used = facts.utilisation.get("clients", facts.utilisation.get("host"))
    if facts.clients > 1 and used is not None and used >= SATURATED:
        return Capacity(True, "clients", used)
    if facts.not_working is None:
        return Capacity()
    busy = 1 - facts.not_working
    return Capacity(True, "host", busy) if busy >= HOST_BUSY else Capacity(False)
