"""A section of the run page: a name, a title, and the data that its template shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise

from pgperf.reports.run_rows import RunRows

#: What a template gets; empty if the run has nothing for the section.
Part = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, and the name of its template under templates/pgperf/sections/."""

    name: str
    title: str
    part: Part

    @property
    def template(self) -> str:
        return f"pgperf/sections/{self.name}.html"


@dataclass(frozen=True)
class Entry:
    """A section in the list of run_page. `make` is the function `part` of the section's module."""

    name: str
    title: str | Promise
    make: Callable[[RunRows], Part]
