"""What a run would do and take, before anyone asks for it."""

from dataclasses import dataclass, replace

from django.utils.translation import gettext_lazy as _

from pgperf.access import guardrails
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import PgperfError
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, LeftOut
from pgperf.models import Benchmark, Database, Worker
from pgperf.reports import number_format
from pgperf.reports.headroom import Need, headroom
from pgperf.reports.labels import layer_title
from pgperf.reports.run_json import live_workers
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import ResourceEstimate, estimate
from pgperf.runs import definitions


@dataclass(frozen=True)
class Row:
    """One layer; `reason` says why no live worker can run it."""

    title: str
    reason: str = ""


@dataclass(frozen=True)
class Preview:
    """The confirm page's numbers.

    `refusal` is why it cannot start at all; then there is no estimate.
    """

    database: Database
    routes: list[str]
    missing: list[str]
    rows: list[Row]
    refusal: str = ""
    variants: int = 0
    estimate: ResourceEstimate | None = None
    quick_time: str = ""
    full_time: str = ""
    needs: tuple[Need, ...] = ()
    access: tuple[str, ...] = ()  # what the login must not be able to do, or may be able to


def preview(benchmark: Benchmark, database: Database, *, quick: bool) -> Preview:
    """What a run of the benchmark on the database would do with the workers that are alive now."""
    skipped = skipped_layers(benchmark, live_workers())
    left_out = [LeftOut(layer=layer, reason=reason) for layer, reason in skipped.items()]
    left_out += _lacking_modes(benchmark)
    rows = [Row(layer_title(layer), skipped.get(layer, "")) for layer in benchmark.layers]
    shown = Preview(
        database=database,
        routes=list(benchmark.routes),
        missing=definitions.missing_routes(benchmark, database),
        rows=rows,
    )
    try:
        plans = {
            length: make_plan(_definition(benchmark, database, length), left_out) for length in (True, False)
        }
    except PgperfError as error:
        return replace(shown, refusal=str(error))
    needs = {length: estimate(plan) for length, plan in plans.items()}
    return replace(
        shown,
        variants=len(plans[quick].variants),
        estimate=needs[quick],
        quick_time=number_format.seconds(needs[True].seconds),
        full_time=number_format.seconds(needs[False].seconds),
        needs=tuple(headroom(needs[quick], database)),
        access=_access(database, plans[quick].definition),
    )


def skipped_layers(benchmark: Benchmark, workers: list[Worker]) -> dict[str, str]:
    """Layers that none of the workers can run, with the first one's reason.

    Nothing without workers.
    """
    skipped = {}
    for layer in benchmark.layers:
        reasons = [worker.layers.get(layer, "") for worker in workers]
        if reasons and all(reasons):
            skipped[layer] = reasons[0]
    return skipped


def _lacking_modes(benchmark: Benchmark) -> list[LeftOut]:
    """Modes that a layer of the benchmark has nowhere."""
    known = [LAYERS[layer] for layer in benchmark.layers if layer in LAYERS]
    return [
        LeftOut(layer=layer.name, mode=mode, reason=layer.mode_reason)
        for layer in known
        for mode in benchmark.modes
        if mode not in layer.modes
    ]


def _access(database: Database, definition: Definition) -> tuple[str, ...]:
    """What is said of the logins before anybody has asked their server: only the worker does that."""
    names = {apart(route)[0] for route in definition.routes}
    logins: dict[guardrails.Demand, dict[str, None]] = {}
    for target in database.targets.filter(enabled=True, route__in=names):
        demands = guardrails.definition_demands(definition, [target.pooler], database.production)
        for demand in demands:
            logins.setdefault(demand, {})[target.credential or database.credential] = None
    return tuple(_ACCESS[demand] % ", ".join(logins[demand]) for demand in _ACCESS if demand in logins)


#: Demand -> sentence; the credentials are references, never secrets.
_ACCESS = {
    guardrails.Demand.SESSION: _(
        "This role may be able to write (%s). Its sessions are read-only, with timeouts."
    ),
    guardrails.Demand.PROOF: _(
        "This run needs a login that cannot write (%s). The worker checks this first and otherwise refuses the run."
    ),
}


def _definition(benchmark: Benchmark, database: Database, quick: bool) -> Definition:
    return definitions.freeze(benchmark, database, definitions.Overrides(quick=quick))
