"""The results on a run's page, section by section.

A section is a module in sections/ with a function `part`, a template of the same name in
templates/pgperf/sections/, and an entry in SECTIONS.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from pgperf.models import Run
from pgperf.reports.labels import left_out_title
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.sections import (
    Part,
    captures,
    cold,
    comparisons,
    connections,
    environment,
    host,
    ladder,
    latency,
    layers,
    reading,
    scaling,
    server,
    speed,
    spent,
    suite,
    verdicts,
)


@dataclass(frozen=True)
class Entry:
    """A section in `SECTIONS`.

    `name` is its anchor, and the name of its template under templates/pgperf/sections/. `make` is
    the function `part` of its module.
    """

    name: str
    title: str | Promise
    make: Callable[[RunRows], Part]


@dataclass(frozen=True)
class Section:
    """A section of one run's page, with the data that its template shows."""

    name: str
    title: str
    part: Part

    @property
    def template(self) -> str:
        return f"pgperf/sections/{self.name}.html"


#: In the order of the page.
SECTIONS = (
    Entry("verdicts", _("Bottlenecks"), verdicts.part),
    Entry("suite", _("Workloads and layers"), suite.part),
    Entry("layers", _("Where a query's time goes"), layers.part),
    Entry("spent", _("Time breakdown"), spent.part),
    Entry("ladder", _("The ladder"), ladder.part),
    Entry("reading", _("How to read this"), reading.part),
    Entry("scaling", _("More clients"), scaling.part),
    Entry("speed", _("Throughput and CPU time"), speed.part),
    Entry("latency", _("Latency"), latency.part),
    Entry("connections", _("Connecting"), connections.part),
    Entry("host", _("The host"), host.part),
    Entry("server", _("The server"), server.part),
    Entry("cold", _("Cold phases"), cold.part),
    Entry("comparisons", _("Comparisons"), comparisons.part),
    Entry("captures", _("What one operation sends"), captures.part),
    Entry("environment", _("Environment"), environment.part),
)


@dataclass(frozen=True)
class Result:
    """The sections that the run has something for.

    `measured`: there is something to compare or download.
    """

    sections: list[Section] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    measured: bool = False

    def part(self, name: str) -> Part | None:
        """The data of one section."""
        return next((section.part for section in self.sections if section.name == name), None)


def result(run: Run) -> Result:
    """A finished run's charts and tables, in two queries."""
    rows = read(run)
    return Result(
        sections=list(_sections(rows)),
        skipped={left_out_title(each): each.reason for each in rows.skipped},
        partial=run.partial,
        measured=bool(rows.variants or rows.ladders),
    )


def _sections(rows: RunRows) -> Iterator[Section]:
    for entry in SECTIONS:
        if part := entry.make(rows):
            yield Section(entry.name, str(entry.title), part)
