"""A new benchmark's fields, before the user changes them."""

from typing import Any

from pgperf.access import permissions
from pgperf.catalog.base import CatalogBenchmark
from pgperf.core.layers import LAYERS, ladder_on
from pgperf.db.fields import closed_loop, own_worker
from pgperf.install import launch
from pgperf.models import Database, Target
from pgperf.reports.preview import missing_layers
from pgperf.reports.run_json import live_workers

#: The layer of a page, which has no ORM call of its own.
_VIEW = "django_view"


def proposed(user: Any, database: str = "") -> dict[str, Any]:
    """A benchmark that can run once it has a name and a workload: Django's ladder, as far as a worker
    can run it, over the first direct route of a database that the user may see: the one with that
    primary key, if it is one of them.
    """
    found, routes = _first_route(user, database)
    return {
        "database": found,
        "layers": _runnable(ladder_on(launch.django_driver())),
        "routes": routes,
        "modes": list(CatalogBenchmark.modes),
        "clients": list(CatalogBenchmark.clients),
        "connection_modes": list(CatalogBenchmark.connection_modes),
        "environments": list(CatalogBenchmark.environments),
        "rates": closed_loop(),
        "load_hosts": own_worker(),
    }


def layers_of(kind: str) -> list[str]:
    """The layers that are proposed for a page, a plain statement, or a call of the ORM."""
    ladder = ladder_on(launch.django_driver())
    below = [name for name in ladder if LAYERS[name].runs_statements]
    return _runnable({"page": [*below, _VIEW], "statement": below}.get(kind, ladder))


def _runnable(layers: list[str]) -> list[str]:
    missing = missing_layers(layers, live_workers())
    return [layer for layer in layers if layer not in missing]


def _first_route(user: Any, database: str) -> tuple[int | None, list[str]]:
    """The first direct route to a database, with its database."""
    databases = permissions.visible(Database.objects.all(), user)
    direct = Target.objects.filter(database__in=databases, enabled=True, url="", pooler=Target.Pooler.NONE)
    pairs = list(direct.values_list("database", "route"))
    found = next((pair for pair in pairs if str(pair[0]) == database), pairs[0] if pairs else None)
    return (found[0], [found[1]]) if found else (None, [])
