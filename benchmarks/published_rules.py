"""The rules by which runs answer the published conclusions B (steps of a web site), C (a connection
for each transaction) and D (drivers).

docs/published-results.md explains them. They were written before the first measured run. "Surely"
means that all of the 95 % interval agrees; an interval that contains a bound settles nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.published import CONFIRMED, QUALIFIED, REFUTED, UNKNOWN, Judgement, Run
from benchmarks.published_figures import disturbed_ratio, geometric_mean, inverse, text, variant
from pgperf.analysis.paired_statistics import Estimate
from pgperf.core.delayed_routes import lengthened

#: A ratio nearer to 1 is no win and no loss.
MARGIN = 1.05
#: About 15-fold: by a factor of 1.5 at most.
ABOUT_15 = (15 / 1.5, 15 * 1.5)

#: What B's answers are about: requests over a new connection each.
REQUESTS = {"layer": "http", "connect": "per_operation"}


@dataclass(frozen=True)
class StepRule:
    """A conclusion on the requests/s of a step of the site over those of another one.

    `published`: their quotient by the published table; 1: no change.
    """

    conclusion: str
    step: str
    base: str
    published: float

    @property
    def about(self) -> tuple[float, float]:
        """The quotients that confirm it: from half to one and a half times the published gain; of no
        change, less than a win or a loss.
        """
        gain = self.published - 1
        return (1 + gain / 2, 1 + 1.5 * gain) if gain else (1 / MARGIN, MARGIN)


STEP_RULES = (
    StepRule(
        "nginx and gunicorn serve 2.25 times what Apache and mod_wsgi serve", "web_nginx", "web_apache", 9 / 4
    ),
    StepRule("PgBouncer gains 17 %", "web_pgbouncer", "web_nginx", 10.5 / 9),
    StepRule("TLS sessions that are resumed change nothing", "web_tls", "web_tls_new", 1),
    StepRule("Without autocommit it is 14 % faster", "web_no_autocommit", "web_pgbouncer", 10.5 / 9.2),
    StepRule("PostgreSQL's advised settings gain 11 %", "web_advised", "web_cluster", 11.7 / 10.5),
)

#: What C's answers are about.
LAYER, CLIENTS = "pgbench_one_thread", 20

#: D's queries, and its drivers with the mode in which they are judged. The suite runs on uvloop.
QUERIES = ("pg_type", "generate_series", "large_object", "arrays", "copyfrom", "batch", "oneplusone")
ASYNC, ASYNC_ON_ASYNCIO = "psycopg_async_uvloop", "psycopg_async"
MODES = {"psycopg2": "simple", "psycopg": "prepared", ASYNC: "prepared", ASYNC_ON_ASYNCIO: "prepared"}


NO_RUNS: Mapping[str, Run] = {}


@dataclass(frozen=True)
class Login:
    """The two routes of an authentication."""

    title: str
    direct: str
    pooled: str


TRUST = Login("no password, presumably as published", "tcp_trust", "pgbouncer_trust")
SCRAM = Login("SCRAM", "tcp", "pgbouncer")


@dataclass(frozen=True)
class QueryRule:
    """A conclusion on the time of psycopg 3 over that of psycopg2: surely from `low` to `high` for
    each of the queries.
    """

    conclusion: str
    queries: tuple[str, ...]
    low: float
    high: float


QUERY_RULES = (
    QueryRule(
        "psycopg 3 beats psycopg2 on wide and many rows", ("pg_type", "generate_series"), 0, 1 / MARGIN
    ),
    QueryRule(
        "psycopg 3 loses on SELECT 1+1, large objects and batches",
        ("oneplusone", "large_object", "batch"),
        MARGIN,
        math.inf,
    ),
    QueryRule("Both are equal on arrays and COPY", ("arrays", "copyfrom"), 0.9, 1 / 0.9),
)


def steps(run: Run, added_ms: float) -> list[Judgement]:
    """The answers to B's conclusions, from the steps of a run at this additional distance."""
    return [_of_step(run, rule, added_ms) for rule in STEP_RULES]


def pooling(run: Run, login: Login) -> list[Judgement]:
    """The answers to C's two conclusions, from a run over both routes of a login."""
    return [_wins_15_fold(run, login), _loses_when_kept(run, login)]


def drivers(run: Run, *, threads: bool, alone: Mapping[str, Run] = NO_RUNS) -> list[Judgement]:
    """The answers to D's conclusions; the one on threads only from a run that has them. `alone`: runs
    of one query each, which count in place of `run`.
    """
    found = [_of_queries({**dict.fromkeys(rule.queries, run), **alone}, rule) for rule in QUERY_RULES]
    return [*found, _async_gains(run)] if threads else found


