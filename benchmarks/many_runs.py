"""Create one real run on the example site, and copies of it in its database."""

import psycopg
from psycopg import sql

from benchmarks.example_site import run_benchmark

#: The tables that hold a run, the run itself first.
TABLES = ("pgperf_run", "pgperf_variantresult", "pgperf_comparisonresult", "pgperf_blockresult")
#: A copied comparison names the variants of the original: let it name those of its own run.
_OWN_VARIANT = sql.SQL(
    "UPDATE pgperf_comparisonresult AS comparison SET {side} = own.id "
    "FROM pgperf_variantresult AS original, pgperf_variantresult AS own "
    "WHERE comparison.run_id = ANY(%s) AND original.id = comparison.{side} "
    "AND own.run_id = comparison.run_id AND own.label = original.label"
)


def measured(stack_env: dict[str, str], *options: str) -> int:
    """Perform a run of `orm-overhead`; its number."""
    return int(run_benchmark(stack_env, "orm-overhead", *options)["run"]["id"])


def connect(stack_env: dict[str, str]) -> psycopg.Connection:
    """Connect to the database of the site."""
    return psycopg.connect(
        host=stack_env["PGPERF_DB_SOCKET"],
        port=stack_env["PGPERF_DB_PORT"],
        dbname=stack_env["PGPERF_DB_NAME"],
        user=stack_env["PGPERF_DB_USER"],
        password=stack_env["PGPERF_DB_PASSWORD"],
        autocommit=True,
    )


def copy(connection: psycopg.Connection, run: int, times: int) -> list[int]:
    """Copy a run with all its results; the numbers of the copies.

    Each copy has a request time one hour before that of the previous copy.
    """
    first, *results = TABLES
    columns = _columns(connection, first)
    query = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}, generate_series(1, %s) WHERE id = %s "
        "RETURNING id"
    ).format(table=sql.Identifier(first), columns=columns)
    copies = [row[0] for row in connection.execute(query, [times, run])]
    connection.execute(
        "UPDATE pgperf_run SET requested_at = requested_at - (id - %s) * interval '1 hour' WHERE id = ANY(%s)",
        [run, copies],
    )
    for table in results:
        query = sql.SQL(
            "INSERT INTO {table} (run_id, {columns}) SELECT run, {columns} FROM {table}, unnest(%s::bigint[]) run "
            "WHERE run_id = %s ORDER BY run, id"
        ).format(table=sql.Identifier(table), columns=_columns(connection, table))
        connection.execute(query, [copies, run])
    connection.execute("ANALYZE")  # or the joins of the next statements may take minutes
    for side in ("variant_id", "baseline_id"):
        connection.execute(_OWN_VARIANT.format(side=sql.Identifier(side)), [copies])
    connection.execute("VACUUM ANALYZE")
    return copies


def _columns(connection: psycopg.Connection, table: str) -> sql.Composed:
    """Every column whose value is the same in a copy and its original."""
    query = (
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = 'public' "
        "AND column_name NOT IN ('id', 'run_id', 'request_token') ORDER BY ordinal_position"
    )
    return sql.SQL(", ").join(sql.Identifier(row[0]) for row in connection.execute(query, [table]))
