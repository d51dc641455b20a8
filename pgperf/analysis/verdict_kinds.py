"""The verdicts: one entry each, with its word, title, rule, evidence and test. Pure.

To add a verdict, write its rule and add its entry to `VERDICTS`. A run stores the word and the
numbers; pages, JSON and files make the sentences with the functions here. A verdict is "likely"
until a test confirms it or withdraws it (`pgperf.analysis.interventions`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgperf.analysis import interventions, rules
from pgperf.analysis.consistency_checks import Checks
from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.grade import Disturbance, Grade, Source
from pgperf.analysis.interventions import INTERVENTIONS
from pgperf.analysis.lead import lead
from pgperf.analysis.number_text import in_percent, in_unit
from pgperf.analysis.rules import Facts, Rule
from pgperf.analysis.time_breakdown import HIDDEN, PART_TITLES, TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import (
    LIKELY,
    UNDECIDED,
    WITHDRAWN,
    Basis,
    Confirmation,
    Finding,
    Verdict,
    VerdictNumbers,
)
from pgperf.core.layers import BASE_LAYER, connects, over_http, requests_pages
from pgperf.core.time_units import TimeUnit, unit_of
from pgperf.core.translation import gettext_noop

Test = Callable[[VariantSummary, Finding], str]
Sentence = Callable[[Verdict], str]

DISTURBED, UNKNOWN = "disturbed", "unknown"
#: Smaller shares of the response time are not in the sentence.
_LEAST = 0.01
#: Smaller shares have a decimal.
_LEAST_WHOLE = 0.1
#: Smaller disturbances, as shares of the largest one, are not in the sentence.
_LEAST_BESIDE = 0.05
_CPUS = {
    "pooler": "the pooler's one CPU",
    "clients": "the clients' CPUs",
    "server": "the server's CPUs",
    "database": "the CPUs of PostgreSQL and its pooler",
    "host": "the host's CPUs",
    "shared": "the one CPU that all share",
}


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


def _of_part(title: str, part: str) -> Sentence:
    """ "client CPU: 165 of 211 µs; network and wake-up 25 µs, server 21 µs": the part, then the
    others by size.
    """
    return lambda verdict: _split(verdict.numbers, title, part)


def _of_cpu(title: str, role: str) -> Sentence:
    """As `_of_part`, after whose CPUs are used up if that decided."""

    def sentence(verdict: Verdict) -> str:
        found, split = verdict.finding, _split(verdict.numbers, title, role)
        if found.basis != Basis.SATURATED:
            return split
        whose = _CPUS.get(found.where, f"the CPUs of {found.where}")
        return f"{verdict.numbers.clients} clients, {whose} {in_percent(found.share or 0.0)} busy; {split}"

    return sentence


def _of_interpreter(title: str) -> Sentence:
    def sentence(verdict: Verdict) -> str:
        busy = in_percent(verdict.finding.share or 0.0)
        shared = f"{verdict.numbers.workers} workers in a process, one of which works {busy} of the time"
        return f"{shared}; {_split(verdict.numbers, title, 'interpreter')}"

    return sentence


def _of_web_workers(verdict: Verdict) -> str:
    found, numbers = verdict.finding, verdict.numbers
    workers, busy = numbers.web_workers or 0, in_percent(found.share or 0.0)
    of_web = (
        f"{workers} processes of the web server, each" if workers > 1 else "one process of the web server,"
    )
    return f"{numbers.clients} clients, {of_web} {busy} busy; {_all_parts(numbers)}"


def _of_network(verdict: Verdict) -> str:
    found, numbers = verdict.finding, verdict.numbers
    full = f"the network of {found.where} saturated ({in_percent(found.share or 0.0)} used)"
    clients = "1 client" if numbers.clients == 1 else f"{numbers.clients} clients"
    return f"{clients}, {full}; {_all_parts(numbers)}"


def _of_schedule(verdict: Verdict) -> str:
    """ "500 operations/s, as the schedule has it; of 211 µs: client 165 µs, .." """
    per_s = verdict.finding.per_s or 0.0
    held = f"{per_s:,.{0 if per_s >= 100 else 2}f} operations/s, as many as were due"
    return "; ".join(filter(None, (held, _all_parts(verdict.numbers))))


def _of_pool_queue(title: str) -> Sentence:
    def sentence(verdict: Verdict) -> str:
        split = _split(verdict.numbers, title, "pool_queue")
        exhausted = verdict.finding.basis == Basis.NO_FREE_CONNECTION
        return f"no server connection free; {split}" if exhausted else split

    return sentence


def _of_disturbance(verdict: Verdict) -> str:
    return "; ".join(filter(None, (_disturbances(verdict), _all_parts(verdict.numbers))))


def _disturbances(verdict: Verdict) -> str:
    """Every disturbance that counts; of a verdict stored without a grade, the one that decided."""
    if listed := grade_sentence(verdict.grade):
        return listed
    found = verdict.finding
    return _disturbance(Disturbance(found.basis, found.where, 0.0, found.share or 0.0, found.cpus))


def grade_sentence(grade: Grade) -> str:
    """The disturbances by what they may have added to an operation, the largest first; "" for none.

    Those that are small beside the largest one are not named.
    """
    known = [(each, each.us) for each in grade.disturbances if each.us is not None]
    least, unit = _LEAST_BESIDE * max((us for _, us in known), default=0.0), unit_of(us for _, us in known)
    told = [
        f"{_disturbance(each)} (at most {in_unit(us, unit)} {unit.name})" for each, us in known if us >= least
    ]
    return "; ".join([*told, *(["the rest is smaller"] if len(told) < len(known) else [])])


_THROTTLED = {"client": "clients", "web": "web servers"}


def _disturbance(found: Disturbance) -> str:
    known = found.share or 0.0
    share = in_percent(known, 0 if known >= _LEAST_WHOLE else 1)
    if found.source == Source.STEAL:
        return f"the hypervisor took {share} of the {found.where}'s CPU time (steal)"
    if found.source == Source.THROTTLING:
        whose = _THROTTLED.get(found.where, found.where)
        return f"a CPU quota kept the {whose} from working for {share} of the time (throttling)"
    if found.source == Source.CLOCK:
        return f"reading the {found.where}'s clock took {share} of the time (see its clock source)"
    busy = (
        f", while other processes kept {found.cpus:.1f} of the {found.where}'s CPUs busy"
        if found.cpus
        else ""
    )
    named = f": {', '.join(found.programs)}" if found.programs else ""
    return f"{share} of the time in the run queue{busy}{named}"


def _of_unknown(verdict: Verdict) -> str:
    found = verdict.finding
    before = {
        Basis.FAILED_REQUESTS: "each slice had a failed request, and such slices count for no figure",
        Basis.RUN_QUEUE: _queued(found.share),
        Basis.IN_TURN: "no resource is saturated",
    }.get(found.basis)
    missing = f"not known: {', '.join(found.missing)}" if found.missing else ""
    remedy = f"the run's login may not see the server's sessions: {found.grant}" if found.grant else ""
    return "; ".join(filter(None, (before, missing, remedy, _all_parts(verdict.numbers))))


def _by(name: str) -> Test:
    return lambda variant, finding: name


def _by_lower_layer(variant: VariantSummary, _finding: Finding) -> str:
    return "" if variant.layer == BASE_LAYER else interventions.LOWER_LAYER


def _by_one_client(variant: VariantSummary, _finding: Finding) -> str:
    return interventions.ONE_CLIENT if variant.clients > 1 else ""


def _by_load_or(name: str) -> Test:
    """Double the clients if the CPUs are used up: where many clients wait for them, taking the work
    away saves that wait too, which is no part of the role's time.
    """
    return lambda _variant, finding: (
        interventions.DOUBLE_CLIENTS if finding.basis == Basis.SATURATED else name
    )


def _by_distance_or_load(variant: VariantSummary, _finding: Finding) -> str:
    """No distance can be added to a web route, and to one client none is."""
    long = (TimeBreakdown.of(variant).waits["latency"] or 0.0) >= interventions.LONG_US
    addable = variant.connections > 1 and not over_http(variant.layer)
    return interventions.ADD_DISTANCE if long and addable else interventions.DOUBLE_CLIENTS


def _cpu(role: str, title: str, test: Test) -> VerdictKind:
    return VerdictKind(f"{role}_cpu", title, rules.cpu(role), _of_cpu(title, role), test, role)


def _wait(part: str, title: str, test: Test, rule: Rule | None = None) -> VerdictKind:
    return VerdictKind(part, title, rule or rules.wait(part), _of_part(title, part), test, part)


VERDICTS: tuple[VerdictKind, ...] = (
    _cpu("client", gettext_noop("client CPU"), _by_lower_layer),
    _cpu("proxy", gettext_noop("proxy CPU"), interventions.no_test),
    _cpu("web", gettext_noop("web server CPU"), _by(interventions.IN_PROCESS)),
    _cpu("pooler", gettext_noop("pooler CPU"), _by_load_or(interventions.BYPASS_POOLER)),
    _cpu("server", gettext_noop("server CPU"), _by_load_or(interventions.LIGHT_STATEMENT)),
    VerdictKind(
        "interpreter",
        gettext_noop("the client's GIL or event loop"),
        rules.interpreter,
        _of_interpreter("waiting for the GIL or event loop"),
        _by(interventions.PROCESSES),
        "interpreter",
    ),
    VerdictKind(
        "web_workers",
        gettext_noop("all web workers busy"),
        rules.web_workers,
        _of_web_workers,
        _by(interventions.DOUBLE_CLIENTS),
    ),
    VerdictKind(
        "network",
        gettext_noop("the network is saturated"),
        rules.network,
        _of_network,
        _by(interventions.DOUBLE_CLIENTS),
    ),
    VerdictKind(
        "pool_queue",
        gettext_noop("waiting for a pool connection"),
        rules.pool_queue,
        _of_pool_queue("waiting for a pool connection"),
        _by(interventions.BYPASS_POOLER),
        "pool_queue",
    ),
    _wait("server_lock", gettext_noop("locks in the server"), _by_one_client),
    _wait("server_io", gettext_noop("server I/O"), _by(interventions.LIGHT_STATEMENT)),
    _wait("server_wait", gettext_noop("other waits in the server"), _by(interventions.LIGHT_STATEMENT)),
    _wait("latency", gettext_noop("network and wake-up"), _by_distance_or_load, rules.latency),
    VerdictKind(
        "schedule", gettext_noop("the rate is sustained"), rules.schedule, _of_schedule, claims=False
    ),
    VerdictKind(DISTURBED, gettext_noop("disturbed"), rules.disturbed, _of_disturbance, claims=False),
    VerdictKind(UNKNOWN, gettext_noop("bottleneck not known"), rules.unknown, _of_unknown, claims=False),
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


def judge(
    variant: VariantSummary,
    checks: Checks | None = None,
    by_block: Sequence[TimeBreakdown] = (),
    widening: float = 1.0,
) -> Verdict:
    """The verdict on a variant, from the rule whose basis comes first. `by_block`: its blocks' time
    breakdowns, which tell how sure the longest part leads, with `widening` of a run that may stop
    early.
    """
    facts = Facts.of(variant)
    found = [(kind, finding) for kind in VERDICTS if (finding := kind.rule(facts))]
    kind, finding = min(found, key=lambda each: list(Basis).index(each[1].basis))
    by_size = finding.basis == Basis.LARGEST
    return Verdict(
        word=kind.word,
        certainty=LIKELY if kind.claims else None,
        finding=finding,
        numbers=facts.numbers(),
        checks=checks or Checks(),
        capacity=facts.capacity(),
        grade=facts.grade(),
        lead=lead(kind.part, facts.time, by_block, widening) if by_size else None,
        intervention=_test(kind, variant, finding),
    )


def _test(kind: VerdictKind, variant: VariantSummary, finding: Finding) -> str:
    """The name of the intervention that tests the verdict; "" where the layer allows none."""
    named = kind.test(variant, finding)
    if named == interventions.LIGHT_STATEMENT and requests_pages(variant.layer):
        return ""  # the light statement is no page
    allowed = connects(variant.layer) or (over_http(variant.layer) and named in interventions.OVER_HTTP)
    return named if allowed else ""


def titles(verdict: Verdict) -> tuple[str, ...]:
    """The title of the verdict's word; two where another part may be as long."""
    return tuple(map(title, named(verdict)))


