"""A preview of the run that would test a verdict: what it measures and needs."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from pgperf.analysis import verdict_kinds
from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import PgperfError
from pgperf.core.layers import LAYERS
from pgperf.core.records import Plan
from pgperf.models import Run, VariantResult
from pgperf.reports.headroom import Need, headroom
from pgperf.reports.labels import variant_title
from pgperf.reports.outlook import Outlook, outlook
from pgperf.reports.preview import time_text
from pgperf.reports.run_json import live_workers
from pgperf.reports.verdicts import intervention_title
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import estimate
from pgperf.runs import confirmation


@dataclass(frozen=True)
class ConfirmationPreview:
    """The confirm page's words and numbers.

    `refusal` is why it cannot start; then there are no numbers.
    """

    label: str
    evidence: str
    test: str
    refusal: str = ""
    variants: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    outlook: Outlook | None = None


def preview(row: VariantResult) -> ConfirmationPreview:
    """For a variant with a verdict that can be tested, with the workers that are alive now."""
    verdict = row.record.verdict
    evidence = verdict_kinds.evidence(verdict) if verdict else ""
    said = variant_title(row), evidence, intervention_title(confirmation.intervention(row))
    try:
        plan = make_plan(confirmation.definition(row))
    except PgperfError as error:
        return ConfirmationPreview(*said, refusal=str(error))
    if lacking := _lacking(plan):
        return ConfirmationPreview(*said, refusal=lacking)
    assert row.run.database
    return ConfirmationPreview(
        *said,
        variants=tuple(variant_title(variant) for variant in plan.variants if not variant.control),
        needs=tuple(headroom(estimate(plan), time_text(plan), row.run.database)),
        outlook=outlook({_("The test run"): plan}),
    )


def tested_title(run: Run) -> str:
    """The title of the variant whose verdict the run tests; "" for any other run."""
    if run.confirms_id is None:
        return ""
    row = VariantResult.objects.filter(run=run.confirms_id, label=run.confirms_variant).first()
    return variant_title(row) if row else run.confirms_variant


def _lacking(plan: Plan) -> str:
    """A test needs both of its layers; why no live worker has one, "" if one has. What workers know of
    themselves is of the default environment.
    """
    workers = live_workers()
    elsewhere = {variant.layer for variant in plan.variants if variant.environment != DEFAULT}
    for layer in (each for each in plan.definition.layers if each not in elsewhere):
        reasons = [worker.layers.get(layer, "") for worker in workers]
        if reasons and all(reasons):
            return f"{LAYERS[layer].title}: {reasons[0]}"
    return ""
