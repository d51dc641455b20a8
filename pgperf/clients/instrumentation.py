"""Finds instrumentation in this process that may slow down queries: monitoring tools and wrappers.

pgperf measures the layers with the site's instrumentation in place, and reports what it found.
"""

import sys
from collections.abc import Mapping
from typing import Any

from django.db.backends.utils import CursorWrapper

#: Module name -> name of the product.
TOOLS = {
    "debug_toolbar": "django-debug-toolbar", "silk": "django-silk", "nplusone": "nplusone",
    "django_prometheus": "django-prometheus", "cachalot": "django-cachalot", "cacheops": "django-cacheops",
    "ddtrace": "ddtrace", "newrelic": "newrelic", "sentry_sdk": "sentry_sdk", "elasticapm": "elasticapm",
    "scout_apm": "scout_apm", "appsignal": "appsignal", "instana": "instana", "skywalking": "skywalking",
    "opentelemetry.instrumentation": "opentelemetry",
}  # fmt: skip
_OWN_ENGINES = ("django.db.backends.", "django.contrib.gis.db.backends.")


def found(connection: Any, tools: Mapping[str, str] = TOOLS) -> str:
    """The names of all instrumentation found on an open Django connection, or "none found"."""
    loaded = [title for module, title in tools.items() if module in sys.modules]
    return ", ".join([*loaded, *_wrappers(connection)]) or "none found"


def _wrappers(connection: Any) -> list[str]:
    """Wrappers between Django and its driver that belong to neither."""
    found = [f"execute wrapper {_name(wrapper)}" for wrapper in connection.execute_wrappers]
    engine = type(connection).__module__
    if not engine.startswith(_OWN_ENGINES):
        found.append(f"engine {engine.removesuffix('.base')}")
    driver = connection.Database
    for title, function, module in (
        ("CursorWrapper.execute", CursorWrapper.execute, "django."),
        ("the driver's connect", driver.connect, driver.__name__),
    ):
        if not function.__module__.startswith(module) or hasattr(function, "__wrapped__"):
            found.append(f"{title} is wrapped by {_name(function)}")
    if not connection.cursor.__module__.startswith(("django.", engine)):
        found.append(f"connection.cursor is wrapped by {_name(connection.cursor)}")
    return found


def _name(thing: Any) -> str:
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"
