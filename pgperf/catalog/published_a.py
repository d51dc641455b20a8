"""`published-a` and `eight-clients`: Erik LaBianca's measurements of 2010, as far as one host can
repeat them.
"""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN

PUBLISHED_A = CatalogBenchmark(
    name="published-a",
    rank=4,
    title="ORM and libpq, as published in 2010",
    description=(
        "Site.objects.get(domain='example.com') and the same statement in C, directly, through PgBouncer and on the"
        " database's host: six configurations with their cold phases, as Erik LaBianca published them in 2010. It adds"
        " Django on psycopg 3 and, if the database has the route distance_05ms, a simulated round trip of 0.5 ms."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "django_orm_psycopg2", "django_orm"),
    routes=("tcp", "pgbouncer", "socket", "distance_05ms"),
    blocks=10,
    rounds=10,
)

EIGHT_CLIENTS = CatalogBenchmark(
    name="eight-clients",
    rank=5,
    title="4 to 32 clients, as published in 2010",
    description=(
        "The cases with several clients that Erik LaBianca published in 2010, with the CPU time of each role and"
        " a table of processes as in top: 8 and 16 clients in C directly and through PgBouncer, 4 to 32 on the"
        " database's host, and 8 of the ORM. It adds the combinations in between. PostgreSQL needs about 300 free"
        " connection slots."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "django_orm"),
    routes=("tcp", "pgbouncer", "socket"),
    clients=(4, 8, 16, 32),
    blocks=6,
    rounds=4,
)
