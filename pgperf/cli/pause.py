"""`pgperf pause`: stops all starts and ends what runs, until `pgperf pause --off`."""

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf.runs import pause, state


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--off", action="store_true", help="end the pause: queued runs start")
    parser.add_argument("--reason", default="", help="shown on the pages while the pause lasts")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Raises RunConflict when that is so already."""
    if options["off"]:
        pause.end()
        out.write("Runs may start again.")
        return
    pause.begin(f"{_user()} on the command line", options["reason"][:200])
    running = state.running_count()
    out.write(f"Paused: no run starts; {_cancelled(running)}. Resume: pgperf pause --off")


def _cancelled(running: int) -> str:
    if not running:
        return "no run was running"
    if running == 1:
        return "1 running run is being cancelled"
    return f"{running} running runs are being cancelled"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return "a user"
