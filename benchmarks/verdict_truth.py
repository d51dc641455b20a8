"""The right words of benchmarks.verdict_matrix, found without pgperf: what shortens the response more?

    python -m benchmarks.verdict_matrix --truth [--columns all] [--cases a,b] [--seed 1] [--out FILE]

Plain clients (benchmarks.plain_operation) run the operation of a case on the CPUs that pgperf gives
to clients and server. In turns of a fraction of a second they run it as it is, without its
bottleneck and without its disturbance. The response is clients × time / operations, and of each
state the median of the turns counts. Whichever removal saves more time names the cell. Where the two
savings are within 10 % of each other and would give different words, the cell is undecided. The plain
client of libpq is psycopg's bare wrapper, which takes more CPU time than the one in C.

Without its bottleneck: the client does not spin; libpq instead of the ORM; TCP instead of the pool
or the distance; `SELECT 1` instead of the heavy query; the same sleep without the lock.

Replayed steal takes no time, so there is nothing to remove. A hypervisor that stole that share of all
CPUs would lengthen the response by that share times the CPUs at most. So the bottleneck names the
cell where its removal saves more.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks import json_lines
from benchmarks.plain_operation import Operation
from benchmarks.quota_group import quota_group, times_us
from benchmarks.rival import halves, rivals
from benchmarks.verdict_answers import TRUTH, Key
from benchmarks.verdict_cells import DESIGNS, QUOTA, RIVALS, STOLEN, Design
from benchmarks.verdict_disturbances import rival_cpus
from pgperf.core.records import Route
from pgperf.runner.processes import pooler_process

#: Opens the disturbance for a turn.
Disturb = Callable[[], AbstractContextManager[object]]
_TURNS, _TURN_S = 5, 0.2
#: A turn under a quota has room for so many of its periods.
_PERIODS = 4
#: Savings that are nearer to each other, as a share of the larger one, decide nothing.
MARGIN = 0.10
UNDECIDED = "undecided"


class CannotMeasure(Exception):
    """A cell could not be measured. The message says why."""


@dataclass(frozen=True)
class Load:
    """Clients that run an operation over a route, one connection each."""

    operation: Operation
    route: Route
    clients: int = 1


@dataclass(frozen=True)
class Removal:
    """Response times in µs: of the cell as it is, without its bottleneck, without its disturbance."""

    whole: float
    without_bottleneck: float
    without_disturbance: float

    @property
    def margin(self) -> float:
        """How much more time the bottleneck's removal saves than that of the disturbance, as a share
        of the larger saving; below 0 if it saves less. 0 if neither saves any.
        """
        own, other = self.whole - self.without_bottleneck, self.whole - self.without_disturbance
        return (own - other) / max(own, other) if max(own, other) > 0 else 0.0


@dataclass(frozen=True)
class Truth:
    """The word of a cell by its removals, beside the word that is fixed."""

    case: str
    column: str
    seed: int
    removal: Removal
    word: str
    fixed: str

    @property
    def agrees(self) -> bool:
        return self.word == self.fixed

    def __str__(self) -> str:
        found = self.removal
        times = (f"{us:,.0f}" for us in (found.whole, found.without_bottleneck, found.without_disturbance))
        cells = (self.case, self.column, str(self.seed), *times, f"{100 * found.margin:+.0f} %")
        return f"| {' | '.join((*cells, self.word, self.fixed))} |"


@dataclass
class Clients:
    """The connected clients of a load."""

    load: Load
    processes: list[subprocess.Popen[str]]
    backends: set[int] = field(default_factory=set)

    def pids(self, role: str) -> set[int]:
        return {each.pid for each in self.processes} if role == "client" else self.backends

    def response_us(self, seconds: float) -> float:
        for each in self.processes:
            _tell(each, str(seconds))
        return self.load.clients / sum(float(_line(each)) for each in self.processes) * 1e6


@contextmanager
def connected(load: Load) -> Iterator[Clients]:
    """Its clients, on the clients' CPUs; their backends are on the server's."""
    own, far = halves()
    route = load.route
    login = {"host": route.host, "port": str(route.port), "dbname": route.dbname, "user": route.user,
             "password": route.password}  # fmt: skip
    request = json.dumps({"operation": asdict(load.operation), "login": login})
    with ExitStack() as stack:
        found = Clients(load, [stack.enter_context(_started()) for _ in range(load.clients)])
        for each in found.processes:
            _tell(each, request)
        found.backends = {int(_line(each)) for each in found.processes}
        for pid in found.backends:
            os.sched_setaffinity(pid, far)
        for each in found.processes:
            os.sched_setaffinity(each.pid, own)
        yield found


def removal(whole: Clients, other: Clients, disturb: Disturb, seconds: float = _TURN_S) -> Removal:
    """Turns of the three states. `other`: the clients without the bottleneck."""
    states = ((whole, disturb), (other, disturb), (whole, nullcontext))
    found: list[list[float]] = [[] for _ in states]
    for _turn in range(_TURNS):
        for at in random.sample(range(len(states)), len(states)):
            clients, open_ = states[at]
            with open_():
                found[at].append(clients.response_us(seconds))
    return Removal(*map(median, found))


def measured(
    case: str, column: str, load: Load, routes: Mapping[str, Route], competitors: Disturb
) -> Removal:
    """A cell by plain timing. `competitors`: those that belong to the case itself."""
    _pin_pooler(load.route)
    with connected(load) as whole, connected(relieved(case, load, routes)) as other:
        if column in RIVALS:
            return removal(whole, other, lambda: _beside(competitors, column, DESIGNS[case]))
        if column == QUOTA:
            return _throttled(whole, other, DESIGNS[case], competitors)
        found = removal(whole, other, competitors)
    stolen = STOLEN.get(column, 0.0) * (os.cpu_count() or 1)
    return replace(found, without_disturbance=found.without_disturbance * (1 - stolen))


def lines(found: Sequence[Truth]) -> Iterator[str]:
    """A Markdown table of response times in µs, and how many words agree."""
    heads = ("bottleneck", "column", "seed", "as it is, µs", "without bottleneck", "without disturbance")
    yield "| " + " | ".join((*heads, "margin", "word", "fixed")) + " |"
    yield "|---" * (len(heads) + 3) + "|"
    yield from map(str, found)
    agree, undecided = sum(each.agrees for each in found), sum(each.word == UNDECIDED for each in found)
    yield f"\n{agree} of {len(found)} fixed words agree with the measurement, {undecided} undecided"


def word_of(removal: Removal, bottleneck: str, disturbance: str) -> str:
    """The word of a cell by its removals. `bottleneck` and `disturbance` are the words of the two."""
    if bottleneck == disturbance:
        return bottleneck
    if abs(removal.margin) <= MARGIN:
        return UNDECIDED
    return bottleneck if removal.margin > 0 else disturbance


def kept(out: Path | None) -> dict[Key, Removal]:
    """The removals that the file has."""
    lines = [line for line in json_lines.read(out) if line.get("part") == TRUTH]
    return {(line["case"], line["column"], line["seed"]): Removal(**line["removal"]) for line in lines}


def keep(key: Key, removal: Removal, out: Path | None) -> None:
    case, column, seed = key
    unit = {"part": TRUTH, "case": case, "column": column, "seed": seed}
    json_lines.append(out, {**unit, "removal": asdict(removal)})


def word_of_disturbance(case: str, column: str) -> str:
    """The word of a cell whose disturbance wins: a quota is the role's CPU."""
    return f"{DESIGNS[case].throttled}_cpu" if column == QUOTA else "disturbed"


