"""The bottleneck of each variant, with evidence; and the consistency checks that its figures fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from pgperf.analysis import verdict_kinds
from pgperf.analysis.consistency_checks import Checks, UtilisationLaw, why_unchecked
from pgperf.analysis.grade import GradeWord
from pgperf.analysis.headline import height
from pgperf.analysis.interventions import INTERVENTIONS
from pgperf.analysis.next_step import NO_SAVINGS, Savings
from pgperf.analysis.verdict import Capacity, Confirmation, Lead, Verdict
from pgperf.core.records import Variant
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.labels import clients_title, measured, role_title, variant_title
from pgperf.reports.next_steps import ShownStep, shown_steps
from pgperf.reports.table import Cell, Note, Offer, Table, text_column, words

#: The words that a verdict names.
Words = tuple[str, ...]
_DISTURBED: Words = (verdict_kinds.DISTURBED,)
_GRADES: dict[str, str] = {
    GradeWord.GOOD: gettext_noop("undisturbed"),
    GradeWord.FAIR: gettext_noop("slightly disturbed"),
    GradeWord.POOR: gettext_noop("much disturbed"),
}
_CERTAINTIES = (gettext_noop("likely"), gettext_noop("confirmed"), gettext_noop("withdrawn"))
#: A smaller share of the time reads as none in a percentage with one decimal.
LEAST_SHARE = 0.0005
#: Variants that a sentence names.
_MOST_NAMES = 3


@dataclass(frozen=True)
class ShownVerdict:
    """One variant's verdict as people read it.

    `test` is what would test it; "" if nothing would or a test was made.
    """

    label: str
    title: str
    word: str
    certainty: str
    mark: str
    evidence: str
    short: str  # the evidence without the word that it begins with
    grade: str = ""  # how undisturbed the measurement was
    share: float | None = None  # of the time, which disturbances took at most
    next_step: ShownStep = field(default_factory=ShownStep)  # what to try next
    test: str = ""
    notes: tuple[Note, ...] = ()  # the outcome of its test, its lead, and its disturbances
    disturbed_by: str = ""  # the note on disturbances that did not change it
    named: Words = ()  # the words of the verdict, two alike in either order


def verdicts(variants: Sequence[VariantResult], savings: Savings = NO_SAVINGS) -> list[ShownVerdict]:
    """The verdicts on all variants that have one, without controls, each with its next step."""
    rows = measured(variants)
    steps = zip(rows, shown_steps(rows, savings), strict=True)
    return [replace(found, next_step=step) for row, step in steps if (found := verdict_of(row))]


def verdict_of(row: VariantResult) -> ShownVerdict | None:
    """The verdict on one variant; None where the analysis gave none."""
    verdict = row.record.verdict
    return _shown(row, verdict) if verdict else None


def verdict_table(variants: Sequence[VariantResult], savings: Savings = NO_SAVINGS) -> Table:
    """The bottleneck of each variant, with the evidence and what to try next."""
    columns = text_column(_("Variant")), text_column(_("Bottleneck")), text_column(_("Evidence"))
    found = verdicts(variants, savings)
    rows = [
        (words(each.title), _claim(each), words(each.short, notes=(*each.notes, *step)))
        for each, step in zip(found, _next_steps(found), strict=True)
    ]
    return Table(_("Bottleneck of each variant"), columns, rows, "verdicts")


def _claim(verdict: ShownVerdict) -> Cell:
    text = f"{verdict.word}, {verdict.certainty}" if verdict.mark else verdict.word
    offer = Offer(verdict.label, verdict.title, verdict.test) if verdict.test else None
    return Cell(text, (verdict.word,), verdict.mark, notes=(_graded(verdict),), offer=offer)


def _graded(verdict: ShownVerdict) -> Note:
    """How undisturbed the measurement was."""
    if verdict.share is None:
        return Note(_("pgperf could not find out how disturbed the measurement was"))
    share = _("less than 0.1 %") if verdict.share < LEAST_SHARE else _at_most(verdict.share)
    text = _("measurement %(grade)s: disturbances took %(share)s of the time")
    return Note(text % {"grade": verdict.grade, "share": share})


def _at_most(share: float) -> str:
    return _("at most %s") % number_format.percent(share)


def _next_steps(found: Sequence[ShownVerdict]) -> Iterator[tuple[Note, ...]]:
    """What to try next for each. Advice is said once: another verdict with the same refers to the
    first, unless the advice is as short.
    """
    first: dict[str, str] = {}
    for each in found:
        step, title = each.next_step, first.setdefault(each.next_step.advice, each.title)
        same = _("the same as for %s.") % title
        repeated = title != each.title and len(same) < len(step.advice)
        text = step.after(same if repeated else step.advice)
        yield (Note(_("Next: %s") % text),) if text else ()


def headlines(variants: Sequence[VariantResult]) -> list[ShownVerdict]:
    """One for each route: that of its last layer at the most clients, which is nearest to what a
    site runs.
    """
    return [found for row in last_of_routes(variants) if (found := verdict_of(row))]


def suite_headlines(variants: Sequence[VariantResult]) -> list[str]:
    """The same for a suite, one sentence for each route: each bottleneck with its workloads."""
    return [_suite_headline(row.identity, variants) for row in last_of_routes(variants)]


def last_of_routes(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """The variant of each route that `headlines` is about; it has a verdict."""
    judged = {row.identity: row for row in measured(variants) if row.verdict}
    return [judged[each] for each in nearest_to_a_site(judged)]


def nearest_to_a_site(variants: Iterable[Variant]) -> list[Variant]:
    """Of each route the last layer at the most clients."""
    last: dict[str, Variant] = {}
    for each in variants:
        known = last.get(each.route)
        if known is None or height(each) >= height(known):
            last[each.route] = each
    return list(last.values())


def _suite_headline(last: Variant, variants: Sequence[VariantResult]) -> str:
    """The bottlenecks of a variant in all workloads, the most frequent one first; last, where none is
    known.
    """
    found: dict[Words, list[str]] = {}
    for row in measured(variants):
        if not last.differs_in(row.identity) - {"workload"} and (verdict := row.record.verdict):
            found.setdefault(words_of(verdict), []).append(row.workload)
    count = sum(map(len, found.values()))
    by_number = sorted(found.items(), key=lambda each: (each[0] == _DISTURBED, -len(each[1])))
    return _("%(variant)s: %(verdicts)s.") % {
        "variant": variant_title(replace(last, named=False)),
        "verdicts": "; ".join(_in_workloads(each, names, count) for each, names in by_number),
    }


def _in_workloads(words: Words, names: Sequence[str], count: int) -> str:
    """A bottleneck, or two of which either may be the larger one, with the workloads that have it, of
    `count`.
    """
    named = _(" or ").join(map(word_title, words))
    title = _("not known (other work disturbed it)") if words == _DISTURBED else named
    parts = {"verdict": title, "number": len(names), "count": count, "names": ", ".join(names)}
    if len(names) == count:
        text = ngettext("%(verdict)s in %(count)d workload", "%(verdict)s in all %(count)d workloads", count)
        return text % parts
    return _("%(verdict)s in %(number)d of %(count)d workloads (%(names)s)") % parts


def withheld(variants: Sequence[VariantResult]) -> str:
    """Why the run does not show how much the server could do, once for all variants of which that is
    so; "" where it does.
    """
    judged = [(row, verdict) for row in measured(variants) if (verdict := row.record.verdict)]
    causes: dict[tuple[str, str], list[tuple[VariantResult, Capacity]]] = {}
    for row, verdict in judged:
        if (capacity := verdict.capacity).why:
            causes.setdefault((capacity.busy, capacity.where), []).append((row, capacity))
    told = "; ".join(_cause(own, of_all=len(own) == len(judged)) for own in causes.values())
    return _("This run does not show how much the server could do: %s") % told if told else ""


def _cause(own: Sequence[tuple[VariantResult, Capacity]], *, of_all: bool) -> str:
    """What was used up, the most of all, and with which variants."""
    most = max((capacity for _row, capacity in own), key=lambda each: each.share or 0.0)
    why = most.why if len({capacity.why for _row, capacity in own}) == 1 else _("%s at most") % most.why
    if of_all:
        return why
    names = ", ".join(variant_title(row) for row, _capacity in own[:_MOST_NAMES])
    more = len(own) - _MOST_NAMES
    if more > 0:
        text = ngettext("%(names)s and %(more)d more variant", "%(names)s and %(more)d more variants", more)
        names = text % {"names": names, "more": more}
    return _("%(why)s (%(variants)s)") % {"why": why, "variants": names}


def failed_checks(variants: Sequence[VariantResult]) -> list[str]:
    """The consistency checks that fail, with their numbers: such figures are not to be believed."""
    return [
        f"{variant_title(row)}: {text}"
        for row in measured(variants)
        if (verdict := row.record.verdict)
        for text in _failed(verdict.checks)
    ]


def verdict_json(verdict: Verdict | None) -> dict[str, Any]:
    """A verdict as `run --json` has it: the stored numbers with their sentences.

    All null without a verdict.
    """
    if verdict is None:
        return dict.fromkeys(result_keys.VERDICT)
    return {
        "word": verdict.word,
        "certainty": verdict.certainty,
        "evidence": verdict_kinds.evidence(verdict),
        "grade": asdict(verdict.grade) | {"evidence": verdict_kinds.grade_sentence(verdict.grade)},
        "lead": _lead_json(verdict.lead),
        "finding": asdict(verdict.finding),
        "numbers": asdict(verdict.numbers),
        "checks": _checks_json(verdict),
        "missing": list(verdict.finding.missing),
        "intervention": verdict.intervention,
        "confirmation": _confirmation_json(verdict),
    }


def _lead_json(lead: Lead | None) -> dict[str, Any] | None:
    """Without an interval, whether it is open is not known."""
    if lead is None:
        return None
    return asdict(lead) | {"is_open": lead.is_open if lead.has_interval else None}


def either(verdict: Verdict) -> str:
    """The verdict in a few words: two where either may be the larger bottleneck, the longest first."""
    return _(" or ").join(_(each) for each in verdict_kinds.titles(verdict))


def words_of(verdict: Verdict) -> Words:
    """Its words, by which verdicts are counted: “A or B” is “B or A”."""
    return tuple(sorted(verdict_kinds.named(verdict)))


def word_title(word: str) -> str:
    """The title of a verdict; the word itself where this version does not know it."""
    return _(verdict_kinds.title(word))


def grade_title(word: str) -> str:
    """How undisturbed a measurement was."""
    return _(_GRADES[word]) if word in _GRADES else _("not known")


def certainty_title(certainty: str | None) -> str:
    """How certain it is; a dash for a verdict that claims nothing."""
    return _(certainty) if certainty in _CERTAINTIES else certainty or "–"


def intervention_title(name: str) -> str:
    """What a confirming run changes; its own name where this version does not know it."""
    known = INTERVENTIONS.get(name)
    return _(known.title) if known else name.replace("_", " ")


def _shown(row: VariantResult, verdict: Verdict) -> ShownVerdict:
    said = verdict_kinds.evidence(verdict)
    return ShownVerdict(
        row.label,
        variant_title(row),
        either(verdict),
        certainty_title(verdict.certainty),
        verdict.certainty or "",
        said,
        said.removeprefix(f"{verdict_kinds.title(verdict.word)}: "),
        grade_title(verdict.grade.word),
        verdict.grade.share,
        test=intervention_title(verdict.intervention) if verdict.is_open else "",
        notes=tuple(_notes(verdict)),
        disturbed_by=_disturbed_by(verdict),
        named=words_of(verdict),
    )


def _outcome(verdict: Verdict, confirmation: Confirmation) -> str:
    titles = {"confirmed": _("confirmed"), "withdrawn": _("withdrawn"), "undecided": _("inconclusive")}
    outcome = titles.get(confirmation.outcome, confirmation.outcome)
    return f"{outcome}; {verdict_kinds.confirmation_evidence(verdict)}"


def _notes(verdict: Verdict) -> Iterator[Note]:
    if found := verdict.confirmation:
        yield Note(_outcome(verdict, found), run=found.run)
    if verdict.lead and (lead := _lead(verdict, verdict.lead)):
        yield Note(lead)
    if by := _disturbed_by(verdict):
        yield Note(by)


def _lead(verdict: Verdict, lead: Lead) -> str:
    """Why two parts of the time are named, or one that may not be the longest, or how sure it leads is
    not known; "" where it leads for sure.
    """
    if not lead.has_interval:
        text = _(
            "the next part is %(next)s, %(us)s %(unit)s less; too few blocks were measured to tell how sure"
            " that is"
        )
        return text % {
            "next": _(verdict_kinds.part_title(lead.runner_up)),
            **number_format.in_one_unit(us=lead.us),
        }
    if not lead.is_open:
        return ""
    text = (
        _(
            "an unattributed part may be longer: the difference from the time that could not be divided is"
            " %(us)s %(unit)s, between %(low)s and %(high)s"
        )
        if verdict_kinds.may_be_hidden(verdict)
        else _("the difference of the two is %(us)s %(unit)s, between %(low)s and %(high)s")
    )
    return text % number_format.in_one_unit(us=lead.us, low=lead.low, high=lead.high)


def _disturbed_by(verdict: Verdict) -> str:
    """The disturbances that were too small to change the verdict, from a slight one on."""
    grade = verdict.grade
    if verdict.word == verdict_kinds.DISTURBED or grade.share is None or grade.word == GradeWord.GOOD:
        return ""
    names = {
        "share": number_format.percent(grade.share),
        "evidence": verdict_kinds.grade_sentence(grade),
    }
    if grade.others != grade.share:
        return _("Disturbances took at most %(share)s of the time: %(evidence)s") % names
    return _("Other processes and the hypervisor took at most %(share)s of the time: %(evidence)s") % names


def _failed(checks: Checks) -> Iterator[str]:
    little = checks.little
    if little and little.holds is False:
        yield _("Little's law: %(clients)s, of which throughput and time account for %(found)s") % {
            "clients": clients_title(little.clients),
            "found": number_format.number(little.accounted),
        }
    for role, check in checks.utilisation.items():
        if check.holds is False:
            yield _utilisation(role, check)


def _utilisation(role: str, check: UtilisationLaw) -> str:
    text = _(
        "utilisation law, %(role)s: %(predicted)s CPUs busy by throughput, %(measured)s by the host's CPU account"
    )
    return text % {
        "role": role_title(role),
        "predicted": number_format.number(check.predicted),
        "measured": number_format.number(check.measured),
    }


def _checks_json(verdict: Verdict) -> dict[str, Any]:
    little, capacity = verdict.checks.little, verdict.capacity
    return {
        "little": asdict(little) | {"why": little.why} if little else None,
        "utilisation": {
            role: asdict(check) | {"why": why_unchecked(role)}
            for role, check in verdict.checks.utilisation.items()
        },
        "capacity": asdict(capacity) | {"why": capacity.why},
    }


def _confirmation_json(verdict: Verdict) -> Mapping[str, Any] | None:
    found = verdict.confirmation
    if found is None:
        return None
    return {
        "run": found.run,
        "intervention": found.intervention,
        "outcome": found.outcome,
        "evidence": verdict_kinds.confirmation_evidence(verdict),
        "numbers": asdict(found.numbers) if found.numbers else None,
    }