def named(verdict: Verdict) -> tuple[str, ...]:
    """The verdict's word; two where another part may be as long."""
    also = verdict.lead.runner_up if verdict.lead and verdict.lead.is_open else ""
    second = _kind_of_part(also)
    return (verdict.word, second.word) if second else (verdict.word,)


def may_be_hidden(verdict: Verdict) -> bool:
    """May a part be the longest one that the time hides which could not be divided?"""
    return bool(verdict.lead and verdict.lead.is_open and verdict.lead.runner_up in HIDDEN)


def part_title(part: str) -> str:
    """The title of the word that names a part of the time."""
    if part in HIDDEN:
        return gettext_noop("time that could not be divided")
    kind = _kind_of_part(part)
    return kind.title if kind else part.replace("_", " ")


def _kind_of_part(part: str) -> VerdictKind | None:
    return next((kind for kind in VERDICTS if part and kind.part == part), None)


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
        is_refuted = set(named(verdict)).isdisjoint(named(again))
        return Confirmation(intervention, WITHDRAWN if is_refuted else UNDECIDED, again)
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
        return f"{test.title}: {test.sentence(found.numbers, title(found.numbers.changed_word))}"
    if found.blocks is not None:
        blocks = "1 block" if found.blocks == 1 else f"{found.blocks} blocks"
        return f"{test.title}: only {blocks} fitted into the test's time"
    if found.again is None:
        return f"{test.title}: not measured"
    again, said = title(found.again.word), evidence(found.again)
    return f"measured again, the verdict was “{again}”: {said.removeprefix(again + ': ')}"


