"""Putting a verdict to the test: the run that measures the variant again beside a changed one, and what it says."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pgperf import runs
from pgperf.analysis import interventions
from pgperf.catalog.light import LIGHT
from pgperf.conf import get_settings
from pgperf.exceptions import InvalidDefinition
from pgperf.far import apart, lengthened
from pgperf.models import Database, Run, Target, VariantResult
from pgperf.records import Definition

#: As short as an interval over blocks and a verdict allow.
BLOCKS, ROUNDS = 6, 3
_DIAGNOSTIC_MS = 250


def open_verdicts(run: Run) -> list[VariantResult]:
    """The run's variants whose verdict can be put to the test and has not been."""
    rows = run.variants.filter(copy=0)
    return [
        row for row in rows if row.verdict.get("intervention") and row.verdict.get("certainty") == "likely"
    ]


def find(run: Run, label: str) -> VariantResult:
    """The variant of that label, whose verdict can be put to the test. Raises InvalidDefinition with the reason."""
    row = run.variants.filter(label=label, copy=0).first()
    if row is None:
        there = ", ".join(run.variants.filter(copy=0).values_list("label", flat=True)) or "none"
        raise InvalidDefinition(f"variant: {run} has no {label!r}; it has {there}")
    if not row.verdict.get("intervention"):
        word = row.verdict.get("word") or "none"
        raise InvalidDefinition(f"variant: nothing would put the verdict on {label} ({word}) to the test")
    return row


def definition(row: VariantResult) -> Definition:
    """The variant and, beside it, what the intervention makes of it. Raises InvalidDefinition naming the field."""
    run = row.run
    if run.database is None:
        raise InvalidDefinition(
            f"database: {run.database_name} was deleted, so nothing can be measured there again"
        )
    asked = Definition.from_json(run.definition)
    own = replace(
        asked,
        workload=asked.work(row.workload),
        compared_with=None,
        layers=(row.layer,),
        routes=(row.route,),
        modes=(row.mode,),
        clients=(row.clients,),
        blocks=BLOCKS,
        rounds=ROUNDS,
        cold_blocks=0,
        diagnostic_ms=asked.diagnostic_ms or _DIAGNOSTIC_MS,
        seed=secrets.randbelow(2**31),
    )
    return replace(own, **_change(row, run.database))


def request(row: VariantResult, **asked: Any) -> Run:
    """Queue the run that puts the variant's verdict to the test. `asked`: as `runs.request` takes it.

    Raises InvalidDefinition naming what is in the way.
    """
    return runs.request_confirmation(row.run, row.label, intervention(row), definition(row), **asked)


def intervention(row: VariantResult) -> str:
    """What is changed. A way that cannot be made longer leaves more clients."""
    chosen = str(row.verdict["intervention"])
    if chosen == interventions.ADD_DISTANCE and not _may_be_far(row):
        return interventions.DOUBLE_CLIENTS
    return chosen


def tested(run: Run) -> tuple[VariantResult, dict[str, Any]] | None:
    """The variant whose verdict the run put to the test, and that verdict with what came of it.

    None for other runs, and where what was tested is gone.
    """
    if run.confirms is None:
        return None
    row = run.confirms.variants.filter(label=run.confirms_variant).first()
    if row is None:
        return None
    own, changed = _measured(run, row)
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


def _measured(run: Run, row: VariantResult) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """The variant as the run measured it again, and the changed one."""
    there = [_plain(each) for each in run.variants.filter(copy=0)]
    same = ("workload", "layer", "mode", "route", "clients", "connect")
    own = [each for each in there if all(each[name] == getattr(row, name) for name in same)]
    changed = [each for each in there if each not in own]
    return (own[0] if own else {}), (changed[0] if changed else None)


def _plain(row: VariantResult) -> dict[str, Any]:
    return {
        field.name: getattr(row, field.name) for field in row._meta.concrete_fields if not field.is_relation
    }


def _change(row: VariantResult, database: Database) -> dict[str, Any]:
    """The fields of a definition that make the changed variant beside the row's own."""
    changed = intervention(row)
    if changed == interventions.LOWER_LAYER:
        return {"layers": ("libpq", row.layer)}
    if changed == interventions.BYPASS_POOLER:
        return {"routes": (_direct(row, database), row.route)}
    if changed == interventions.LIGHT_STATEMENT:
        return {"compared_with": LIGHT}
    if changed == interventions.ONE_CLIENT:
        return {"clients": (1, row.clients)}
    if changed == interventions.ADD_DISTANCE:
        ms = interventions.added_distance_ms(_plain(row))
        return {"routes": (row.route, lengthened(row.route, ms))}
    return {"clients": (row.clients, _twice(row.clients))}


def _direct(row: VariantResult, database: Database) -> str:
    """A route without a pooler: one of the run's own if it has any, and rather over the network, as the pooler's is."""
    direct = database.targets.filter(enabled=True, pooler="").order_by("id")
    asked = row.run.definition.get("routes", [])
    ranked = sorted(direct, key=lambda target: (target.route not in asked, target.host.startswith("/")))
    if not ranked:
        raise InvalidDefinition(
            f"routes: {database} has no enabled target without a pooler to compare {row.route} with; add one"
        )
    return ranked[0].route


def _may_be_far(row: VariantResult) -> bool:
    """Does a delay fit in between? It stands on a port of its own machine, which no certificate is made out to."""
    database = row.run.database
    target = database and database.targets.filter(route=apart(row.route)[0]).first()
    return bool(target and not target.host.startswith("/") and target.sslmode != Target.SSLMode.VERIFY_FULL)


def _twice(clients: int) -> int:
    most = get_settings().MAX_CLIENTS
    if clients * 2 > most:
        raise InvalidDefinition(f"clients: {clients * 2} is more than {most} (PGPERF['MAX_CLIENTS'])")
    return clients * 2
