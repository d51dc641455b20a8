"""Separate clocks on one page: the client's, the web server's own log, and the sum of the layers.

    python -m benchmarks.page_clocks [--quick] [--rounds N] [--requests N] [--only SERVER]

One client requests the list of books, and in turn a page of the same length that costs nothing,
from a second server of the same kind. Each server writes its own time of every request into its
access log: gunicorn (`%(D)s`, from the moment at which a worker has read the request) and nginx
before gunicorn (`$request_time`, in steps of 1 ms).

1. *The log.* What the client measures for the empty page beyond that server's log is connection,
   way and client. With the logged time of the real page it must give the time that the client
   measures for the real page.
2. *The layers.* A run of the benchmark `page` measures the view in process beside the layer http.
   The view and the whole of the empty page must give the time of the layer http. Both do the same
   work: the server keeps its connection to PostgreSQL as the view does, and has no objects of its
   start to collect (`gc.freeze`), as pgperf's clients have none. Client and servers share one CPU,
   because two may differ in speed. Only one of them works at a time.

The bar: each quotient of measured and expected time is within 0.95 to 1.05. `--quick`: few requests,
within 0.5 to 2.
"""

import argparse
import math
import os
import random
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import web_clients
from benchmarks.example_site import ROOT, run_benchmark
from benchmarks.options import ScriptParser, run_script
from benchmarks.published import number
from benchmarks.published_figures import ratio, variant
from example.stack import gunicorn, nginx
from example.stack.part import Part
from example.stack.place import Place
from example.stack.stack import SERVERS, Stack
from example.stack.web_steps import variable as url_of
from pgperf.analysis.paired_statistics import log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import placement

PATH = "/books/?page=2"
#: The step whose own servers the run of the layers uses: nginx before gunicorn, whose connections
#: to PostgreSQL are kept.
STEP = "web_conn_kept"
LOW, HIGH = 0.95, 1.05
QUICK_LOW, QUICK_HIGH = 0.5, 2.0
CONFIDENCE = 0.95
_LEAD_IN_OPS = 5
_LOG_TIMEOUT_S = 10.0
_LAYERS_RUN = (
    "page", "--database", "demo", "--layers=django_view,http", f"--routes=tcp,{STEP}", "--precision=1",
    "--budget-s=420",
)  # fmt: skip
_QUICK_RUN = ("--blocks=2", "--rounds=2", "--slice-ms=100", "--diagnostic-ms=0")


@dataclass(frozen=True)
class AccessLog:
    """A server's log with one number in each line. `unit_us`: how many µs it counts."""

    path: Path
    unit_us: float

    def lines(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []

    def await_lines(self, count: int) -> list[str]:
        """The lines, when there are so many. The script exits if they do not come."""
        deadline = time.monotonic() + _LOG_TIMEOUT_S
        while len(found := self.lines()) < count:
            if time.monotonic() > deadline:
                raise SystemExit(f"verdict: cannot measure: {self.path} has {len(found)} of {count} lines")
            time.sleep(0.01)
        return found

    def last_us(self, total: int, count: int) -> "np.ndarray":
        """The times of the last `count` requests of `total`, µs."""
        return np.array(self.await_lines(total)[-count:], dtype=float) * self.unit_us


@dataclass
class Page:
    """A served page with its log: mean times of each slice, µs, by the client and by the log."""

    log: AccessLog
    group: ClientGroup
    client_us: list[float] = field(default_factory=list)
    logged_us: list[float] = field(default_factory=list)

    def slice(self, count: int) -> None:
        """Request the page so many times, and read both clocks."""
        before = len(self.log.lines())
        recorded = self.group.run(protocol.Slice(seq=1, lead_in_ops=_LEAD_IN_OPS, lead_in_ns=0, count=count))
        if failed := recorded.replies[0].errors:
            raise SystemExit(f"verdict: cannot measure: requests failed: {failed}")
        self.client_us.append(float(recorded.durations[0].mean()) / 1000)
        self.logged_us.append(float(self.log.last_us(before + _LEAD_IN_OPS + count, count).mean()))

    def settle(self) -> None:
        """Wait until the log has the requests of the warm-up."""
        seen = -1
        while seen != (seen := len(self.log.lines())):
            time.sleep(0.2)


@dataclass(frozen=True)
class Agreement:
    """The measured time over the expected one, with its interval; both as medians of slices, µs."""

    title: str
    measured_us: float
    expected_us: float
    ratio: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, title: str, measured: Sequence[float], expected: Sequence[float]) -> "Agreement":
        one, other = np.array(measured), np.array(expected)
        found = signed_rank_interval(log_ratios(one, other), CONFIDENCE).exp()
        return cls(title, float(np.median(one)), float(np.median(other)), found.centre, found.low, found.high)

    def __str__(self) -> str:
        interval = f" [{self.low:.3f}, {self.high:.3f}]" if self.low and self.high else ""
        return (
            f"{self.title:<44} measured {self.measured_us:>9,.0f} µs, expected {self.expected_us:>9,.0f} µs: "
            f"{self.ratio:.3f}{interval}"
        )


