"""The tables and rows that the catalog's workloads need."""

from pgperf.catalog.base import Fixture
from pgperf.catalog.driver_queries import BATCH_ROWS, COPY_ROWS
from pgperf.core.records import BulkInsert

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


def _rows_of_one_column(table: str, column: str, value: str, rows: int) -> Fixture:
    """A table of one column whose rows are all equal. The comment is set last, as above."""
    name, comment = f"pgperf.{table}", f"pgperf fixture: {table}, version 1"
    return Fixture(
        name=table,
        create=(
            "CREATE SCHEMA IF NOT EXISTS pgperf",
            f"CREATE TABLE IF NOT EXISTS {name} ({column} NOT NULL)",
            f"INSERT INTO {name} SELECT {value} FROM generate_series(1, {rows})"
            f" WHERE NOT EXISTS (SELECT FROM {name})",
            f"ANALYZE {name}",
            f"COMMENT ON TABLE {name} IS '{comment}'",
        ),
        probe=f"SELECT coalesce(obj_description(to_regclass('{name}'), 'pg_class') = '{comment}', false)",
        drop=(f"DROP TABLE IF EXISTS {name}",),
    )


def _empty_table(insert: BulkInsert) -> Fixture:
    """A table that runs fill and empty. Autovacuum would work on it in the middle of a run."""
    comment = f"pgperf fixture: {insert.name}, version 1"
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(insert.columns, insert.types, strict=True))
    return Fixture(
        name=insert.name,
        create=(
            "CREATE SCHEMA IF NOT EXISTS pgperf",
            f"CREATE TABLE IF NOT EXISTS {insert.table} ({columns}) WITH (autovacuum_enabled = false)",
            f"COMMENT ON TABLE {insert.table} IS '{comment}'",
        ),
        probe=f"SELECT coalesce(obj_description(to_regclass('{insert.table}'), 'pg_class') = '{comment}', false)",
        drop=(f"DROP TABLE IF EXISTS {insert.table}",),
    )


LARGE_OBJECT = _rows_of_one_column("large_object", "b bytea", "repeat('a', 1000)::bytea", 100)
ARRAYS = _rows_of_one_column(
    "arrays", "a int[]", "(SELECT array_agg(i) FROM generate_series(1, 100) AS i)", 100
)
COPYFROM = _empty_table(COPY_ROWS)
BATCH = _empty_table(BATCH_ROWS)

FIXTURES: dict[str, Fixture] = {
    fixture.name: fixture for fixture in (SITE, LARGE_OBJECT, ARRAYS, COPYFROM, BATCH)
}
