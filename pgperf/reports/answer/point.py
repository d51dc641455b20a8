"""A point of the answer."""

from dataclasses import dataclass

from pgperf.models import ChangePoint, Run
from pgperf.reports.history import Line
from pgperf.reports.table import Note
from pgperf.runs.change_text import sentence


@dataclass(frozen=True)
class Point:
    """A question with its answer; `lines` are the evidence. `mark` is "good", "fair" or "poor",
    which pages show as a tick, an exclamation mark or a cross. `anchor`: the section with all of the
    evidence. `benchmarks`: names of those that measure what is advised. `before`: the run that this
    one is set against, `change`: the newest lasting change over the runs, `longest`: other runs of the
    benchmark.
    """

    question: str
    sentences: tuple[str, ...]
    lines: tuple[Note, ...] = ()
    mark: str = ""
    anchor: str = ""
    benchmarks: tuple[str, ...] = ()
    before: Run | None = None
    change: ChangePoint | None = None
    longest: Line | None = None

    @property
    def change_text(self) -> str:
        return f"{sentence(self.change)}." if self.change else ""
