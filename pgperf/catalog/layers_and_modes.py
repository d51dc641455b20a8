"""`layers-and-modes`: every layer that this machine has, in every statement mode that the layer
has.
"""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.layers import LAYERS

LAYERS_AND_MODES = CatalogBenchmark(
    name="layers-and-modes",
    rank=2,
    title="All layers in all statement modes",
    description=(
        "The same statement through every driver, with each implementation of psycopg, through Django on psycopg 3"
        " and on psycopg2, and through pgbench. Each layer sends it as a simple, extended and prepared statement over"
        " a local socket, with one client. The run page gives the reason for each mode that a layer lacks."
    ),
    workloads=(SITE_BY_DOMAIN,),
    layers=tuple(
        name
        for name, layer in LAYERS.items()
        if layer.connects and not layer.requests_pages and name != "pgbench_one_thread"
    ),
    routes=("socket",),
    modes=("simple", "extended", "prepared"),
    blocks=8,
    rounds=8,
)
