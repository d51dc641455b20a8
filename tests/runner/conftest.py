"""The example site's own rows, committed, and the way to them that a run would take."""

from dataclasses import replace

import pytest
from django.db import connection

from example.books.sample_data import create_books
from pgperf.core.records import Route


@pytest.fixture
def book_routes(transactional_db: None, routes: dict[str, Route]) -> dict[str, Route]:
    """Routes to the tests' own database, which has the example's books; read-only sessions, as
    rails give them.
    """
    create_books()
    name = str(connection.settings_dict["NAME"])
    options = "-c default_transaction_read_only=on"
    return {
        key: replace(route, dbname=name, options="" if route.pooler else options)
        for key, route in routes.items()
    }