def inside(estimate: Estimate | None, low: float, high: float) -> bool | None:
    """Is it surely from `low` to `high`? False: surely not. None: not known."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    if low <= estimate.low and estimate.high <= high:
        return True
    return False if estimate.high < low or high < estimate.low else None


def word_of(found: Sequence[bool | None]) -> str:
    """The answer from one or more parts that hold, fail, or are not known."""
    if {True, False} <= set(found):
        return QUALIFIED
    if None in found:
        return UNKNOWN
    return CONFIRMED if all(found) else REFUTED


def between(run: Run, one: Mapping[str, object], other: Mapping[str, object]) -> Estimate | None:
    """Time over time of the variants with these fields, as `disturbed_ratio`; None if one was not
    measured.
    """
    rows = [row for fields in (one, other) if (row := variant(run, **fields))]
    return disturbed_ratio(run, *rows) if len(rows) == 2 else None


def saving(run: Run, login: Login, layer: str, connect: str) -> Estimate | None:
    """How many times as many operations per second a pooler permits."""
    direct, pooled = (
        {"layer": layer, "route": route, "clients": CLIENTS, "connect": connect}
        for route in (login.direct, login.pooled)
    )
    return between(run, direct, pooled)


def driver_ratio(run: Run, query: str, driver: str, other: str) -> Estimate | None:
    """The time of a query through one driver over that through another."""
    one, two = ({"workload": query, "layer": name, "mode": MODES[name]} for name in (driver, other))
    return between(run, one, two)


def step_ratio(run: Run, step: str, base: str, added_ms: float) -> Estimate | None:
    """The requests/s of a step over those of another one: the time of that over its own."""
    two = ({**REQUESTS, "route": at_distance(name, added_ms)} for name in (base, step))
    return between(run, *two)


def at_distance(step: str, added_ms: float) -> str:
    """The route of a step with so much more delay."""
    return lengthened(step, added_ms) if added_ms else step


def _of_step(run: Run, rule: StepRule, added_ms: float) -> Judgement:
    found = step_ratio(run, rule.step, rule.base, added_ms)
    word = _word_of_gain(found, rule.about) if rule.published != 1 else word_of([inside(found, *rule.about)])
    is_excluded = word == UNKNOWN and inside(found, *rule.about) is False
    said = f"{rule.step} over {rule.base} {text(found)}; by his table {rule.published:.2f}"
    return Judgement(rule.conclusion, word, f"{said}; surely not confirmed" if is_excluded else said)


def _word_of_gain(found: Estimate | None, about: tuple[float, float]) -> str:
    """The answer to a conclusion that something gains about so much."""
    wins, is_about = inside(found, MARGIN, math.inf), inside(found, *about)
    if wins and is_about is False:
        return QUALIFIED
    return CONFIRMED if is_about else REFUTED if wins is False else UNKNOWN


def _wins_15_fold(run: Run, login: Login) -> Judgement:
    found = saving(run, login, LAYER, "per_operation")
    return Judgement(
        f"Pooling wins about 15-fold when every transaction connects ({login.title})",
        _word_of_gain(found, ABOUT_15),
        f"direct over pooled {text(found)}; by his table {1013 / 67.5:.1f}",
    )


def _loses_when_kept(run: Run, login: Login) -> Judgement:
    found = saving(run, login, LAYER, "persistent")
    found = inverse(found) if found else None
    return Judgement(
        f"Pooling loses when connections persist ({login.title})",
        word_of([inside(found, MARGIN, math.inf)]),
        f"pooled over direct {text(found)}; by his table {15423 / 2766:.1f}, without connecting",
    )


def _of_queries(runs: Mapping[str, Run], rule: QueryRule) -> Judgement:
    """The answer from the run of each query."""
    found = {query: driver_ratio(runs[query], query, "psycopg", "psycopg2") for query in rule.queries}
    answers = [inside(each, rule.low, rule.high) for each in found.values()]
    said = "; ".join(f"{query} {text(each)}" for query, each in found.items())
    return Judgement(rule.conclusion, word_of(answers), f"psycopg over psycopg2: {said}")


def _async_gains(run: Run) -> Judgement:
    found = mean_ratio(driver_ratio(run, query, ASYNC, "psycopg") for query in QUERIES)
    return Judgement(
        "Async gains over threads",
        word_of([inside(found, 0, 1 / MARGIN)]),
        f"{ASYNC} over psycopg, geometric mean of {len(QUERIES)} queries: {text(found)}",
    )


def mean_ratio(ratios: Iterable[Estimate | None]) -> Estimate | None:
    """The geometric mean; None if one is not known."""
    found = list(ratios)
    known = [each for each in found if each]
    return geometric_mean(known) if known and len(known) == len(found) else None
