"""`pgperf run`: in this process, or through Celery and waiting for it."""

import json
import os
import signal
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from dataclasses import fields
from time import sleep
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.urls import reverse

from pgperf.cli.progress_bar import Bar
from pgperf.cli.result import report
from pgperf.conf import get_settings
from pgperf.core import limits
from pgperf.core.client_environment import DEFAULT
from pgperf.core.exceptions import PgperfError, RunConflict, RunWaits
from pgperf.core.records import CONNECTION_MODES, IDLES, PLACEMENTS, Definition, LeftOut
from pgperf.models import Benchmark, Database, Run
from pgperf.reports.preview import missing_layers, time_text
from pgperf.reports.run_json import TERMINAL, live_workers, progress_json, rows_json
from pgperf.reports.run_names import named
from pgperf.reports.run_rows import read
from pgperf.runner.plan import make_plan
from pgperf.runs import state
from pgperf.runs.definitions import Overrides, starting_here
from pgperf.worker.execution import perform, skipped_layers

#: The same interval as the run page: frequent polling would disturb the run.
_POLL_SECONDS = 2.0
_TURN_SECONDS = 1.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="a benchmark, as `pgperf list` names it")
    parser.add_argument(
        "--database", default="", metavar="DB", help="default: the benchmark's, or the only one"
    )
    add_start_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="a short run with wider intervals")
    parser.add_argument("--workloads", type=_names, metavar="A,B", help="these of the benchmark's workloads")
    parser.add_argument(
        "--layers", type=_names, metavar="A,B", help="layers to run, as `pgperf list` names them"
    )
    parser.add_argument("--routes", type=_names, metavar="A,B", help="routes of the database to use")
    parser.add_argument("--clients", type=_numbers, metavar="1,8", help=limits.CLIENTS.option_help)
    parser.add_argument(
        "--connection-modes",
        type=_names,
        metavar="A,B",
        help=f"when clients connect: {', '.join(CONNECTION_MODES)}; the first is the baseline",
    )
    parser.add_argument(
        "--environments",
        type=_names,
        metavar="A,B",
        help="names of PGPERF['ENVIRONMENTS'], and default for the worker's own; the first is the baseline",
    )
    parser.add_argument(
        "--rates",
        type=_rates,
        metavar="closed,500",
        help="operations per second of all clients of a variant together; closed: as many as they can",
    )
    parser.add_argument(
        "--load-hosts",
        type=_numbers,
        metavar="0,4",
        help="how many load hosts make the load together; 0: the worker that performs the run",
    )
    parser.add_argument(
        "--load-host-names", type=_names, metavar="A,B", help="which of them; default: those that are free"
    )
    parser.add_argument(
        "--placement", choices=PLACEMENTS, help="which CPUs the clients and the server run on"
    )
    parser.add_argument("--idle", choices=IDLES, help="awake keeps the CPUs from sleeping during the run")
    for limit in limits.BY_NAME.values():
        optional: dict[str, Any] = {} if limit.usual is None else {"nargs": "?", "const": limit.usual}
        parser.add_argument(
            f"--{limit.name.replace('_', '-')}",
            type=type(limit.default),
            metavar="N",
            help=limit.option_help.replace("%", "%%"),  # argparse fills in what it knows
            **optional,
        )


def add_start_arguments(parser: ArgumentParser) -> None:
    """Those of every command that starts a run."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--queue", action="store_true", help="run in a Celery worker and wait for it")
    parser.add_argument(
        "--database-name",
        default="",
        metavar="DB",
        help="repeats the name of a production database to allow the run",
    )


def run(options: dict[str, Any], out: OutputWrapper, err: OutputWrapper) -> None:
    """Run the benchmark and print the result. Raises CommandError unless the run is done."""
    benchmark = find_benchmark(options["name"])
    database = find_database(options["database"], benchmark)
    asked = state.request(
        benchmark,
        database,
        _overrides(options),
        foreground=not options["queue"],
        confirmed=typed_name(database, options["database_name"], err),
    )
    carry_out(asked, options, out, err)


def carry_out(asked: Run, options: dict[str, Any], out: OutputWrapper, err: OutputWrapper) -> None:
    """Say how long the run takes, wait for its end and print it. Raises CommandError unless it is
    done.
    """
    bar = Bar(err)
    _say_time(asked, bar)
    try:
        ended = _through_celery(asked, bar) if options["queue"] else _here(asked, bar)
    except Run.DoesNotExist:
        raise CommandError(f"{asked} was deleted before it had ended. Start it again.") from None
    finally:
        bar.close()
    _print(ended, out, as_json=options["json"])
    if ended.status != Run.Status.DONE:
        raise CommandError(f"{ended}: {ended.get_status_display()}. {named(ended.error)}")


def _say_time(asked: Run, bar: Bar) -> None:
    """Nothing of a run that has no plan: its own error says why."""
    with suppress(PgperfError):
        definition = starting_here(Definition.from_json(asked.definition))
        plan = make_plan(definition, _left_out(asked, definition))
        bar.line(f"{asked} takes {time_text(plan)}.")


def _left_out(asked: Run, definition: Definition) -> list[LeftOut]:
    """What cannot run where the run takes place, and so takes no time."""
    if asked.queue:
        missing = missing_layers(definition.layers, live_workers())
        only = DEFAULT if definition.has_environments else ""
        return [LeftOut(layer=layer, environment=only, reason=reason) for layer, reason in missing.items()]
    settings = get_settings()
    return skipped_layers(definition, settings.BUILD_DIR, settings.programs)


def find_benchmark(name: str) -> Benchmark:
    """Raises CommandError that lists what there is."""
    found = Benchmark.objects.select_related("database").filter(name=name).first()
    if found is None:
        there = _listed(Benchmark.objects.values_list("name", flat=True), "none: run `manage.py migrate`")
        raise CommandError(f"There is no benchmark {name!r}; there is {there}.")
    return found


def find_database(name: str, benchmark: Benchmark) -> Database:
    """The database with that name, else the benchmark's usual one, else the only one."""
    everyone = list(Database.objects.all())
    there = _listed([database.name for database in everyone], "none: add one in the admin, with its targets")
    if name:
        found = next((database for database in everyone if database.name == name), None)
    else:
        found = benchmark.database or (everyone[0] if len(everyone) == 1 else None)
    if found is None:
        problem = f"There is no database {name!r}" if name else "Say which database with --database"
        raise CommandError(f"{problem}; there is {there}.")
    return found


