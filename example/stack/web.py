"""The Celery worker and the site."""

import http.client
import signal
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

from example.stack.part import Part

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def worker(directory: Path, env: Mapping[str, str], queue: str = "pgperf") -> Part:
    """A worker for pgperf's queue with one process, so that it runs one benchmark at a time; or a load
    host's or an agent's, for a queue of its own.

    It is ready when Celery logs `ready.`. It prefetches no messages, because a worker that holds
    one ends when the broker does.
    """
    command = f"-m celery -A example worker -Q {queue} -c 1 --disable-prefetch --loglevel INFO"
    name = [] if queue == "pgperf" else ["-n", f"{queue}@%h"]
    return Part(
        name="Celery worker",
        argv=[sys.executable, *command.split(), *name, "--without-gossip", "--without-mingle"],
        log=directory / "worker.log",
        answers=lambda part: " ready." in part.log_since_start(),
        polite=signal.SIGQUIT,  # SIGTERM would wait for the end of a benchmark
        cwd=CHECKOUT,
        env=env,
    )


def site(directory: Path, env: Mapping[str, str], port: int) -> Part:
    """The site under Django's development server; WhiteNoise serves the static files."""
    command = f"manage.py runserver --noreload --nostatic 127.0.0.1:{port}"
    return Part(
        name="site",
        argv=[sys.executable, *command.split()],
        log=directory / "site.log",
        answers=lambda _: home_page_answers(port),
        polite=signal.SIGTERM,
        cwd=CHECKOUT,
        env={**env, "DJANGO_RUNSERVER_HIDE_WARNING": "true"},
    )


def home_page_answers(port: int, authority: Path | None = None) -> bool:
    """Whether the site's home page, which reads the database, answers on this loopback port.

    `authority`: the certificate to verify the server by; None for a server without TLS.
    """
    if authority:
        context = ssl.create_default_context(cafile=authority)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=10, context=context
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
