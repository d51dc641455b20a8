"""The tables and rows that the catalog's workloads need."""

from pgperf.catalog.base import Fixture

# The comment is set last: it marks the fixture as complete and as created by pgperf.
SITE = Fixture(
    name="site",
    create=(
        "CREATE SCHEMA IF NOT EXISTS pgperf",
        "CREATE TABLE IF NOT EXISTS pgperf.site ("
        "id integer PRIMARY KEY, domain varchar(100) NOT NULL UNIQUE, name varchar(50) NOT NULL)",
        "INSERT INTO pgperf.site (id, domain, name) VALUES"
        " (1, 'example.com', 'Example'), (2, 'example.org', 'Example, the organisation'),"
        " (3, 'example.net', 'Example, the network'), (4, 'beispiel.example', 'Größe 42')"
        " ON CONFLICT DO NOTHING",
        "ANALYZE pgperf.site",
        "COMMENT ON TABLE pgperf.site IS 'pgperf fixture: site, version 1'",
    ),
    probe="SELECT coalesce(obj_description(to_regclass('pgperf.site'), 'pg_class')"
    " = 'pgperf fixture: site, version 1', false)",
    drop=("DROP TABLE IF EXISTS pgperf.site",),
)

FIXTURES: dict[str, Fixture] = {fixture.name: fixture for fixture in (SITE,)}
