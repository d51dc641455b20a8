"""`rate-sweep`: the latency over the rate, and the highest rate that holds a limit."""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core import limits

RATE_SWEEP = CatalogBenchmark(
    name="rate-sweep",
    rank=7,
    title="How much can it take?",
    description=(
        "The same statement at rising rates from 4 clients, through libpq in C and through the ORM, over a local"
        " socket, TCP and PgBouncer: percentiles of the latency over the rate, from the intended start of each"
        " operation, and the highest rate at which the 99th percentile stays under 10 ms. Rates are shares of"
        " what a closed loop reaches, which is measured beside them."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "django_orm"),
    routes=("socket", "tcp", "pgbouncer"),
    clients=(4,),
    rate_search_ms=limits.RATE_SEARCH_MS.usual or 0.0,
    rounds=8,
)
