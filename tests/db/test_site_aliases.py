"""Which aliases of DATABASES are PostgreSQL's."""

import sys
import types

import pytest
from django.db.backends.postgresql import base

from pgperf.db.site_aliases import is_postgresql


def test_a_backend_of_any_name_is_known_by_its_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = types.ModuleType("extra_backend"), types.ModuleType("extra_backend.base")
    module.DatabaseWrapper = type("DatabaseWrapper", (base.DatabaseWrapper,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert is_postgresql({"ENGINE": "extra_backend"})


@pytest.mark.parametrize(
    ("engine", "found"),
    [
        ("django.db.backends.postgresql", True),
        ("django.db.backends.sqlite3", False),
        ("no_such_backend.postgresql", True),
        ("no_such_backend", False),
    ],
)
def test_others(engine: str, found: bool) -> None:
    assert is_postgresql({"ENGINE": engine}) is found
