"""The results on a run's page, section by section, in topics.

A section is a module in sections/ with a function `part`, a template of the same name in
templates/pgperf/sections/, and an entry in SECTIONS with its topic.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from pgperf.models import ChangePoint, Run
from pgperf.reports import run_ending
from pgperf.reports.labels import reasons
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.sections import (
    Part,
    answer,
    captures,
    cold,
    comparisons,
    connections,
    environment,
    host,
    ladder,
    latency,
    rate,
    rate_search,
    reading,
    requests,
    scaling,
    server,
    speed,
    spent,
    staircase,
    suite,
    verdicts,
)
from pgperf.runs import state


@dataclass(frozen=True)
class Entry:
    """A section in `SECTIONS`.

    `name` is its anchor, and the name of its template under templates/pgperf/sections/. `topic` is
    a key of `TOPICS`. `make` is the function `part` of its module.
    """

    name: str
    title: str | Promise
    topic: str
    make: Callable[[RunRows], Part]
    each_variant: bool = False  # it shows every variant, so that a suite's is folded


@dataclass(frozen=True)
class Section:
    """A section of one run's page, with the data that its template shows."""

    name: str
    title: str
    part: Part
    folded: bool = False

    @property
    def template(self) -> str:
        return f"pgperf/sections/{self.name}.html"


@dataclass(frozen=True)
class Topic:
    """Sections that a page shows together; `name` is the last part of its anchor."""

    name: str
    title: str
    sections: list[Section]


#: A page of more variants comes with its first topic, so that the answer need not wait for all others.
AT_ONCE = 24
#: The topics that a page comes with, as its address asks.
FIRST, OTHERS, ALL = "first", "others", "all"
#: In the order of the page; the first one is shown first.
TOPICS = {
    "answer": _("Answer"),
    "layers": _("Layers"),
    "steps": _("Steps"),
    "time": _("Where the time goes"),
    "statements": _("Statements"),
    "latency": _("Latency"),
    "clients": _("Clients"),
    "rate": _("Rate"),
    "host": _("Host"),
    "server": _("Server"),
    "method": _("Method and environment"),
}
#: Their places in it.
_PLACES = {FIRST: (0, 1), OTHERS: (1, None), ALL: (0, None)}
#: In the order of their topics, and within each of the page.
SECTIONS = (
    Entry("answer", _("The answer"), "answer", answer.part),
    Entry("suite", _("Workloads and layers"), "layers", suite.part),
    Entry("ladder", _("The ladder"), "layers", ladder.part),
    Entry("comparisons", _("Comparisons"), "layers", comparisons.part, each_variant=True),
    Entry("staircase", _("The steps of the site"), "steps", staircase.part),
    Entry("spent", _("Time breakdown"), "time", spent.part, each_variant=True),
    Entry("verdicts", _("Bottlenecks"), "time", verdicts.part),
    Entry("speed", _("Throughput and CPU time"), "time", speed.part, each_variant=True),
    Entry("captures", _("What one operation sends"), "statements", captures.part),
    Entry("latency", _("Latency"), "latency", latency.part, each_variant=True),
    Entry("requests", _("Requests"), "latency", requests.part),
    Entry("connections", _("Connecting"), "latency", connections.part),
    Entry("cold", _("Cold phases"), "latency", cold.part, each_variant=True),
    Entry("scaling", _("More clients"), "clients", scaling.part),
    Entry("rate_search", _("The highest rate"), "rate", rate_search.part),
    Entry("rate", _("Operations at a given rate"), "rate", rate.part),
    Entry("host", _("The host"), "host", host.part, each_variant=True),
    Entry("server", _("The server"), "server", server.part, each_variant=True),
    Entry("reading", _("How to read this"), "method", reading.part),
    Entry("environment", _("Environment"), "method", environment.part),
)


@dataclass(frozen=True)
class Result:
    """The topics that the run has something for.

    `skipped`: the parts that it left out, by the reason. `ending`: how a run that may stop early
    ended. `measured`: there is something to compare or download. `is_over`: has the run ended?
    `shown`: which of the topics it has.
    """

    topics: list[Topic] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    partial: bool = False
    measured: bool = False
    ending: str = ""
    is_over: bool = True
    shown: str = ALL

    @property
    def first_only(self) -> bool:
        return self.shown == FIRST

    @property
    def sections(self) -> list[Section]:
        return [section for topic in self.topics for section in topic.sections]

    @property
    def skipped_count(self) -> int:
        return sum(map(len, self.skipped.values()))

    def part(self, name: str) -> Part | None:
        """The data of one section."""
        return next((section.part for section in self.sections if section.name == name), None)


def result(
    run: Run,
    before: Run | None = None,
    changes: Sequence[ChangePoint] = (),
    *,
    shown: str = ALL,
    **earlier: Any,
) -> Result:
    """A finished run's charts and tables, in two queries. A third one sets it against the run
    `before`. `changes`: the changes over runs up to this one; `earlier`: other fields of its rows.
    `shown`: a smaller run has all topics where it asks for the `FIRST`.
    """
    rows = read(run, before, changes, **earlier)
    is_small = len(rows.variants) <= AT_ONCE
    return result_of(rows, ALL if shown == FIRST and is_small else shown)


def result_of(rows: RunRows, shown: str = ALL) -> Result:
    return Result(
        topics=list(_topics(rows, shown)),
        shown=shown,
        skipped=reasons(rows.skipped),
        partial=rows.run.partial,
        ending=run_ending.fact(rows.run) if rows.variants else run_ending.sentence(rows.run),
        measured=bool(rows.variants or rows.ladders),
        is_over=state.effective_status(rows.run) not in state.ACTIVE,
    )


def _topics(rows: RunRows, shown: str) -> Iterator[Topic]:
    for name, title in islice(TOPICS.items(), *_PLACES[shown]):
        if sections := list(_sections(name, rows)):
            yield Topic(name, str(title), sections)


def _sections(topic: str, rows: RunRows) -> Iterator[Section]:
    for entry in SECTIONS:
        if entry.topic == topic and (part := entry.make(rows)):
            title = part.get("title") or str(entry.title)
            yield Section(entry.name, title, part, folded=entry.each_variant and rows.is_suite)
