"""What a run would do and take, before anyone asks for it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from django.utils.translation import gettext_lazy as _

from pgperf.access import guardrails
from pgperf.conf import get_settings
from pgperf.core.client_environment import DEFAULT
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import PgperfError
from pgperf.core.layers import LAYERS, connecting, distributions, has_environments
from pgperf.core.records import ENVIRONMENTS, Definition, LeftOut, Plan
from pgperf.models import Benchmark, Database, Worker, Workload
from pgperf.reports import number_format
from pgperf.reports.headroom import Need, headroom
from pgperf.reports.labels import layer_title
from pgperf.reports.outlook import Outlook, outlook
from pgperf.reports.run_json import live_workers
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import ResourceEstimate, estimate, time_refusal
from pgperf.runner.run_time import promised_s
from pgperf.runs import definitions


@dataclass(frozen=True)
class Row:
    """One layer; `routes` are those over which the run would measure it, none where it is refused.
    `reason` says why the run would leave it out.
    """

    title: str
    reason: str = ""
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EnvironmentRow:
    """One environment, as the live workers found it: `versions` of its packages ("" if not known), or
    the `reason` why none of them can use it.
    """

    name: str
    versions: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Lacking:
    """What the plan leaves out of one layer for one reason: modes, connection modes, workloads."""

    layer: str
    parts: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Preview:
    """The confirm page's numbers.

    `refusal` is why it cannot start: without a plan there is no estimate; with one, its six blocks
    cannot fit into the time.
    """

    database: Database
    routes: list[str]
    missing: list[str]
    rows: list[Row]
    refusal: str = ""
    variants: int = 0
    lacking: tuple[Lacking, ...] = ()
    estimate: ResourceEstimate | None = None
    time_s: float | None = None  # what the page promises of the asked length
    quick_time: str = ""
    full_time: str = ""
    needs: tuple[Need, ...] = ()
    environments: tuple[EnvironmentRow, ...] = ()  # none where there is only the default one
    outlook: Outlook | None = None
    access: tuple[str, ...] = ()  # what the login must not be able to do, or may be able to


def preview(
    benchmark: Benchmark,
    database: Database,
    *,
    quick: bool,
    budget_s: int | None = None,
    environments: Sequence[str] | None = None,
    workloads: Sequence[Workload] | None = None,
) -> Preview:
    """What a run of the benchmark on the database would do with the workers that are alive now.

    `budget_s`, `environments`: in place of the benchmark's. `workloads`: those of a benchmark that is
    not saved.
    """
    workers = live_workers()
    skipped = missing_layers(benchmark.layers, workers)
    found = tuple(_environments(benchmark.environments if environments is None else environments, workers))
    only = DEFAULT if found else ""  # what workers know of themselves is of their own environment
    left_out = [LeftOut(layer=layer, environment=only, reason=reason) for layer, reason in skipped.items()]
    left_out += [*_lacking_modes(benchmark), *_lacking_connections(benchmark, workers, only)]
    left_out += _lacking_environments(benchmark, found)
    rows = [Row(layer_title(layer), skipped.get(layer, "")) for layer in benchmark.layers]
    shown = Preview(
        database=database,
        routes=list(benchmark.routes),
        missing=definitions.missing_routes(benchmark, database),
        rows=rows,
        environments=found,
    )
    asked = definitions.Overrides(budget_s=budget_s, environments=environments)
    try:
        plans = {
            length: make_plan(definitions.freeze(benchmark, database, overrides, workloads), left_out)
            for length, overrides in _lengths(asked).items()
        }
    except PgperfError as error:
        return replace(shown, refusal=str(error))
    needs = {length: estimate(plan) for length, plan in plans.items()}
    return replace(
        shown,
        rows=list(_rows(benchmark.layers, plans[quick])),
        refusal=time_refusal(plans[quick], get_settings().MAX_RUN_SECONDS),
        variants=len(plans[quick].variants),
        lacking=tuple(_lacking(plans[quick])),
        estimate=needs[quick],
        time_s=time_s(plans[quick]),
        quick_time=time_text(plans[True]),
        full_time=time_text(plans[False]),
        needs=tuple(headroom(needs[quick], time_text(plans[quick]), database)),
        outlook=outlook({str(_("Quick")): plans[True], str(_("Full")): plans[False]}),
        access=_access(database, plans[quick].definition),
    )


def time_text(plan: Plan) -> str:
    """The predicted time of a run of a fixed length; else the most that it takes."""
    words = _("about %s") if plan.definition.is_fixed else _("at most %s")
    return words % number_format.seconds(time_s(plan))


def time_s(plan: Plan) -> float:
    """The same in seconds: within MAX_RUN_SECONDS, where nobody asked for more."""
    is_asked = plan.definition.is_fixed or plan.definition.budget_s
    most_s = math.inf if is_asked else get_settings().MAX_RUN_SECONDS
    return min(promised_s(plan), most_s)


def missing_layers(layers: Iterable[str], workers: list[Worker]) -> dict[str, str]:
    """Layers that none of the workers can run, with the first one's reason.

    Nothing without workers.
    """
    skipped = {}
    for layer in layers:
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


def _lacking_connections(benchmark: Benchmark, workers: list[Worker], environment: str) -> Iterator[LeftOut]:
    """Connection modes that none of the workers that can run the layer has in that environment, such
    as a pool without its package.
    """
    for layer, mode in product(benchmark.layers, benchmark.connection_modes):
        able = [worker for worker in workers if not worker.layers.get(layer)]
        reasons = [worker.layers.get(connecting(layer, mode), "") for worker in able]
        if reasons and all(reasons):
            yield LeftOut(layer=layer, connect=mode, environment=environment, reason=reasons[0])


def _environments(names: Sequence[str], workers: list[Worker]) -> Iterator[EnvironmentRow]:
    """These environments, if there are others than the default one."""
    for name in names if list(names) != [DEFAULT] else ():
        found = [_described(worker, name) for worker in workers]
        reasons = [each["refusal"] for each in found if "refusal" in each]
        if found and len(reasons) == len(found):
            yield EnvironmentRow(name, reason=reasons[0])
        else:
            yield EnvironmentRow(
                name, next((version_line(each) for each in found if "refusal" not in each), "")
            )


def _described(worker: Worker, name: str) -> dict[str, Any]:
    """What the worker knows of an environment."""
    if name == DEFAULT:
        own = worker.versions
        packages = {"Django": own.get("django"), **{key: own[key] for key in distributions() if key in own}}
        return {"python": own.get("python"), "packages": packages}
    lacking = {"refusal": _("PGPERF['ENVIRONMENTS'] of the worker does not have it")}
    found: dict[str, Any] = worker.versions.get(ENVIRONMENTS, {}).get(name, lacking)
    return found


def version_line(found: Mapping[str, Any]) -> str:
    """The versions of an environment in one line, without what is unknown."""
    packages = found.get("packages") or {}
    named = {"Python": found.get("python"), **{name: packages[name] for name in sorted(packages)}}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def _lacking_environments(benchmark: Benchmark, rows: Iterable[EnvironmentRow]) -> Iterator[LeftOut]:
    """The layers of environments that no worker can use. Other layers the plan leaves out."""
    for row, layer in product(rows, filter(has_environments, benchmark.layers)):
        if row.reason:
            yield LeftOut(layer=layer, environment=row.name, reason=row.reason)


def _rows(layers: Iterable[str], plan: Plan) -> Iterator[Row]:
    """Each layer with its routes, or with the reasons why the plan has none of it."""
    routes: dict[str, dict[str, None]] = {}
    for variant in plan.variants:
        routes.setdefault(variant.layer, {})[variant.route] = None
    for layer in layers:
        own = tuple(routes.get(layer, ()))
        yield Row(layer_title(layer), "" if own else _reason(layer, plan.skipped), own)


def _reason(layer: str, skipped: Iterable[LeftOut]) -> str:
    """Why the layer is left out: that of all of it, or those of its parts."""
    left = [each for each in skipped if each.layer == layer]
    whole = [each for each in left if not _parts(each)]
    return "; ".join(dict.fromkeys(str(each.reason) for each in whole or left))


def _lacking(plan: Plan) -> Iterator[Lacking]:
    """By layer and reason; layers that are left out altogether have theirs in `Row`."""
    layers = {variant.layer for variant in plan.variants}
    found: dict[tuple[str, str], list[str]] = {}
    for each in plan.skipped:
        if each.layer in layers:
            found.setdefault((each.layer, each.reason), []).append(", ".join(_parts(each)))
    for (layer, reason), parts in found.items():
        yield Lacking(layer_title(layer), tuple(parts), reason)


def _parts(each: LeftOut) -> list[str]:
    loop, load = each.loop and f"{each.loop} loop", each.load and f"load {each.load}"
    parts = (each.workload, each.mode, each.connect, loop, load, each.environment)
    return [part.replace("_", " ") for part in parts if part]


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


def _lengths(asked: definitions.Overrides) -> dict[bool, definitions.Overrides]:
    """Quick or not -> the overrides of such a run."""
    return {quick: replace(asked, quick=quick) for quick in (True, False)}