def typed_name(database: Database, given: str, err: OutputWrapper) -> str:
    """The name typed for a production database, prompted for on a terminal; "" for any other
    database.

    Raises CommandError if it is not the database's name.
    """
    if not database.production:
        return ""
    if not given and sys.stdin.isatty():
        err.write(f"{database} is a production database. Type its name to go on: ", ending="")
        err.flush()
        given = sys.stdin.readline().strip()
    if given != database.name:
        raise CommandError(
            f"{database} is a production database: repeat its name with --database-name {database}."
        )
    return given


def _here(asked: Run, bar: Bar) -> Run:
    """Perform it in this process, when its turn comes. Ctrl-C and SIGTERM cancel."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _take_turn(asked, bar)
    except KeyboardInterrupt:
        _cancel(asked)
    finally:
        signal.signal(signal.SIGTERM, previous)
    asked.refresh_from_db()
    return asked


def _take_turn(asked: Run, bar: Bar) -> None:
    worker = f"pgperf run, {socket.gethostname()}, process {os.getpid()}"
    while True:
        try:
            perform(asked.pk, worker, bar)
        except RunWaits as reason:
            bar.say(named(str(reason)))
            state.stay_queued(asked)
            sleep(_TURN_SECONDS)
        except RunConflict:  # cancelled, or taken by another process; the row has the state
            return
        else:
            return


def _through_celery(asked: Run, bar: Bar) -> Run:
    """Wait for a worker to end it.

    The first Ctrl-C asks the run to stop, a second one leaves it alone.
    """
    try:
        _await_end(asked, bar)
    except KeyboardInterrupt:
        _cancel(asked)
        bar.say("Cancelling; Ctrl-C again leaves at once.")
        _await_end(asked, bar)
    return asked


def _await_end(asked: Run, bar: Bar) -> None:
    while True:
        asked.refresh_from_db()
        progress = progress_json(asked)
        if progress["terminal"]:
            return
        if progress["status"] == Run.Status.RUNNING:
            bar.progress(progress["progress"], progress["message"])
        else:
            bar.say(" ".join(filter(None, (progress["message"], progress["hint"]))))
        sleep(_POLL_SECONDS)


def _cancel(asked: Run) -> None:
    try:
        state.request_cancel(asked)
    except RunConflict:  # it has ended meanwhile
        asked.refresh_from_db()


def _print(ended: Run, out: OutputWrapper, *, as_json: bool) -> None:
    rows = read(ended)
    if as_json:
        out.write(json.dumps(rows_json(rows), indent=2))
    elif ended.status in TERMINAL and (rows.variants or ended.status == Run.Status.DONE):
        out.write(report(rows))
        out.write(_page(ended))


def _page(run: Run) -> str:
    """Where the run's page is; nothing in a site without pgperf's pages, or whose URLs cannot be
    imported.
    """
    try:
        path = reverse("admin:pgperf_run_change", args=[run.pk])
    except Exception:  # as wide as what a urls.py can raise; Django's own checks tell of it
        return ""
    return f"The page of this run on your site: {path}"


def _overrides(options: dict[str, Any]) -> Overrides:
    return Overrides(**{each.name: options[each.name] for each in fields(Overrides)})


def _names(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _numbers(value: str) -> list[int]:
    try:
        return [int(item) for item in value.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{value!r} is not a list of whole numbers such as 1,8") from None


def _rates(value: str) -> list[float | None]:
    try:
        return [None if item.strip() == "closed" else float(item) for item in value.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{value!r} is not a list of rates such as closed,500") from None


def _listed(names: Any, otherwise: str) -> str:
    return ", ".join(names) or otherwise