def main() -> int:
    options = _options()
    low, high = (QUICK_LOW, QUICK_HIGH) if options.quick else (LOW, HIGH)
    cpu, others = web_clients.processors()
    found = []
    with Stack(ROOT / ".stack" / "page_clocks", [*SERVERS, STEP], keep=False) as stack:
        web_clients.place(stack.running, others)
        for name in [options.only] if options.only else SERVED:
            with _pages(stack, name, cpu, others) as (real, empty):
                _measure(real, empty, options)
            found += [_of_log(name, real, empty)]
            _show(found[-1], real, empty)
        if options.only != "gunicorn":
            found += [_of_layers(stack, options, others[0])]
            print(found[-1], flush=True)
    passed = all(low <= each.ratio <= high for each in found)
    print(f"verdict: the bar {'holds' if passed else 'does NOT hold'} ({low} to {high})")
    return 0 if passed else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slices of each page", full=25, quick=7)
    parser.add_size("--requests", "requests of a slice", full=100, quick=20)
    parser.add_argument("--only", choices=SERVED, help="this server alone")
    return parser.options()


def _measure(real: Page, empty: Page, options: argparse.Namespace) -> None:
    for page in (real, empty):
        page.settle()
    for _ in range(options.rounds):
        for page in random.sample([real, empty], 2):
            page.slice(options.requests)


def _of_log(name: str, real: Page, empty: Page) -> Agreement:
    """The real page: its log, and what the empty page takes beyond its own."""
    beside = np.array(empty.client_us) - np.array(empty.logged_us)
    return Agreement.of(f"{name}: by its log", real.client_us, list(np.array(real.logged_us) + beside))


def _of_layers(stack: Stack, options: argparse.Namespace, cpu: int) -> Agreement:
    """The layer http of a run against its view in process and the empty page, all on this CPU."""
    with _on_one_cpu(stack, cpu), patch.dict(os.environ, {"EXAMPLE_GC_FREEZE": "1"}):
        empty_us = _empty_us(stack, options, cpu)
        words = _QUICK_RUN if options.quick else ()
        run = run_benchmark(stack.env, *_LAYERS_RUN, *words, control=stack.control)
    http, view = (variant(run, layer=layer) for layer in ("http", "django_view"))
    if not (http and view):
        raise SystemExit("verdict: cannot measure: the run has no layer http or no view")
    _show_cpu(http["cpu_us_per_op"], view["cpu_us_per_op"])
    found, expected_us = ratio(run, http, view), view["us_per_op"] + empty_us
    centre, low, high = (
        None if each is None else each * view["us_per_op"] / expected_us
        for each in (found.centre, found.low, found.high)
    )
    return Agreement("nginx: by the layers", http["us_per_op"], expected_us, centre or math.nan, low, high)


def _show_cpu(http: Mapping[str, Any], view: Mapping[str, Any]) -> None:
    """Where a difference is: in the process that runs the view, or in PostgreSQL. CPU times, µs."""
    user, system = view["client_user"], view["client_sys"]
    in_process = None if user is None or system is None else user + system
    print(
        f"  CPU per request: the view in process {number(in_process, 0)} µs, in the web server"
        f" {number(http['web'], 0)} µs; PostgreSQL for them {number(view['server'], 0)} and"
        f" {number(http['server'], 0)} µs",
        flush=True,
    )


@contextmanager
def _on_one_cpu(stack: Stack, cpu: int) -> Iterator[None]:
    """All parts, this process with its threads, and what they start."""
    before = frozenset(os.sched_getaffinity(0))
    placement.pin(os.getpid(), frozenset({cpu}))
    web_clients.place(stack.running, [cpu])
    try:
        yield
    finally:
        placement.pin(os.getpid(), before)


