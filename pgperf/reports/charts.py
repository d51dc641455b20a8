"""Rows to chart data, one function per chart. What a page draws is JSON-able and holds no HTML and no colours.

A chart has `kind` (how static/pgperf/charts.js draws it), `label` (what a screen reader says), `axis`, `rows` (one
list of text lines per bar) and what its kind needs. `colour` names a CSS variable of static/pgperf/pgperf.css.
"""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from pgperf.layers import LAYERS
from pgperf.models import VariantResult
from pgperf.reports import figures

Chart = dict[str, Any]
Ladder = dict[str, Any]

PERCENTILES = ("p50", "p90", "p95", "p99")
CPU_ROLES = ("client_user", "client_sys", "pooler", "server", "unattributed")


def time_split(ladders: Sequence[Ladder]) -> Chart:
    """Where a query's time goes: one bar per ladder, one segment per layer, µs per operation."""
    parts = dict.fromkeys(_part(step["layer"]) for ladder in ladders for step in ladder["steps"])
    return {
        "kind": "stack",
        "label": _(
            "Time per operation, split by layer, for each route. The tables of the ladder have the numbers."
        ),
        "axis": _("µs per operation"),
        "rows": [_lines(ladder_title(ladder, ladders)) for ladder in ladders],
        "series": [_split_series(part, ladders) for part in sorted(parts, key=_height)],
        "whiskers": [_whisker(ladder["steps"][-1]) for ladder in ladders],
        "ends": [_("%s µs") % figures.number(ladder["steps"][-1]["us"]) for ladder in ladders],
        "max": _shared_maximum(ladders),
    }


def ladder_chart(ladder: Ladder, ladders: Sequence[Ladder]) -> Chart:
    """One ladder as a staircase: each rung stands on the one below, side rungs on the first.

    `stands_on` is the index of the rung below (-1: the ground). All ladders of a run share one scale.
    """
    rungs = [*ladder["steps"], *side_rungs(ladder)]
    climbed = len(ladder["steps"])
    return {
        "kind": "ladder",
        "label": _("Ladder of %s: time per operation of each layer. The table below has the numbers.")
        % ladder_title(ladder, ladders),
        "axis": _("µs per operation"),
        "rows": [rung_lines(rung, beside=index >= climbed) for index, rung in enumerate(rungs)],
        "stands_on": [index - 1 if index < climbed else 0 for index in range(len(rungs))],
        "values": [rung["us"] for rung in rungs],
        "colours": [colour(rung["layer"]) for rung in rungs],
        "whiskers": [_whisker(rung) for rung in rungs],
        "ends": [_rung_end(rung, index) for index, rung in enumerate(rungs)],
        "max": _shared_maximum(ladders),
    }


def side_rungs(ladder: Ladder) -> list[dict[str, Any]]:
    """Layers beside the ladder: another driver than Django's, each one step above the first rung."""
    return list(ladder.get("side", []))


def rung_lines(rung: dict[str, Any], *, beside: bool) -> list[str]:
    """A rung's name over one or two lines."""
    return [layer_title(rung["layer"]), _("beside")] if beside else [layer_title(rung["layer"])]


def throughput(variants: Sequence[VariantResult]) -> Chart:
    """Operations per second of each variant, controls left out."""
    shown = measured(variants)
    return {
        "kind": "bars",
        "label": _("Throughput of each variant in operations per second. The table below has the numbers."),
        "axis": _("operations per second"),
        "rows": [variant_lines(variant) for variant in shown],
        "values": [variant.ops_per_s for variant in shown],
        "colours": [colour(variant.layer) for variant in shown],
        "ends": [figures.number(variant.ops_per_s) for variant in shown],
    }


def cpu(variants: Sequence[VariantResult]) -> Chart:
    """Processor time of one operation by who spent it, in the order of `throughput`'s bars. Unknown stays empty."""
    shown = measured(variants)
    names = cpu_names()
    return {
        "kind": "stack",
        "label": _("Processor time per operation of each variant by role. The table below has the numbers."),
        "axis": _("CPU µs per operation"),
        "rows": [variant_lines(variant) for variant in shown],
        "series": [
            {
                "name": names[role],
                "colour": f"cpu-{role}",
                "values": [v.cpu_us_per_op.get(role) for v in shown],
            }
            for role in CPU_ROLES
            if any(v.cpu_us_per_op.get(role) for v in shown)
        ],
        "whiskers": [],
        "ends": [figures.number(_known_sum(variant.cpu_us_per_op)) for variant in shown],
    }


