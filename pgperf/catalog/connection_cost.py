"""`connection-cost`: what a new connection costs for each operation, and what a pool saves.

The statement and the number of clients are those of Cybertec's "PgBouncer: proving the point".
"""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.core.records import WorkloadDefinition

CONNECTION_COST = CatalogBenchmark(
    name="connection-cost",
    rank=6,
    title="A connection for each operation",
    description=(
        "SELECT 1 from 20 clients that keep their connections, connect for each operation, or take it from a pool,"
        " directly and through PgBouncer, as Cybertec published for pgbench, which runs beside them. The"
        " published 15-fold gain needs logins without a password: on the example stack, run it with --routes"
        " tcp_trust,pgbouncer_trust. Django's layers also run as a view without persistent connections (CONN_MAX_AGE"
        " 0). Up to 80 clients are connected at once, so PostgreSQL needs about 330 free connection slots."
    ),
    workloads=(WorkloadDefinition(name="select-1", sql="SELECT 1 AS id", orm="pgperf.light"),),
    layers=("libpq", "pgbench", "pgbench_one_thread", "psycopg", "django_cursor"),
    routes=("tcp", "pgbouncer"),
    connection_modes=("persistent", "per_operation", "pool", "request"),
    clients=(20,),
    rounds=1,
)
