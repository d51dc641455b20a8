"""The bottleneck of each variant, with evidence; and the consistency checks that its figures fail."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.analysis.consistency_checks import Checks, UtilisationLaw, why_unchecked
from pgperf.analysis.interventions import INTERVENTIONS
from pgperf.analysis.verdict import Confirmation, Verdict
from pgperf.core.layers import LAYERS
from pgperf.core.records import Variant
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.labels import clients_title, measured, role_names, variant_title
from pgperf.reports.table import Cell, Note, Offer, Table, text_column, words

_LAYERS = list(LAYERS)


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
    test: str = ""
    notes: tuple[Note, ...] = ()  # the outcome of its test, and cautions


def verdicts(variants: Sequence[VariantResult]) -> list[ShownVerdict]:
    """The verdicts on all variants that have one, without controls."""
    return [_shown(row, verdict) for row in measured(variants) if (verdict := row.record.verdict)]


def verdict_table(variants: Sequence[VariantResult]) -> Table:
    """The bottleneck of each variant, with the evidence and what it does not tell."""
    columns = text_column(_("Variant")), text_column(_("bottleneck")), text_column(_("evidence"))
    rows = [
        (words(each.title), _claim(each), words(each.short, notes=each.notes)) for each in verdicts(variants)
    ]
    return Table(_("Bottleneck of each variant"), columns, rows, "verdicts")


def _claim(verdict: ShownVerdict) -> Cell:
    text = f"{verdict.word}, {verdict.certainty}" if verdict.mark else verdict.word
    offer = Offer(verdict.label, verdict.title, verdict.test) if verdict.test else None
    return Cell(text, (verdict.word,), verdict.mark, offer=offer)


def headlines(variants: Sequence[VariantResult]) -> list[ShownVerdict]:
    """One for each route: that of its last layer at the most clients, which is nearest to what a
    site runs.
    """
    return verdicts(_last_of_routes(variants))


def suite_headlines(variants: Sequence[VariantResult]) -> list[str]:
    """The same for a suite, one sentence for each route: each bottleneck with its workloads."""
    return [_suite_headline(row.identity, variants) for row in _last_of_routes(variants)]


def _last_of_routes(variants: Sequence[VariantResult]) -> list[VariantResult]:
    last: dict[str, VariantResult] = {}
    for row in measured(variants):
        known = last.get(row.route)
        if row.verdict and (known is None or _height(row) >= _height(known)):
            last[row.route] = row
    return list(last.values())


def _height(row: VariantResult) -> tuple[int, int]:
    """The number of its connections, then the place of its layer."""
    return row.identity.connections, _LAYERS.index(row.layer) if row.layer in LAYERS else len(_LAYERS)


def _suite_headline(last: Variant, variants: Sequence[VariantResult]) -> str:
    """The bottlenecks of a variant in all workloads, the most frequent one first."""
    by_word: dict[str, list[str]] = {}
    for row in measured(variants):
        if not last.differs_in(row.identity) - {"workload"} and (found := row.record.verdict):
            by_word.setdefault(found.word, []).append(row.workload)
    count = sum(map(len, by_word.values()))
    by_number = sorted(by_word.items(), key=lambda each: -len(each[1]))
    return _("%(variant)s: %(verdicts)s.") % {
        "variant": variant_title(replace(last, named=False)),
        "verdicts": "; ".join(_in_workloads(word, names, count) for word, names in by_number),
    }


def _in_workloads(word: str, names: Sequence[str], count: int) -> str:
    """A bottleneck with the workloads that have it, of `count`."""
    parts = {"verdict": word_title(word), "number": len(names), "count": count, "names": ", ".join(names)}
    if len(names) == count:
        return _("%(verdict)s in all %(count)d workloads") % parts
    return _("%(verdict)s in %(number)d of %(count)d workloads (%(names)s)") % parts


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
        "finding": asdict(verdict.finding),
        "numbers": asdict(verdict.numbers),
        "checks": _checks_json(verdict),
        "missing": list(verdict.finding.missing),
        "intervention": verdict.intervention,
        "confirmation": _confirmation_json(verdict),
    }


def word_title(word: str) -> str:
    """The title of a verdict; the word itself where this version does not know it."""
    return _(verdict_kinds.title(word))


def certainty_title(certainty: str | None) -> str:
    """How certain it is; a dash for a verdict that claims nothing."""
    titles = {"likely": _("likely"), "confirmed": _("confirmed"), "withdrawn": _("withdrawn")}
    return titles.get(str(certainty), certainty or "–")


def intervention_title(name: str) -> str:
    """What a confirming run changes; its own name where this version does not know it."""
    known = INTERVENTIONS.get(name)
    return _(known.title) if known else name.replace("_", " ")


def _shown(row: VariantResult, verdict: Verdict) -> ShownVerdict:
    said = verdict_kinds.evidence(verdict)
    return ShownVerdict(
        row.label,
        variant_title(row),
        word_title(verdict.word),
        certainty_title(verdict.certainty),
        verdict.certainty or "",
        said,
        said.removeprefix(f"{verdict_kinds.title(verdict.word)}: "),
        intervention_title(verdict.intervention) if verdict.is_open else "",
        tuple(_notes(verdict)),
    )


def _outcome(verdict: Verdict, confirmation: Confirmation) -> str:
    titles = {"confirmed": _("confirmed"), "withdrawn": _("withdrawn"), "undecided": _("could not tell")}
    outcome = titles.get(confirmation.outcome, confirmation.outcome)
    return f"{outcome}; {verdict_kinds.confirmation_evidence(verdict)}"


def _notes(verdict: Verdict) -> Iterator[Note]:
    if found := verdict.confirmation:
        yield Note(_outcome(verdict, found), run=found.run)
    if why := verdict.capacity.why:
        yield Note(_("This run does not show how much the server could do: %s") % why, "caution")


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
        "role": role_names().get(role, role),
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
