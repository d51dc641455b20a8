"""`manage.py pgperf`: registers the subcommands, which pgperf.cli implements."""

import builtins
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from pgperf.cli import (
    add,
    build,
    cancel,
    compare,
    confirm,
    distance,
    doctor,
    due,
    export,
    history,
    list,
    pause,
    prune,
    reconcile,
    run,
    schedules,
    tune,
    uninstall,
)
from pgperf.cli.output import Lasting, tolerate_any_locale
from pgperf.core.exceptions import PgperfError
from pgperf.core.printable import first_line


class Command(BaseCommand):
    help = "Measures where the time of a database call goes."
    requires_system_checks = []  # doctor must work if checks fail; run makes its own checks

    def __init__(self, stdout: Any = None, stderr: Any = None, **more: Any) -> None:
        out, err = (cast(TextIO, Lasting(stream)) for stream in (stdout or sys.stdout, stderr or sys.stderr))
        super().__init__(out, err, **more)

    def run_from_argv(self, argv: builtins.list[str]) -> None:
        tolerate_any_locale(sys.stdout)  # `--help` writes there, too
        super().run_from_argv(argv)

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")

        def new(name: str, help: str) -> ArgumentParser:
            """A subcommand, which `--help` describes in the same words as the list of subcommands."""
            return commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")

        self._register(
            new("list", help="list benchmarks, targets and layers"), self._list, list.add_arguments
        )
        self._register(
            new("add", help="add a database by its alias in DATABASES"), self._add, add.add_arguments
        )
        self._register(new("run", help="run a benchmark"), self._run, run.add_arguments)
        self._register(new("export", help="print the results of a run"), self._export, export.add_arguments)
        self._register(
            new("compare", help="compare two to eight runs, or runs with a baseline"),
            self._compare,
            compare.add_arguments,
        )
        self._register(
            new("history", help="show a benchmark's results over its runs"),
            self._history,
            history.add_arguments,
        )
        self._register(
            new("confirm", help="test a verdict by another run"), self._confirm, confirm.add_arguments
        )
        self._register(
            new("pause", help="cancel running runs and start no new ones"), self._pause, pause.add_arguments
        )
        self._register(
            new("schedules", help="list when benchmarks run by themselves"),
            self._schedules,
            schedules.add_arguments,
        )
        self._register(new("due", help="start what is due by its schedule"), self._due, due.add_arguments)
        self._register(
            new("cancel", help="cancel a queued or running run"), self._cancel, cancel.add_arguments
        )
        self._register(new("tune", help="advise on a server's settings"), self._tune, tune.add_arguments)
        self._register(new("doctor", help="check the installation and print hints"), self._doctor)
        self._register(
            new("distance", help="simulate a longer round trip to a database"),
            self._distance,
            distance.add_arguments,
        )
        self._register(new("build", help="compile the C client"), self._build, build.add_arguments)
        self._register(new("reconcile", help="mark lost runs and send queued runs again"), self._reconcile)
        self._register(
            new("prune", help="delete old runs, or the fixture tables"), self._prune, prune.add_arguments
        )
        self._register(
            new("uninstall", help="remove all that pgperf has made in the site's databases"),
            self._uninstall,
            uninstall.add_arguments,
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with compare.errors_apart(options.get("fail_on")), _no_traceback():
            _check_text(options)
            options["action"](options)
            self.stdout.flush()  # what fails here has a sentence, unlike at the end of the interpreter

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

    def _history(self, options: dict[str, Any]) -> None:
        history.run(options, self.stdout)

    def _confirm(self, options: dict[str, Any]) -> None:
        confirm.run(options, self.stdout, self.stderr)

    def _pause(self, options: dict[str, Any]) -> None:
        pause.run(options, self.stdout)

    def _schedules(self, options: dict[str, Any]) -> None:
        schedules.run(options, self.stdout)

    def _due(self, options: dict[str, Any]) -> None:
        due.run(options, self.stdout)

    def _cancel(self, options: dict[str, Any]) -> None:
        cancel.run(options, self.stdout)

    def _tune(self, options: dict[str, Any]) -> None:
        tune.run(options, self.stdout)

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

    def _uninstall(self, options: dict[str, Any]) -> None:
        uninstall.run(options, self.stdout)

    @staticmethod
    def _register(
        parser: ArgumentParser,
        action: Callable[[dict[str, Any]], None],
        add_arguments: Callable[[ArgumentParser], None] | None = None,
    ) -> None:
        parser.set_defaults(action=action)
        if add_arguments:
            add_arguments(parser)


def _check_text(options: Mapping[str, Any]) -> None:
    """Raises CommandError for a word whose bytes the locale cannot decode: no database stores it."""
    for name, value in options.items():
        for word in value if isinstance(value, Sequence) and not isinstance(value, str) else (value,):
            if isinstance(word, str) and any("\ud800" <= sign <= "\udfff" for sign in word):
                raise CommandError(
                    f"{name}: the locale cannot read {word!r}. Write it in UTF-8, with LC_ALL=C.UTF-8."
                )


@contextmanager
def _no_traceback() -> Iterator[None]:
    """Turn errors into a one-line CommandError."""
    try:
        yield
    except (PgperfError, ImproperlyConfigured) as error:
        raise CommandError(str(error)) from error
    except DatabaseError as error:
        raise CommandError(
            f"The site's database reports: {first_line(error)}. Run `manage.py pgperf doctor` for details."
        ) from error
    except KeyboardInterrupt:
        raise CommandError("Interrupted.", returncode=130) from None
    except OSError as error:
        of = f", {error.filename}" if error.filename else ""
        raise CommandError(
            f"The system reports: {error.strerror or str(error) or type(error).__name__}{of}."
        ) from error
