"""The Python harness of MagicStack's suite for drivers: its text, with the changes that a comparison
asks for, and one measurement by it.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.driver_cells import Cell
from pgperf.catalog.driver_suite import DRIVER_SUITE_PUBLISHED
from pgperf.core import protocol
from pgperf.core.records import Route
from pgperf.runner.cpu import placement

#: Our names of drivers -> the harness's.
NAMES = {
    "psycopg2": "psycopg2",
    "psycopg": "psycopg3",
    "psycopg_async": "psycopg3-async",
    "asyncpg": "asyncpg",
}
#: The harness fails at an operation that takes longer than this, s.
_LONGEST_S = 20
_HASH_DIGITS = 12
_OLD_LINE, _NEW_LINE = "loop = asyncio.get_event_loop()", "loop = asyncio.new_event_loop()"
_UVLOOP, _ASYNCIO = "uvloop.EventLoopPolicy()", "asyncio.DefaultEventLoopPolicy()"
#: Runs the harness from its text on stdin; argv[1] is the file that it is from.
_LAUNCHER = (
    "import sys; sys.argv = sys.argv[1:];"
    " exec(compile(sys.stdin.read(), sys.argv[0], 'exec'), {'__name__': '__main__', '__file__': sys.argv[0]})"
)
_LOOKUP = "    return len(await conn.fetch(query, *args))\n"
_KEPT = """    statement = _KEPT.get(conn)
    if statement is None:
        statement = _KEPT[conn] = await conn.prepare(query)
    return len(await statement.fetch(*args))
"""
_MEASURES = "            results, duration = await _do_run(args.duration)\n"
_FREEZES = "            import gc; gc.collect(); gc.freeze()\n"
#: The clock, the extremes and the histogram around one call of the driver.
_BOOKKEEPING = re.compile(
    r" {8}req_start = .*\n(?P<call> {8}rows \+= .*\n) {8}req_time = (?:.*\n)*? {8}latency_stats\[.*\n"
)


@dataclass(frozen=True)
class Slot:
    """One measurement of one side. Rows are of one query."""

    per_s: float
    rows: float | None


@dataclass(frozen=True)
class Harness:
    """The suite's Python harness and how it reaches the server."""

    folder: Path
    route: Route
    text: str

    def measure(self, cell: Cell, seconds: int, warm_up: int, cpus: frozenset[int]) -> Slot:
        """One run of a fresh process on these CPUs."""
        argv = [sys.executable, "-W", "ignore", "-c", _LAUNCHER, *self._arguments(cell, seconds, warm_up)]
        with subprocess.Popen(
            argv, env=self._environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            placement.pin(process.pid, cpus)
            output, errors = process.communicate(self.text)
        if process.returncode:
            raise SystemExit(f"verdict: cannot measure: the suite failed at {cell}:\n{errors}")
        return slot_of(json.loads(output))

    def _arguments(self, cell: Cell, seconds: int, warm_up: int) -> list[str]:
        return [
            str(file_of(self.folder)),
            f"--pghost={self.route.host}",
            f"--pgport={self.route.port}",
            f"--pguser={self.route.user}",
            f"--concurrency={DRIVER_SUITE_PUBLISHED.workers}",
            f"--duration={seconds}",
            f"--warmup-time={warm_up}",
            f"--timeout={_LONGEST_S}",
            "--output-format=json",
            NAMES[cell.driver],
            str(query_file(self.folder, cell.query)),
        ]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not protocol.is_libpq_variable(name)}
        login = {"PGPASSWORD": self.route.password, "PGDATABASE": self.route.dbname, "PGTZ": "UTC"}
        return {**kept, **login}


def file_of(folder: Path) -> Path:
    return folder.resolve() / "_python" / "pgbench_python.py"


def digest(folder: Path) -> str:
    """The first digits of the SHA-256 of the harness's file."""
    return sha256(file_of(folder).read_bytes()).hexdigest()[:_HASH_DIGITS]


def query_file(folder: Path, query: str) -> Path:
    """The suite's file of a query. Raises SystemExit if it has none."""
    found = sorted((folder.resolve() / "queries").glob(f"?-{query}.json"))
    if not found:
        raise SystemExit(f"verdict: cannot measure: {folder} has no query {query}")
    return found[0]


def changed(text: str, loop: str, without: Sequence[str] = ()) -> str:
    """The harness's text with a new event loop, of uvloop or of asyncio, and without these causes of a
    difference (keys of CAUSES).

    Raises SystemExit if it is not the text that is known.
    """
    if (_OLD_LINE not in text and _NEW_LINE not in text) or _UVLOOP not in text:
        raise SystemExit("verdict: cannot measure: this version of the suite gets its event loop differently")
    text = text.replace(_OLD_LINE, _NEW_LINE)
    text = text.replace(_UVLOOP, _ASYNCIO) if loop == "asyncio" else text
    for cause in without:
        before, text = text, CAUSES[cause](text)
        if text == before:
            raise SystemExit(f"verdict: cannot measure: this version of the suite has no {cause} to remove")
    return text


def _with_kept_statements(text: str) -> str:
    kept = text.replace(_LOOKUP, _KEPT)
    return text if kept == text else f"_KEPT = {{}}\n{kept}"


def _with_frozen_garbage(text: str) -> str:
    return text.replace(_MEASURES, _FREEZES + _MEASURES)


def _without_bookkeeping(text: str) -> str:
    return _BOOKKEEPING.sub(lambda found: found["call"], text)


#: What the harness does for a query and pgperf does not -> the text without it.
CAUSES: Mapping[str, Callable[[str], str]] = {
    "lookup": _with_kept_statements,
    "garbage": _with_frozen_garbage,
    "bookkeeping": _without_bookkeeping,
}


def slot_of(report: Mapping[str, Any]) -> Slot:
    """What the harness reports, by its own formula: queries over the time to the last worker's end."""
    queries = report["queries"]
    return Slot(queries / report["duration"], report["rows"] / queries if queries else None)