def _empty_us(stack: Stack, options: argparse.Namespace, cpu: int) -> float:
    """The time of the empty page over a kept connection: the median of slices."""
    size = {"PAGE_BYTES": _length(stack.env[url_of(STEP)])}
    with (
        _serving(stack, "nginx", "empty", "benchmarks.empty_page", [cpu], size) as served,
        web_clients.connected(served.url, PATH, "persistent", 1, cpu) as group,
    ):
        page = Page(served.log, group)
        page.settle()
        for _ in range(options.rounds):
            page.slice(options.requests)
    return float(np.median(page.client_us))


def _show(found: Agreement, real: Page, empty: Page) -> None:
    logged, beside = np.median(real.logged_us), np.median(empty.client_us) - np.median(empty.logged_us)
    print(found)
    print(f"  log {logged:,.0f} µs, connection, way and client {beside:,.0f} µs", flush=True)


# ---- servers with access logs ----


@contextmanager
def _pages(stack: Stack, name: str, cpu: int, others: Sequence[int]) -> Iterator[tuple[Page, Page]]:
    """The real page and the empty one, each from a server of its own, with a connected client."""
    with ExitStack() as opened:
        served = opened.enter_context(_serving(stack, name, "real", "example.wsgi", others))
        size = {"PAGE_BYTES": _length(served.url)}
        empty = opened.enter_context(_serving(stack, name, "empty", "benchmarks.empty_page", others, size))
        groups = [
            opened.enter_context(web_clients.connected(each.url, PATH, "per_operation", 1, cpu))
            for each in (served, empty)
        ]
        yield Page(served.log, groups[0]), Page(empty.log, groups[1])


def _length(url: str) -> str:
    """Of the real page, bytes."""
    return str(len(urllib.request.urlopen(url + PATH, timeout=60).read()))


@dataclass(frozen=True)
class Served:
    """The address of a started server, and its access log."""

    url: str
    log: AccessLog


@contextmanager
def _serving(
    stack: Stack,
    name: str,
    page: str,
    module: str,
    cpus: Sequence[int],
    variables: dict[str, str] | None = None,
) -> Iterator[Served]:
    """One of SERVED with this application, on its own ports."""
    own = {"DJANGO_SETTINGS_MODULE": "example.web_settings", **(variables or {})}
    env = {**os.environ, **stack.env, **own}
    parts, served = SERVED[name](stack.place, page, module, env)
    try:
        for part in parts:
            part.start()
        web_clients.place(parts, cpus)
        yield served
    finally:
        for part in reversed(parts):
            part.stop()


def _gunicorn(place: Place, page: str, module: str, env: dict[str, str]) -> tuple[list[Part], Served]:
    port, log = web_clients.free_port(), place.own / f"{page}-access.log"
    options = [f"--access-logfile={log}", "--access-logformat=%(D)s"]
    part = _application(place, page, module, env, port, options)
    return [part], Served(f"http://127.0.0.1:{port}", AccessLog(log, 1.0))


def _nginx(place: Place, page: str, module: str, env: dict[str, str]) -> tuple[list[Part], Served]:
    application, port = web_clients.free_port(), web_clients.free_port()
    behind = _application(place, page, module, env, application, [])
    name = {"real": "web_nginx", "empty": "web_nginx_twin"}[page]
    part = nginx.part(place, name, port, application)
    log, configuration = place.directory(name) / "access.log", place.directory(name) / "nginx.conf"
    written = f"log_format seconds $request_time; access_log {log} seconds;"
    configuration.write_text(configuration.read_text().replace("access_log off;", written))
    return [behind, part], Served(f"http://127.0.0.1:{port}", AccessLog(log, 1e6))


#: By name: the parts of the server and where it is served.
SERVED: dict[str, Callable[[Place, str, str, dict[str, str]], tuple[list[Part], Served]]] = {
    "gunicorn": _gunicorn,
    "nginx": _nginx,
}


def _application(
    place: Place, page: str, module: str, env: dict[str, str], port: int, options: Sequence[str]
) -> Part:
    part = gunicorn.part(place, f"clocks_{page}", env, port)
    program, _wsgi, *rest = part.argv
    return replace(part, argv=[program, module, *rest, *options])


if __name__ == "__main__":
    run_script(main)
