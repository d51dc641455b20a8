"""What the aliases of DATABASES are."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.utils import load_backend

_ENGINES = ("postgresql", "postgis")


def is_postgresql(alias: Mapping[str, Any]) -> bool:
    """By the vendor of its backend, which may have any name. One whose driver is missing here is known
    by its name alone.
    """
    engine = str(alias["ENGINE"])
    try:
        return bool(load_backend(engine).DatabaseWrapper.vendor == "postgresql")
    except (ImproperlyConfigured, ImportError):
        return any(name in engine for name in _ENGINES)
