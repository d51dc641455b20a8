"""`orm-overhead`: what each layer adds to fetching one row by a unique column."""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.core.records import WorkloadDefinition

# What Django sends for the two callables of pgperf.catalog.orm; a test holds them equal.
_FETCH = 'SELECT "pgperf"."site"."id", "pgperf"."site"."domain", "pgperf"."site"."name" FROM "pgperf"."site"'

SITE_BY_DOMAIN = WorkloadDefinition(
    name="site-by-domain",
    sql=f'{_FETCH} WHERE "pgperf"."site"."domain" = %s LIMIT 21',
    args=("example.com",),
    orm="pgperf.site_by_domain",
    other_sql=f'{_FETCH} WHERE "pgperf"."site"."name" = %s ORDER BY "pgperf"."site"."domain" ASC',
    other_args=("Example",),
    other_orm="pgperf.sites_by_name",
    fixture="site",
)

ORM_OVERHEAD = CatalogBenchmark(
    name="orm-overhead",
    rank=1,
    title="Django ORM overhead",
    description=(
        "What each layer adds to Site.objects.get(domain='example.com'): the same statement through libpq in C, the"
        " drivers, Django's cursor and the ORM, over a local socket, TCP and PgBouncer, with one client."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"),
    routes=("socket", "tcp", "pgbouncer"),
    blocks=10,
    rounds=10,
)
