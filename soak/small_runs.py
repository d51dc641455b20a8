"""Small runs for campaigns: they take seconds and have every step of a real run."""

import uuid
from typing import Any

from django.db import connection

from pgperf.models import Benchmark, Database, Run
from pgperf.reports.run_json import TERMINAL, progress_json
from pgperf.runs import state, store
from pgperf.runs.db_retry import retry_while_down
from pgperf.runs.definitions import Overrides
from soak.site import Site, await_true

BLOCKS, ROUNDS, SLICE_MS = 3, 3, 10
LAYERS, ROUTES = ("libpq", "psycopg"), ("tcp", "pgbouncer")
#: A query is retried for this long, because the database may be restarting.
_RETRY_S = 30.0


def saved_benchmark(name: str, **fields: Any) -> Benchmark:
    """A benchmark of the site that the admin can start."""
    like = Benchmark.objects.get(name="orm-overhead")
    values = {
        "title": name, "layers": list(LAYERS), "routes": list(ROUTES), "modes": ["simple"],
        "clients": [1], "blocks": BLOCKS, "rounds": ROUNDS, "slice_ms": SLICE_MS, "precision": 0.0, **fields,
    }  # fmt: skip
    benchmark, _made = Benchmark.objects.update_or_create(name=name, defaults=values)
    benchmark.set_workloads(like.workloads)
    return benchmark


def ask(benchmark: Benchmark, database: Database, **overrides: Any) -> Run:
    """Ask for a run in this process; the message goes to the broker."""
    token = uuid.uuid4().hex
    wanted = Overrides(
        **{
            "quick": True,
            "blocks": BLOCKS,
            "rounds": ROUNDS,
            "slice_ms": SLICE_MS,
            "precision": 0.0,
            **overrides,
        }
    )
    return query(lambda: state.request(benchmark, database, wanted, token=token))


def smallest(benchmark: Benchmark, database: Database) -> Run:
    return ask(benchmark, database, layers=["libpq"], routes=list(ROUTES), blocks=1, rounds=1)


def query(step: Any) -> Any:
    """The result of a database query, retried while the database restarts."""
    return retry_while_down(step, _RETRY_S, "polling")


def fresh(run: Run) -> Run:
    return Run(**query(lambda: Run.objects.filter(pk=run.pk).values().get()))


def shown(run: Run) -> dict[str, Any]:
    """The progress that the run's page shows now."""

    def ask_page() -> dict[str, Any]:
        return progress_json(Run.objects.get(pk=run.pk))

    return dict(query(ask_page))


def is_over(run: Run) -> bool:
    return shown(run)["status"] in TERMINAL


def await_end(run: Run, seconds: float) -> float:
    """Seconds until the page shows that the run has ended; -1 if it has not after `seconds`."""
    return await_true(lambda: is_over(run), seconds, 0.2)


def blocks_of(run: Run) -> list[tuple[str, int]]:
    """The stored blocks of a run, each as (variant label, block number)."""
    return sorted((block.variant.label, block.block) for block in query(lambda: store.load_blocks(run)))


def count_backends() -> int:
    """Connections of pgperf's clients; idle connections of a pooler do not count."""
    return int(query(_count_backends))


def _count_backends() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgperf-%'"
            " AND NOT (client_addr IS NULL AND state = 'idle')"
        )
        return int(cursor.fetchone()[0])


def leftovers(site: Site) -> tuple[int, int]:
    """Client processes and backends that are still there 10 s after a run has ended."""
    await_true(lambda: not site.clients(), 10.0, 0.2)
    await_true(lambda: not count_backends(), 10.0, 0.2)
    return len(site.clients()), count_backends()
