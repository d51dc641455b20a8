"""`client-scaling`: what 1 to 32 clients at the same time bring."""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN

CLIENT_SCALING = CatalogBenchmark(
    name="client-scaling",
    rank=3,
    title="1 to 32 clients",
    description=(
        "The same statement from 1, 2, 4, 8, 16 and 32 clients at the same time, through libpq in C and through the"
        " ORM, over a local socket, TCP and PgBouncer: throughput, latency and CPU time by number of"
        " clients. Up to 64 clients are connected at once, so PostgreSQL needs about 280 free connection slots."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "django_orm"),
    routes=("socket", "tcp", "pgbouncer"),
    clients=(1, 2, 4, 8, 16, 32),
    blocks=6,
    rounds=4,
)
