"""`driver-suite` and `driver-suite-published`: seven queries through every driver, under fair
conditions and under those of the suite that they come from.
"""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.driver_queries import SEVEN

_DRIVERS = ("psycopg2", "psycopg", "psycopg_async", "asyncpg")
_ON_UVLOOP = ("psycopg2", "psycopg", "psycopg_async_uvloop", "asyncpg_uvloop")

DRIVER_SUITE = CatalogBenchmark(
    name="driver-suite",
    rank=30,
    title="Seven queries through every driver",
    description=(
        "The queries of MagicStack's suite for drivers: wide rows, many rows, 100 kB of bytes, arrays, COPY "
        "of 10,000 rows, a batch of 1,000 rows, and SELECT 1+1. Every driver has the same conditions: rows as "
        "tuples (asyncpg has its Record only), autocommit, its best call for many rows, and one process with "
        "one connection for each client. psycopg2 knows mode simple only, asyncpg only prepared; each stands "
        "beside the others in the mode that it has, and psycopg and libpq run in both. Asynchronous drivers run "
        "on asyncio's own event loop. libpq has no batch of simple statements. The tables of COPY and batch are "
        "empty before each slice."
    ),
    workloads=SEVEN,
    layers=("libpq", *_DRIVERS),
    routes=("socket",),
    modes=("simple", "prepared"),
    blocks=6,
    rounds=3,
    diagnostic_ms=0,
)

DRIVER_SUITE_PUBLISHED = CatalogBenchmark(
    name="driver-suite-published",
    rank=31,
    title="Seven queries through every driver, as published",
    description=(
        "The same queries under the conditions of MagicStack's suite, for comparison with published figures. "
        "They treat drivers unequally. One process has 10 threads, or 10 tasks of an event loop, so all share "
        "one CPU. As in the suite, the asynchronous drivers run on uvloop, which takes less CPU time than "
        "asyncio's own loop. Rows know their columns: DictCursor of psycopg2, dict_row of psycopg, Record of asyncpg; "
        "dict_row costs most. Only asyncpg commits by itself; psycopg2 and psycopg read in one long "
        "transaction, commit a COPY, and never commit a batch within a slice. psycopg2 and psycopg build CSV "
        "text for COPY and use executemany for the batch, which psycopg2 sends row by row. As in the suite, "
        "tables have no index and grow in a slice; pgperf empties them after each slice, the suite after 35 "
        "s. The suite's psycopg prepares a statement after five executions: compare with mode prepared."
    ),
    workloads=SEVEN,
    layers=_ON_UVLOOP,
    routes=("socket",),
    modes=("simple", "prepared"),
    workers=10,
    row_type="named",
    transaction="driver_default",
    bulk_api="dbapi",
    blocks=6,
    rounds=3,
    diagnostic_ms=0,
    # Ten connections of one thread wait for each other, which no prediction without a pilot knows.
    budget_s=1200,
)
