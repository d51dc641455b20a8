"""What a run that puts a verdict to the test would do and take, before anyone asks for it."""

from dataclasses import dataclass

from pgperf import confirming
from pgperf.analysis.interventions import TITLES
from pgperf.exceptions import PgperfError
from pgperf.layers import LAYERS
from pgperf.models import VariantResult
from pgperf.records import Plan
from pgperf.reports import figures
from pgperf.reports.headroom import Need, headroom
from pgperf.reports.names import label_text
from pgperf.reports.run import live_workers
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import estimate


@dataclass(frozen=True)
class Preview:
    """The confirm page's words and numbers. `refusal` is why it cannot start; then there are no numbers."""

    label: str
    evidence: str
    test: str
    refusal: str = ""
    variants: tuple[str, ...] = ()
    time: str = ""
    needs: tuple[Need, ...] = ()


def preview(row: VariantResult) -> Preview:
    """For a variant whose verdict can be put to the test, with the workers that are alive now."""
    said = label_text(row.label), row.verdict["evidence"], TITLES[confirming.intervention(row)]
    try:
        plan = make_plan(confirming.definition(row))
    except PgperfError as error:
        return Preview(*said, refusal=str(error))
    if lacking := _lacking(plan):
        return Preview(*said, refusal=lacking)
    assert row.run.database
    return Preview(
        *said,
        variants=tuple(label_text(variant.label) for variant in plan.variants if not variant.copy),
        time=figures.seconds(estimate(plan).seconds),
        needs=tuple(headroom(estimate(plan), row.run.database)),
    )


def _lacking(plan: Plan) -> str:
    """A test needs both of its layers; why no live worker has one, "" if one has."""
    workers = live_workers()
    for layer in plan.definition.layers:
        reasons = [worker.layers.get(layer, "") for worker in workers]
        if reasons and all(reasons):
            return f"{LAYERS[layer].title}: {reasons[0]}"
    return ""