def latency(variants: Sequence[VariantResult]) -> Chart:
    """Percentiles of the duration of one operation: dots on a line, logarithmic, µs."""
    shown = [variant for variant in measured(variants) if variant.latency_us.get("p50") is not None]
    return {
        "kind": "dots",
        "label": _(
            "Latency percentiles of each variant, logarithmic scale. The table below has the numbers."
        ),
        "axis": _("µs, logarithmic"),
        "rows": [variant_lines(variant) for variant in shown],
        "series": [
            {"name": name, "colour": name, "values": [variant.latency_us.get(name) for variant in shown]}
            for name in PERCENTILES
        ],
    }


def measured(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """The variants without the controls' duplicates."""
    return [variant for variant in variants if not variant.copy]


def cpu_names() -> dict[str, str]:
    """The roles of processor time as people read them."""
    return {
        "client_user": _("client, user"),
        "client_sys": _("client, system"),
        "pooler": _("pooler"),
        "server": _("server"),
        "unattributed": _("unattributed"),
    }


def layer_title(layer: str) -> str:
    """A layer's name as people know it; its own name where this version does not know it."""
    return LAYERS[layer].title if layer in LAYERS else layer


def colour(layer: str) -> str:
    """The CSS variable of a layer; what is the same on another driver or in another implementation shares it."""
    same = _part(layer)
    return f"layer-{_FAMILIES.get(same, same)}"


_FAMILIES = {"psycopg_c": "psycopg", "psycopg_binary": "psycopg", "psycopg_python": "psycopg"}


def _part(layer: str) -> str:
    """What a ladder has in the layer's place on any driver: Django's parts are the same on psycopg2."""
    return layer.removesuffix("_psycopg2")


def _height(part: str) -> int:
    """Where a part of a ladder stands: drivers are on one level, above libpq and below Django."""
    return {"libpq": 0, "django_cursor": 2, "django_orm": 3}.get(part, 1)


def left_out_title(name: str) -> str:
    """What a run left out, "layer" or "layer/mode", as people know it."""
    layer, _slash, mode = name.partition("/")
    return f"{layer_title(layer)}, {mode}" if mode else layer_title(layer)


def variant_lines(variant: VariantResult) -> list[str]:
    """A variant's label over two lines: the layer, then all the rest that its label has."""
    _layer, _dot, rest = variant.label.partition(" · ")
    return [layer_title(variant.layer), rest or variant.route]


def ladder_title(ladder: Ladder, ladders: Sequence[Ladder]) -> str:
    """The route, and whatever else tells this ladder from the run's others."""
    parts = [ladder["route"]]
    for key, text in (
        ("workload", "%s"),
        ("mode", "%s"),
        ("clients", _("%s clients")),
        ("placement", "%s"),
        ("driver", "%s"),
    ):
        if len({str(other.get(key)) for other in ladders}) > 1:
            parts.append(text % ladder.get(key))
    return " · ".join(parts)


def _lines(title: str) -> list[str]:
    route, _dot, rest = title.partition(" · ")
    return [route, rest] if rest else [route]


def _split_series(part: str, ladders: Sequence[Ladder]) -> dict[str, Any]:
    by_part = [{_part(step["layer"]): step for step in ladder["steps"]} for ladder in ladders]
    values = [_own_share(steps.get(part)) for steps in by_part]
    return {"name": layer_title(part), "colour": colour(part), "values": values}


def _own_share(step: dict[str, Any] | None) -> float | None:
    """What a rung adds; the first rung adds all of its time."""
    if step is None:
        return None
    return float(step["us"] if step.get("step_us") is None else step["step_us"])


def _whisker(step: dict[str, Any]) -> list[float] | None:
    return None if step.get("low") is None or step.get("high") is None else [step["low"], step["high"]]


def _rung_end(step: dict[str, Any], index: int) -> str:
    us = _("%s µs") % figures.number(step["us"])
    return us if index == 0 or step.get("ratio") is None else f"{us}  {figures.ratio(step['ratio'])}"


def _shared_maximum(ladders: Sequence[Ladder]) -> float:
    """The end of the longest whisker, but at most twice the longest bar: else no bar could be read."""
    rungs = [rung for ladder in ladders for rung in (*ladder["steps"], *side_rungs(ladder))]
    longest = max((rung["us"] for rung in rungs), default=0.0)
    whiskers = max((rung.get("high") or rung["us"] for rung in rungs), default=0.0)
    return float(min(whiskers, 2 * longest))


def _known_sum(cpu_us: dict[str, float | None]) -> float | None:
    known = [value for role in CPU_ROLES if (value := cpu_us.get(role)) is not None]
    return sum(known) if known else None