def _queued(share: float | None) -> str:
    return f"{in_percent(share or 0.0)} of the time in the run queue"


def _split(numbers: VerdictNumbers, title: str, part: str) -> str:
    """The part with its share of the response time, then the others by size."""
    if numbers.response_us is None:
        return title
    parts, least = dict(_known(numbers.parts_us)), _LEAST * numbers.response_us
    unit, titles = unit_of([numbers.response_us]), dict(PART_TITLES)
    own, response = (in_unit(us, unit) for us in (parts.pop(part, 0.0), numbers.response_us))
    said = f"{title}: {own} of {response} {unit.name}"
    queued = numbers.queue_us[part] or 0.0 if part in ROLES else 0.0
    if part in ROLES and queued >= least:
        parts["run_queue"] = parts.get("run_queue", queued) - queued
        said += f" and {in_unit(queued, unit)} {unit.name} in its run queue"
        titles["run_queue"] = f"other {PART_TITLES['run_queue']}"
    return "; ".join(filter(None, (said, _listed(parts, least, unit, titles))))


def _all_parts(numbers: VerdictNumbers) -> str:
    if numbers.response_us is None:
        return ""
    unit = unit_of([numbers.response_us])
    response = f"{in_unit(numbers.response_us, unit)} {unit.name}"
    rest = _listed(dict(_known(numbers.parts_us)), _LEAST * numbers.response_us, unit)
    return f"of {response}: {rest}" if rest else response


def _known(parts: Known) -> Iterator[tuple[str, float]]:
    return ((name, us) for name, us in parts.items() if us)


def _listed(
    parts: Mapping[str, float], least: float, unit: TimeUnit, titles: Mapping[str, str] = PART_TITLES
) -> str:
    """The parts that are large enough, the largest first."""
    shown = sorted(
        ((us, name) for name, us in parts.items() if us and us >= least), key=lambda each: -each[0]
    )
    return ", ".join(f"{titles[name]} {in_unit(us, unit)} {unit.name}" for us, name in shown)
