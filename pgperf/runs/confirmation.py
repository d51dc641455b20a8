"""Confirming a verdict: the run that measures the variant again beside a changed one, and what it
finds.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from django.db import router
from django.db.models import QuerySet

from pgperf.analysis import interventions, verdict_kinds
from pgperf.analysis.verdict import UNDECIDED, Confirmation, Verdict
from pgperf.conf import get_settings
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import ENDING, Definition, Ending, most_direct
from pgperf.models import Database, Run, VariantResult
from pgperf.runs import state
from pgperf.runs.confirmation_definition import in_time, paired, told_apart
from pgperf.runs.definitions import refuse_delayed_sockets, starting_here

#: Characters of an unknown label that an error shows.
_SHOWN = 200


def open_verdicts(run: Run) -> list[VariantResult]:
    """The run's variants with a verdict that can be tested and has not been."""
    return [
        row for row in run.variants.filter(control=0) if (verdict := row.record.verdict) and verdict.is_open
    ]


def find(run: Run, label: str) -> VariantResult:
    """The variant of that label, if its verdict can be tested.

    Raises InvalidDefinition with the reason.
    """
    there = list(run.variants.filter(control=0).values_list("label", flat=True))
    if label not in there:  # never asked of the database, which refuses some texts
        raise InvalidDefinition(
            f"variant: {run} has no {label[:_SHOWN]!r}; it has {', '.join(there) or 'none'}"
        )
    row = run.variants.filter(label=label, control=0)[0]
    verdict = row.record.verdict
    if verdict is None or not verdict.intervention:
        word = verdict.word if verdict else "none"
        raise InvalidDefinition(f"variant: no change would test the verdict on {label} ({word})")
    return row


def intervention(row: VariantResult) -> str:
    """The intervention that tests the variant's verdict.

    The delay relay cannot lead to a Unix socket, so load is added there instead of distance. Where the
    run has a step with more web processes, that step is measured instead of adding load.
    """
    verdict = row.record.verdict
    named = verdict.intervention if verdict else ""
    if named == interventions.ADD_DISTANCE and _is_socket(row):
        return interventions.DOUBLE_CLIENTS
    if verdict and verdict.word == "web_workers" and named and _route_of_more_processes(row):
        return interventions.WEB_PROCESSES
    return named


def definition(row: VariantResult) -> Definition:
    """The variant and, beside it, what the intervention makes of it.

    Raises InvalidDefinition naming the field.
    """
    run, database = row.run, row.run.database
    if database is None:
        raise InvalidDefinition(
            f"database: {run.database_name} was deleted, so nothing can be measured there again"
        )
    asked = starting_here(Definition.from_json(run.definition))
    settings, test = get_settings(), intervention(row)
    other_route = partial(_other_route, row, database, test)
    found = paired(asked, row.record, test, other_route, settings.MAX_CLIENTS)
    refuse_delayed_sockets(database, found.routes)
    return in_time(found, row.record, test, settings.MAX_RUN_SECONDS)


def request(row: VariantResult, **asked: Any) -> Run:
    """Queue the run that tests the variant's verdict. `asked`: as `runs.request` takes it.

    Raises InvalidDefinition naming what is in the way.
    """
    return state.request_confirmation(row.run, row.label, intervention(row), definition(row), **asked)


def tested(run: Run) -> tuple[VariantResult, Verdict] | None:
    """The variant whose verdict the run tested, and that verdict with what came of it.

    None for other runs, and where the tested variant is gone.
    """
    if run.confirms_id is None:
        return None
    row = _variants(run.confirms_id).filter(label=run.confirms_variant).first()
    verdict = row.record.verdict if row else None
    if row is None or verdict is None:
        return None
    found = _too_few_blocks(run) or _found(run, row, verdict)
    return row, verdict_kinds.confirmed(verdict, replace(found, run=run.pk))


def _too_few_blocks(run: Run) -> Confirmation | None:
    """The outcome of a test whose time was up before its last block; None of one with all blocks. It
    decides nothing: it has no diagnostic slices, and without those a verdict may be another one.
    """
    ending, asked = Ending.from_json(run.environment.get(ENDING)), Definition.from_json(run.definition)
    if ending is None or not asked.ends_after_blocks or ending.blocks >= asked.blocks:
        return None
    return Confirmation(run.intervention, UNDECIDED, blocks=ending.blocks)


def _found(run: Run, row: VariantResult, verdict: Verdict) -> Confirmation:
    own, changed = told_apart([each.record for each in _variants(run.pk)], row.record)
    return verdict_kinds.confirm(verdict, run.intervention, own, changed)


def _variants(run: int) -> QuerySet[VariantResult]:
    """Those of a run. A replica may lack what the transaction has just written."""
    return VariantResult.objects.using(router.db_for_write(Run)).filter(run=run)


def _is_socket(row: VariantResult) -> bool:
    route, database = apart(row.route)[0], row.run.database
    return bool(database and database.targets.filter(route=route, host__startswith="/").exists())


def _other_route(row: VariantResult, database: Database, test: str) -> str:
    """That of the changed variant, without its delay."""
    if test == interventions.WEB_PROCESSES:
        return apart(_route_of_more_processes(row))[0]
    return _direct(row, database)


def _route_of_more_processes(row: VariantResult) -> str:
    """The route of the run's step that builds on the variant's and had the most web processes; ""
    where none had clearly more than the variant.
    """
    run, database = row.run, row.run.database
    steps = Definition.from_json(run.definition).web_routes
    above = [route for route, below in steps.items() if below == row.route]
    enabled = (
        set(database.targets.filter(enabled=True).values_list("route", flat=True)) if database else set()
    )
    rows = run.variants.filter(control=0, layer=row.layer, workload=row.workload, route__in=above)
    there = [each for each in rows if apart(each.route)[0] in enabled]
    best, own = max(there, key=_web_processes, default=None), _web_processes(row)
    has_more = best and own and _web_processes(best) >= interventions.MORE_PROCESSES * own
    return best.route if best and has_more else ""


def _web_processes(row: VariantResult) -> int:
    """Of the web server that served the variant; 0 where that is not known."""
    return int((row.cpu_account or {}).get("web_workers") or 0)


def _direct(row: VariantResult, database: Database) -> str:
    """A route without a pooler: of the run's own if there is one, and over the network, as the
    pooler's is.
    """
    asked = row.run.definition.get("routes", [])
    there = sorted(
        database.targets.filter(enabled=True, url="").order_by("id"),
        key=lambda target: (target.route not in asked, target.host.startswith("/")),
    )
    best = most_direct(there) if there else None
    if best is None or best.pooler:
        raise InvalidDefinition(
            f"routes: {database} has no enabled target without a pooler to compare {row.route} with; add one"
        )
    return best.route
