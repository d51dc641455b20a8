"""Putting a verdict to the test: the run that measures the variant again beside a changed one, and what it says."""

from typing import Any

from pgperf.analysis import interventions
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Definition, most_direct
from pgperf.db import validators
from pgperf.models import Database, Run, VariantResult
from pgperf.runs import state
from pgperf.runs.confirmation_definition import paired, told_apart


def open_verdicts(run: Run) -> list[VariantResult]:
    """The run's variants whose verdict can be put to the test and has not been."""
    rows = run.variants.filter(control=0)
    return [
        row for row in rows if row.verdict.get("intervention") and row.verdict.get("certainty") == "likely"
    ]


def find(run: Run, label: str) -> VariantResult:
    """The variant of that label, whose verdict can be put to the test. Raises InvalidDefinition with the reason."""
    row = run.variants.filter(label=label, control=0).first()
    if row is None:
        there = ", ".join(run.variants.filter(control=0).values_list("label", flat=True)) or "none"
        raise InvalidDefinition(f"variant: {run} has no {label!r}; it has {there}")
    if not row.verdict.get("intervention"):
        word = row.verdict.get("word") or "none"
        raise InvalidDefinition(f"variant: nothing would put the verdict on {label} ({word}) to the test")
    return row


def intervention(row: VariantResult) -> str:
    """What puts the variant's verdict to the test: no relay leads to a Unix socket, so there load is added instead."""
    named = str(row.verdict["intervention"])
    if named == interventions.ADD_DISTANCE and _is_socket(row):
        return interventions.DOUBLE_CLIENTS
    return named


def definition(row: VariantResult) -> Definition:
    """The variant and, beside it, what the intervention makes of it. Raises InvalidDefinition naming the field."""
    run, database = row.run, row.run.database
    if database is None:
        raise InvalidDefinition(
            f"database: {run.database_name} was deleted, so nothing can be measured there again"
        )
    asked = Definition.from_json(run.definition)
    plain = _plain(row) | {"verdict": {**row.verdict, "intervention": intervention(row)}}
    return paired(asked, plain, lambda: _direct(row, database), validators.client_limit().high)


def request(row: VariantResult, **asked: Any) -> Run:
    """Queue the run that puts the variant's verdict to the test. `asked`: as `runs.request` takes it.

    Raises InvalidDefinition naming what is in the way.
    """
    return state.request_confirmation(row.run, row.label, intervention(row), definition(row), **asked)


def tested(run: Run) -> tuple[VariantResult, dict[str, Any]] | None:
    """The variant whose verdict the run put to the test, and that verdict with what came of it.

    None for other runs, and where what was tested is gone.
    """
    if run.confirms is None:
        return None
    row = run.confirms.variants.filter(label=run.confirms_variant).first()
    if row is None:
        return None
    own, changed = told_apart([_plain(each) for each in run.variants.all()], _plain(row))
    found = interventions.outcome(row.verdict["word"], run.intervention, own, changed)
    verdict = dict(row.verdict)
    if found.word != interventions.UNDECIDED:
        verdict["certainty"] = found.word
    verdict["confirmation"] = {
        "run": run.pk,
        "intervention": run.intervention,
        "outcome": found.word,
        "evidence": found.evidence,
    }
    return row, verdict


def _plain(row: VariantResult) -> dict[str, Any]:
    return {
        field.name: getattr(row, field.name) for field in row._meta.concrete_fields if not field.is_relation
    }


def _is_socket(row: VariantResult) -> bool:
    route, database = apart(row.route)[0], row.run.database
    return bool(database and database.targets.filter(route=route, host__startswith="/").exists())


def _direct(row: VariantResult, database: Database) -> str:
    """A route without a pooler: one of the run's own if it has any, and rather over the network, as the pooler's is."""
    asked = row.run.definition.get("routes", [])
    there = sorted(
        database.targets.filter(enabled=True).order_by("id"),
        key=lambda target: (target.route not in asked, target.host.startswith("/")),
    )
    best = most_direct(there) if there else None
    if best is None or best.pooler:
        raise InvalidDefinition(
            f"routes: {database} has no enabled target without a pooler to compare {row.route} with; add one"
        )
    return best.route
