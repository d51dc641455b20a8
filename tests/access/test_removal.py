"""What an installation has left in the databases of the site."""

import pytest
from django.db import connections

from pgperf.access import removal

pytestmark = pytest.mark.django_db


def test_an_alias_without_an_engine_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = {"ENGINE": "django.db.backends.dummy"}
    monkeypatch.setitem(connections.databases, "empty", {**connections.databases["default"], **empty})
    assert [found.alias for found in removal.traces()] == ["default"]
