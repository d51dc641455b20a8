"""Published figures of the benchmarks that reproduce a publication, as their authors gave them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from pgperf.core.delayed_routes import lengthened
from pgperf.core.records import Variant


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The published throughput of one configuration, operations/s.

    `excluding`: without the time for connecting, by the formula of pgbench before version 14; None
    where it was not published. An empty field fits each variant.
    """

    layer: str
    ops_per_s: float
    excluding: float | None = None
    workload: str = ""
    routes: tuple[str, ...] = ()
    connect: str = "persistent"

    def fits(self, variant: Variant) -> bool:
        return (
            self.layer == variant.layer
            and self.connect == variant.connect
            and self.workload in ("", variant.workload)
            and (not self.routes or variant.route in self.routes)
        )


@dataclass(frozen=True, kw_only=True)
class Publication:
    """`title` names the source; `conditions` are those of its figures, in a sentence.

    `connections`: how many ran operations at the same time.
    """

    title: str
    conditions: str
    connections: int
    figures: tuple[Figure, ...]

    def figure(self, variant: Variant) -> Figure | None:
        """The figure of a variant's configuration; None where there is none, and for an open loop."""
        if variant.connections != self.connections or variant.control or variant.is_open_loop:
            return None
        return next((each for each in self.figures if each.fits(variant)), None)


_QUERIES = ("pg_type", "generate_series", "large_object", "arrays", "copyfrom", "batch", "oneplusone")
_QUERIES_PER_S = {
    "psycopg2": (246.18, 626.67, 2099.09, 1091.84, 44.44, 13.26, 9249.65),
    "psycopg": (804.45, 1250.97, 1013.91, 1015.23, 45.66, 4.93, 4436.81),
    "psycopg_async_uvloop": (749.26, 1286.34, 1330.10, 1139.06, 47.03, 11.04, 7189.77),
}


def _pgbench(route: str, ops_per_s: float, excluding: float) -> Figure:
    """pgbench -C in one thread. How its logins were authenticated was not published: presumably
    without a password.
    """
    return Figure(
        layer="pgbench_one_thread",
        connect="per_operation",
        routes=(route, f"{route}_trust"),
        ops_per_s=ops_per_s,
        excluding=excluding,
    )


def _of_drivers() -> Iterator[Figure]:
    for layer, (at, query) in product(_QUERIES_PER_S, enumerate(_QUERIES)):
        yield Figure(layer=layer, workload=query, ops_per_s=_QUERIES_PER_S[layer][at])


#: The steps of the site that a published set-up is, with its requests/s.
_STEPS = (
    (("web_apache",), 4.0),
    (("web_nginx",), 9.0),
    (("web_pgbouncer", "web_cluster"), 10.5),
    (("web_advised",), 11.7),
)


def _of_site() -> Iterator[Figure]:
    """ab opened a connection for each request; figures of kept connections were not published."""
    for steps, ops_per_s in _STEPS:
        routes = (*steps, *(lengthened(step, 45.0) for step in steps))
        for connect in ("persistent", "per_operation"):
            yield Figure(layer="http", routes=routes, ops_per_s=ops_per_s, connect=connect)


#: By the name of the benchmark that reproduces it.
PUBLICATIONS = {
    "connection-cost": Publication(
        title="Cybertec (Hans-Jürgen Schönig): PgBouncer: proving the point",
        conditions=(
            "PostgreSQL 9.2.4 on one core, pgbench -t 1000 -c 20 -C -f select.sql with SELECT 1. The logins were"
            " presumably without a password, and the 15-fold gain needs that: on the example stack, measure with"
            " --routes tcp_trust,pgbouncer_trust. With SCRAM, the login costs more than PgBouncer saves."
        ),
        connections=20,
        figures=(
            _pgbench("tcp", ops_per_s=67.5, excluding=15_423.0),
            _pgbench("pgbouncer", ops_per_s=1_013.0, excluding=2_766.0),
        ),
    ),
    "driver-suite-published": Publication(
        title="Timescale: psycopg2 versus psycopg 3, with MagicStack's suite for drivers",
        conditions=(
            "PostgreSQL 16.2 on 4 cores, psycopg2 2.9.9, psycopg 3.1.18; 10 threads or 10 tasks, 30 s for each"
            " query, the tasks on uvloop. psycopg prepared a statement after five executions."
        ),
        connections=10,
        figures=tuple(_of_drivers()),
    ),
    "site-steps": Publication(
        title="Stein Magnus Jodal (2011): speeding up a Django site without touching its code",
        conditions=(
            "4 cores, 1 GB, ab -n 200 -c 20 from 45 ms away, each step measured once. TLS everywhere, whose"
            " tuning changed nothing. Without autocommit, as Django worked then; with it, 10.5 fell to 9.2."
        ),
        connections=20,
        figures=tuple(_of_site()),
    ),
}
