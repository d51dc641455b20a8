"""What bounds each variant, in words with evidence; and the laws that a measurement must obey, where it does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.verdict import LIKELY, WORDS
from pgperf.models import VariantResult
from pgperf.reports import number_format
from pgperf.reports.labels import clients_title, measured, role_names, variant_title
from pgperf.reports.table import Cell, Table, text_column, words


@dataclass(frozen=True)
class Verdict:
    """One variant's verdict. `test` says what would put it to the test; empty where nothing would or something has."""

    label: str
    title: str
    word: str
    certainty: str
    mark: str
    evidence: str
    short: str  # the evidence without the word that it begins with
    test: str = ""
    cautions: list[str] = field(default_factory=list)
    tested_by: int | None = None  # the run that put it to the test
    found: str = ""  # and what came of it


def verdicts(variants: Sequence[VariantResult]) -> list[Verdict]:
    """Those of all variants that have one; the controls' are their originals'."""
    return [_verdict(row) for row in measured(variants) if row.verdict.get("word")]


def headlines(variants: Sequence[VariantResult]) -> list[Verdict]:
    """One for each route: that of its last layer at the most clients, which is nearest to what a site runs."""
    last: dict[str, VariantResult] = {}
    for row in measured(variants):
        known = last.get(row.route)
        if row.verdict.get("word") and (known is None or row.clients >= known.clients):
            last[row.route] = row
    return [_verdict(row) for row in last.values()]


def verdict_table(variants: Sequence[VariantResult]) -> Table:
    """What bounds each variant, with the evidence and what it does not tell."""
    columns = text_column(_("Variant")), text_column(_("bound by")), text_column(_("evidence"))
    rows = [
        (
            words(each.title),
            Cell(_claim(each), (each.word,), each.mark),
            words(". ".join((each.evidence, *each.cautions))),
        )
        for each in verdicts(variants)
    ]
    return Table(_("What bounds each variant"), columns, rows, "verdicts")


def _claim(verdict: Verdict) -> str:
    return f"{verdict.word}, {verdict.certainty}" if verdict.mark else verdict.word


def broken_laws(variants: Sequence[VariantResult]) -> list[str]:
    """Where a law fails, with the numbers: such figures are not to be believed before it is known why."""
    return [f"{variant_title(row)}: {text}" for row in measured(variants) for text in _broken(row)]


def word_title(word: str) -> str:
    """What bounds a variant, as people read it; the word itself where this version does not know it."""
    titles = {
        "client_cpu": _("client CPU"),
        "pooler_cpu": _("pooler CPU"),
        "server_cpu": _("server CPU"),
        "pool_queue": _("queue for the pool"),
        "server_lock": _("locks in the server"),
        "server_io": _("server I/O"),
        "server_wait": _("other waits in the server"),
        "latency": _("network and waking up"),
        "disturbed": _("disturbed"),
        "unknown": _("unknown"),
    }
    return titles.get(word, word.replace("_", " "))


def certainty_title(certainty: str | None) -> str:
    """How sure it is; a dash for a verdict that claims nothing."""
    titles = {"likely": _("likely"), "confirmed": _("confirmed"), "withdrawn": _("withdrawn")}
    return titles.get(str(certainty), certainty or "–")


def intervention_title(name: str) -> str:
    """What a confirming run changes."""
    titles = {
        "lower_layer": _("the same statements through libpq"),
        "bypass_pooler": _("the same without the pooler"),
        "light_statement": _("a statement that asks for next to nothing"),
        "one_client": _("one client alone"),
        "double_clients": _("twice as many clients"),
        "add_distance": _("a longer way to the server"),
    }
    return titles.get(name, name.replace("_", " "))


def _verdict(row: VariantResult) -> Verdict:
    said = row.verdict
    may = said.get("certainty") == LIKELY and said.get("intervention")
    return Verdict(
        row.label,
        variant_title(row),
        word_title(said["word"]),
        certainty_title(said.get("certainty")),
        str(said.get("certainty") or ""),
        said.get("evidence") or "",
        (said.get("evidence") or "").removeprefix(f"{WORDS.get(said['word'])}: "),
        intervention_title(said["intervention"]) if may else "",
        list(_cautions(row)),
        **_tested(said.get("confirmation") or {}),
    )


def _tested(confirmation: Mapping[str, Any]) -> dict[str, Any]:
    if not confirmation:
        return {}
    outcomes = {"confirmed": _("confirmed"), "withdrawn": _("withdrawn"), "undecided": _("could not tell")}
    outcome = confirmation.get("outcome")
    text = f"{outcomes.get(str(outcome), outcome)}. {confirmation.get('evidence') or ''}"
    return {"tested_by": confirmation.get("run"), "found": text.strip()}


def _cautions(row: VariantResult) -> Iterator[str]:
    capacity = (row.verdict.get("checks") or {}).get("capacity") or {}
    if capacity.get("withheld"):
        yield _("Says nothing of what the server could do: %s") % (capacity.get("why") or "–")


def _broken(row: VariantResult) -> Iterator[str]:
    checks = row.verdict.get("checks") or {}
    little = checks.get("little") or {}
    if little.get("holds") is False:
        yield _("Little's law: %(clients)s, of whom throughput and time account for %(found)s") % {
            "clients": clients_title(row.clients),
            "found": number_format.number(little.get("accounted")),
        }
    for role, check in (checks.get("utilisation") or {}).items():
        if check.get("holds") is False:
            yield _utilisation(role, check)


def _utilisation(role: str, check: Mapping[str, Any]) -> str:
    text = _(
        "utilisation law, %(role)s: %(law)s processors busy by throughput, %(found)s by the host's books"
    )
    return text % {
        "role": role_names().get(role, role),
        "law": number_format.number(check.get("law")),
        "found": number_format.number(check.get("measured")),
    }
