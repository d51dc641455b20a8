"""`fleet-scaling`: what 1 to 4 load hosts bring."""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN

FLEET_SCALING = CatalogBenchmark(
    name="fleet-scaling",
    rank=8,
    title="1 to 4 load hosts",
    description=(
        "The same statement from 16 clients that 1, 2 and 4 load hosts share, through libpq in C and through the"
        " ORM, over TCP. More hosts bring more as long as the clients are the limit, and nothing once the server"
        " is. It needs four workers on queues of their own, one on each host that makes load, and about 530"
        " free connection slots."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=("libpq", "django_orm"),
    routes=("tcp",),
    clients=(16,),
    load_hosts=(1, 2, 4),
    blocks=6,
    rounds=4,
)
