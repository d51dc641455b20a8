"""`layers-and-modes`: every layer that this machine has, in every statement mode that the layer has."""

from pgperf.catalog.base import CatalogBenchmark
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core.layers import LAYERS

LAYERS_AND_MODES = CatalogBenchmark(
    name="layers-and-modes",
    rank=2,
    title="All layers in all statement modes",
    description=(
        "The same statement through every driver there is, psycopg's implementations told apart, and through Django on"
        " psycopg 3 and on psycopg2, sent as simple, extended and prepared statements over a local socket, one client"
        " each. A layer leaves out what it does not have, with the reason."
    ),
    workload=SITE_BY_DOMAIN,
    layers=tuple(name for name, layer in LAYERS.items() if layer.connects),
    routes=("socket",),
    modes=("simple", "extended", "prepared"),
    blocks=8,
    rounds=8,
)
