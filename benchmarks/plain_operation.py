"""A client without pgperf: one operation again and again, over a connection of its own.

    python -m benchmarks.plain_operation

The first line of the input is an `Operation` as JSON; the reply is the pid of the backend. Each
further line is a number of seconds; the reply is the operations per second, the last one in full.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Operation:
    """`layer`: libpq (through psycopg's bare wrapper of it), psycopg or django_orm. `spin_us`: the
    client's own CPU time before each statement.
    """

    sql: str
    args: tuple[str, ...] = ()
    layer: str = "libpq"
    spin_us: int = 0


def main() -> None:
    request = json.loads(sys.stdin.readline())
    operation = Operation(**request["operation"])
    statement, backend = _OPENED[operation.layer](operation, request["login"])
    print(backend, flush=True)
    for line in sys.stdin:
        print(per_second(statement, operation.spin_us / 1e6, float(line)), flush=True)


def per_second(statement: Callable[[], object], spin_s: float, seconds: float) -> float:
    """The rate over so many seconds, and over one operation at least."""
    ended, begin = 0, perf_counter()
    while not ended or perf_counter() < begin + seconds:
        work_until = perf_counter() + spin_s
        while perf_counter() < work_until:
            pass
        statement()
        ended += 1
    return ended / (perf_counter() - begin)


def _libpq(operation: Operation, login: dict[str, str]) -> tuple[Callable[[], object], int]:
    from psycopg import pq

    options = " ".join(f"{name}={value}" for name, value in login.items())
    connection = pq.PGconn.connect(options.encode())
    sql = operation.sql.replace("%s", "$1").encode()
    values = [each.encode() for each in operation.args]

    def run() -> None:
        result = connection.exec_params(sql, values or None)
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise SystemExit(result.error_message.decode())

    answer = connection.exec_(b"SELECT pg_backend_pid()").get_value(0, 0)
    return run, int(answer or 0)


def _psycopg(operation: Operation, login: dict[str, str]) -> tuple[Callable[[], object], int]:
    import psycopg

    connection = psycopg.connect(**login, autocommit=True)  # type: ignore[arg-type]
    cursor = connection.cursor()
    return lambda: cursor.execute(
        operation.sql, operation.args or None
    ).fetchall(), connection.info.backend_pid


def _django_orm(operation: Operation, login: dict[str, str]) -> tuple[Callable[[], object], int]:
    from django.conf import settings

    names = {"HOST": "host", "PORT": "port", "NAME": "dbname", "USER": "user", "PASSWORD": "password"}
    database: dict[str, Any] = {name: login[own] for name, own in names.items()}
    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **database}})
    import django
    from django.db import connection, models

    django.setup()

    class Site(models.Model):
        domain = models.CharField(max_length=100, unique=True)
        name = models.CharField(max_length=50)

        class Meta:
            app_label = "plain"
            db_table = '"pgperf"."site"'

        def __str__(self) -> str:
            return self.domain

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    return lambda: Site._default_manager.get(domain=operation.args[0]), backend


_OPENED = {"libpq": _libpq, "psycopg": _psycopg, "django_orm": _django_orm}

if __name__ == "__main__":
    main()
