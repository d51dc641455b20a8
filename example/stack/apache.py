"""Apache with the site in daemon processes of mod_wsgi, configured by mod_wsgi-express."""

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from example.stack import web_steps
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.web import CHECKOUT, home_page_answers

#: Apache refuses to run as root, and `nobody` could not read a Python or a checkout below a mode-700
#: home. In a user namespace root has another number and reads its own files.
NOT_ROOT = ["unshare", "--user", "--map-user=33", "--map-group=33"]


def part(place: Place, name: str, env: Mapping[str, str], port: int) -> Part:
    """As many processes of one thread each as gunicorn has, so that only the server differs."""
    check()
    directory = place.servers / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    options = (
        f"start-server --application-type module example.wsgi --host 127.0.0.1 --port {port} --processes"
        f" {web_steps.workers()} --threads 1 --log-to-terminal --disable-reloading --startup-timeout 60"
        f" --locale C.UTF-8 --server-root {directory} --working-directory {CHECKOUT}"
        f" --url-alias /static {place.static()}"
    )
    return Part(
        name="Apache",
        argv=[*(NOT_ROOT if os.geteuid() == 0 else []), str(_express()), *options.split()],
        log=place.own / f"{name}.log",
        answers=lambda _: home_page_answers(port),
        death=signal.SIGTERM,
        polite=signal.SIGTERM,
        cwd=CHECKOUT,
        env=env,
        timeout_s=web_steps.TIMEOUT_S,
    )


def check() -> None:
    """Raises StackError if Apache or mod_wsgi is missing, with the packages to install."""
    if not shutil.which("apache2", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"):
        raise StackError("Apache is missing: apt install apache2-bin apache2-dev, then `make up-web`")
    if not _express().exists() or find_spec("mod_wsgi") is None:
        raise StackError(
            "mod_wsgi is missing: apt install apache2-dev, then pip install -r requirements-web.txt"
        )


def _express() -> Path:
    return Path(sys.executable).with_name("mod_wsgi-express")
