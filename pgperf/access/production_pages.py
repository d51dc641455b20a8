"""Pages that a run requests from the web servers of a production database.

A web server's sessions are its own: nothing stops a page there from writing, from sending mail or
from queuing a task. So each page first runs inside a guarded client, over a route to the database.
No request is sent before that has shown that the page only reads.
"""

from collections.abc import Iterable, Mapping

from pgperf.core.exceptions import PageRefused
from pgperf.core.layers import over_http
from pgperf.core.records import Plan, Route, WorkloadDefinition, most_direct
from pgperf.runner.capture.statements import Capture

_REMEDY = "In production, measure a page that only reads; measure this one on another database"
_NO_ROUTE = (
    "it must first run inside a client, in a read-only session, and no enabled target leads to the database itself."
    " Add one"
)
_NOT_RUN = "it has not run inside a client first"


def requested(plan: Plan, production: bool) -> list[WorkloadDefinition]:
    """The pages that the plan requests from web servers; none outside production."""
    names = {variant.workload for variant in plan.variants if over_http(variant.layer)}
    return [work for work in plan.definition.workloads if production and work.page and work.name in names]


def capture_route(works: Iterable[WorkloadDefinition], routes: Mapping[str, Route]) -> Route | None:
    """The route over which these pages run first; None without pages.

    Raises PageRefused if no route leads to the database.
    """
    works = list(works)
    if not works:
        return None
    if all(route.url for route in routes.values()):
        raise _refusal(works[0], _NO_ROUTE)
    return most_direct(routes.values())


def check(works: Iterable[WorkloadDefinition], captures: Iterable[Capture]) -> None:
    """Raises PageRefused for a page that was stopped, or that did not run."""
    stopped = {capture.workload.name: capture.stopped.removeprefix("page: ") for capture in captures}
    for work in works:
        if work.name not in stopped:
            raise _refusal(work, _NOT_RUN)
        if reason := stopped[work.name]:
            raise _refusal(work, f"inside a client it was stopped: {reason.rstrip('.')}. {_REMEDY}")


def _refusal(work: WorkloadDefinition, reason: str) -> PageRefused:
    assert work.page
    return PageRefused(
        f"page: {work.name} ({work.page.path}) is not requested from web servers of a production database: {reason}"
    )
