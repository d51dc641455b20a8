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
    ends = "1 running run ends" if running == 1 else f"{running} running runs end"
    out.write(f"Paused: no run starts; {ends} within seconds. Resume: pgperf pause --off")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return "a user"
