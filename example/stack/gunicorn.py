"""gunicorn with the site: synchronous workers, each with one thread."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from example.stack import web_steps
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.web import CHECKOUT, home_page_answers


def part(place: Place, name: str, env: Mapping[str, str], port: int) -> Part:
    """The workers share the memory of the site, which is loaded before they start (--preload).

    gunicorn's control socket would be one for all instances of a user, so it is off.
    """
    check()
    options = f"--bind=127.0.0.1:{port} --workers={web_steps.workers()} --preload --no-control-socket"
    return Part(
        name=f"gunicorn of {name}",
        argv=[str(_program()), "example.wsgi", *options.split(), "--log-level=warning"],
        log=place.own / f"{name}.log",
        answers=lambda _: home_page_answers(port),
        death=signal.SIGQUIT,
        polite=signal.SIGKILL,  # a clean exit takes CPU time of each worker and saves nothing
        cwd=CHECKOUT,
        env={**env, "GUNICORN_CMD_ARGS": ""},
        timeout_s=web_steps.TIMEOUT_S,
    )


def check() -> None:
    """Raises StackError if gunicorn is missing, with the remedy."""
    if not _program().exists():
        raise StackError("gunicorn is missing: pip install -r requirements.txt")


def _program() -> Path:
    """The script: a process of `python -m` would have the name of the stack's own process."""
    return Path(sys.executable).with_name("gunicorn")