@contextmanager
def _beside(competitors: Disturb, column: str, design: Design) -> Iterator[None]:
    with competitors(), rivals(rival_cpus(column, design), RIVALS[column]):
        yield


def _throttled(whole: Clients, other: Clients, design: Design, competitors: Disturb) -> Removal:
    """Both loads are in one group, and take turns; its quota is lifted in turns without it."""
    with quota_group("pgperf-truth") as group:
        for each in (whole, other):
            group.enter(each.pids(design.throttled))

        @contextmanager
        def limited() -> Iterator[None]:
            with competitors():
                group.allow(design.quota)
                try:
                    yield
                finally:
                    group.allow(None)

        _quota_us, period_us = times_us(design.quota)
        found = removal(whole, other, limited, max(_TURN_S, _PERIODS * period_us / 1e6))
        if not group.throttled().periods:
            raise CannotMeasure("the quota did not bind")
        return found


def _pin_pooler(route: Route) -> None:
    """A pooler shares the clients' CPUs, as in a run of pgperf."""
    if route.pooler and (pid := pooler_process.process(route.port)):
        os.sched_setaffinity(pid, halves()[0])


def relieved(case: str, load: Load, routes: Mapping[str, Route]) -> Load:
    """The load without its bottleneck."""
    operation, direct = load.operation, routes["tcp"]
    return {
        "client spinning": replace(load, operation=replace(operation, spin_us=0)),
        "ORM client": replace(load, operation=replace(operation, layer="libpq")),
        "pool of 1": replace(load, route=direct),
        "heavy query": replace(load, operation=replace(operation, sql="SELECT 1", args=())),
        "5 ms distance": replace(load, route=direct),
        "competing process": replace(load, operation=replace(operation, layer="libpq")),
        "lock contention": replace(load, operation=replace(operation, sql=operation.sql.replace(_LOCK, ""))),
    }[case]


_LOCK = "pg_advisory_xact_lock(4711), "


@contextmanager
def _started() -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "benchmarks.plain_operation"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise CannotMeasure("a plain client has ended, see above")
    return line
