"""`manage.py pgperf`: the table of contents of the command line; pgperf.cli does the work."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from pgperf.cli import add, build, compare, confirm, distance, doctor, export, list, prune, reconcile, run
from pgperf.core.exceptions import PgperfError


class Command(BaseCommand):
    help = "Where the time of a database call goes: benchmarks, runs, results."
    requires_system_checks = []  # doctor must speak when checks fail; run says itself what is in its way

    def add_arguments(self, parser: CommandParser) -> None:
        new = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND").add_parser
        self._register(new("list", help="benchmarks, targets, layers"), self._list, list.add_arguments)
        self._register(new("add", help="a database by its alias"), self._add, add.add_arguments)
        self._register(new("run", help="run a benchmark"), self._run, run.add_arguments)
        self._register(new("export", help="a run's results to stdout"), self._export, export.add_arguments)
        self._register(new("compare", help="a run over an earlier one"), self._compare, compare.add_arguments)
        self._register(new("confirm", help="put a verdict to the test"), self._confirm, confirm.add_arguments)
        self._register(new("doctor", help="what is missing, and what to do"), self._doctor)
        self._register(
            new("distance", help="a database further away"), self._distance, distance.add_arguments
        )
        self._register(new("build", help="compile the C client"), self._build, build.add_arguments)
        self._register(new("reconcile", help="put stale runs right"), self._reconcile)
        self._register(new("prune", help="delete what is too old"), self._prune, prune.add_arguments)

    def handle(self, *args: Any, **options: Any) -> None:
        with _no_traceback():
            options["action"](options)
            self.stdout.flush()  # here a reader that went away is answered; at the interpreter's end it is not

    def _list(self, options: dict[str, Any]) -> None:
        list.run(options, self.stdout)

    def _add(self, options: dict[str, Any]) -> None:
        add.run(options, self.stdout)

    def _run(self, options: dict[str, Any]) -> None:
        run.run(options, self.stdout, self.stderr)

    def _export(self, options: dict[str, Any]) -> None:
        export.run(options, self.stdout)

    def _compare(self, options: dict[str, Any]) -> None:
        compare.run(options, self.stdout)

    def _confirm(self, options: dict[str, Any]) -> None:
        confirm.run(options, self.stdout, self.stderr)

    def _doctor(self, options: dict[str, Any]) -> None:
        doctor.run(self.stdout)

    def _distance(self, options: dict[str, Any]) -> None:
        distance.run(options, self.stdout)

    def _build(self, options: dict[str, Any]) -> None:
        build.run(options, self.stdout)

    def _reconcile(self, options: dict[str, Any]) -> None:
        reconcile.run(self.stdout)

    def _prune(self, options: dict[str, Any]) -> None:
        prune.run(options, self.stdout)

    @staticmethod
    def _register(
        parser: ArgumentParser,
        action: Callable[[dict[str, Any]], None],
        add_arguments: Callable[[ArgumentParser], None] | None = None,
    ) -> None:
        parser.set_defaults(action=action)
        if add_arguments:
            add_arguments(parser)


@contextmanager
def _no_traceback() -> Iterator[None]:
    """Errors as one line with the remedy. A reader that closed the pipe ends the command quietly."""
    try:
        yield
    except (PgperfError, ImproperlyConfigured) as error:
        raise CommandError(str(error)) from error
    except DatabaseError as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise CommandError(
            f"The site's database says: {first}. `manage.py pgperf doctor` looks closer."
        ) from error
    except KeyboardInterrupt:
        raise CommandError("Interrupted.", returncode=130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
