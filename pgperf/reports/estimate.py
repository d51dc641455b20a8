"""The estimate of a run as a form shows it while the user fills it in: a few words and JSON."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.reports.preview import Preview


def estimate_json(preview: Preview) -> dict[str, Any]:
    """`text`: what the run takes, or why there is no estimate. `problem`: is it such a reason, or does
    a limit refuse the run?
    """
    if preview.refusal or preview.estimate is None:
        return refusal_json(preview.refusal)
    problems = [need.problem for need in preview.needs if need.problem]
    return {
        "text": " ".join([_takes(preview), *problems]),
        "problem": bool(problems),
        "variants": preview.variants,
        "connections": preview.estimate.connections,
        "quick_time": preview.quick_time,
        "full_time": preview.full_time,
        "layers": [row.title for row in preview.rows if row.routes],
        "missing_routes": preview.missing,
    }


def refusal_json(reason: str) -> dict[str, Any]:
    """There is no estimate, for that reason."""
    return {"text": reason, "problem": True}


def missing_json(field: str) -> dict[str, Any]:
    """There is no estimate before the user fills in that field of the form."""
    return {"text": _("Fill in %s to see how long a run takes and what it needs.") % field, "problem": False}


def _takes(preview: Preview) -> str:
    assert preview.estimate
    connections = preview.estimate.connections
    parts = {
        "time": preview.full_time,
        "quick": preview.quick_time,
        "connections": ngettext("%d connection", "%d connections", connections) % connections,
        "variants": ngettext("%d variant", "%d variants", preview.variants) % preview.variants,
        "layers": ", ".join(row.title for row in preview.rows if row.routes),
        "routes": ", ".join(route for route in preview.routes if route not in preview.missing),
        "database": preview.database,
    }
    return (
        _(
            "A run on %(database)s takes %(time)s (quick: %(quick)s) and %(connections)s: "
            "%(variants)s of %(layers)s over %(routes)s."
        )
        % parts
    )
