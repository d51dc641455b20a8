"""The steps of the web site: each changes one thing of the step that it builds on.

The first set-up is Apache with mod_wsgi. Every step has web servers of its own, so that steps can be
measured in turn, and has a Target of the step's name.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pgperf.runner.cpu import placement

TIMEOUT_S = 180.0  # of the start: all steps load the site at the same time

Server = Literal["apache", "gunicorn", "nginx"]


@dataclass(frozen=True)
class Step:
    """One set-up of the site.

    `server`: nginx means nginx before gunicorn. `database`: the part that is the site's PostgreSQL.
    `settings`: variables that example.web_settings reads.
    """

    title: str
    builds_on: str = ""
    server: Server = "nginx"
    tls: bool = False
    tls_sessions: bool = True
    pooled: bool = False
    database: str = "postgres"
    settings: Mapping[str, str] = field(default_factory=dict)


#: Clusters of PostgreSQL for the site alone, which are started anew for each block.
CLUSTERS = DEFAULT, ADVISED = "cluster_default", "cluster_advised"

STEPS: dict[str, Step] = {
    "web_apache": Step("Apache with mod_wsgi", server="apache"),
    "web_gunicorn": Step("gunicorn alone", "web_apache", server="gunicorn"),
    "web_nginx": Step("nginx before gunicorn", "web_gunicorn"),
    "web_nginx_twin": Step("the same again", "web_nginx"),
    "web_conn_kept": Step("CONN_MAX_AGE without limit", "web_nginx", settings={"EXAMPLE_CONN_MAX_AGE": "kept"}),
    "web_pool": Step("Django's connection pool", "web_nginx", settings={"EXAMPLE_POOL": "1"}),
    "web_pgbouncer": Step("PgBouncer", "web_nginx", pooled=True),
    "web_tls": Step("TLS", "web_pgbouncer", pooled=True, tls=True),
    "web_tls_new": Step("TLS without session resumption", "web_tls", pooled=True, tls=True, tls_sessions=False),
    "web_atomic": Step("ATOMIC_REQUESTS", "web_pgbouncer", pooled=True, settings={"EXAMPLE_ATOMIC_REQUESTS": "1"}),
    "web_no_autocommit": Step(
        "AUTOCOMMIT off", "web_pgbouncer", pooled=True, settings={"EXAMPLE_AUTOCOMMIT": "0"}
    ),
    "web_cluster": Step("another PostgreSQL", "web_pgbouncer", pooled=True, database=DEFAULT),
    "web_advised": Step("PostgreSQL with advised settings", "web_cluster", pooled=True, database=ADVISED),
}  # fmt: skip

#: The steps of the published table, with those that they build on, and the distance there.
PUBLISHED = (
    "web_apache", "web_gunicorn", "web_nginx", "web_pgbouncer", "web_tls", "web_tls_new", "web_no_autocommit",
    "web_cluster", "web_advised",
)  # fmt: skip
PUBLISHED_MS = 45.0


def servers_cpus() -> int:
    """The CPUs that web servers, pooler and PostgreSQL share in a run: all but those of the load
    generator's core. With one CPU, that one.
    """
    placed = placement.place("apart", os.sched_getaffinity(0), refusal="", pages=True)
    return len(placed.sides(over_http=True).server or (1,))


def workers() -> int:
    """The worker processes of a step: gunicorn's advice, 2n+1."""
    return 2 * servers_cpus() + 1


def parts_of(steps: Collection[str]) -> list[str]:
    """The steps, and both clusters if a step uses one, in start order.

    Both start together: a data directory that gets another role must be free.
    """
    clusters = CLUSTERS if any(STEPS[step].database in CLUSTERS for step in steps) else ()
    return [*clusters, *(name for name in STEPS if name in steps)]


def application(name: str) -> str:
    """The name of gunicorn and its port in this step."""
    return f"{name}_application" if STEPS[name].server == "nginx" else name


def ports_of(steps: Collection[str]) -> list[str]:
    """The names of all ports of the steps and their clusters."""
    proxied = [application(name) for name in steps if STEPS[name].server == "nginx"]
    return [*parts_of(steps), *proxied]


def url(name: str, port: int) -> str:
    """The step's base URL, without a path."""
    return f"{'https' if STEPS[name].tls else 'http'}://127.0.0.1:{port}"


def variable(name: str) -> str:
    """The environment variable with the step's base URL."""
    return f"PGPERF_{name.upper()}_URL"
