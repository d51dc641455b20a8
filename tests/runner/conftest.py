"""The example site's own rows, committed, and the way to them that a run would take."""

from dataclasses import replace

import pytest
from django.db import connection

from example.books.shelves import fill_shelves
from pgperf.core.records import Route


@pytest.fixture
def shelves(transactional_db: None, routes: dict[str, Route]) -> dict[str, Route]:
    """Routes to the tests' own database, which has the example's books; read-only sessions, as rails give them."""
    fill_shelves()
    name = str(connection.settings_dict["NAME"])
    options = "-c default_transaction_read_only=on"
    return {
        key: replace(route, dbname=name, options="" if route.pooler else options)
        for key, route in routes.items()
    }
