"""Answers over HTTP that are too short or too long for the page (pure).

A login form, a maintenance page or the page of a visitor answers with status 200 and always with
the same length, so no request of its own fails. Its length shows it beside the view's or another
step's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pgperf.analysis.http_requests import HttpRequests
from pgperf.core.records import Variant

_FACTOR = 2
_ANSWER = re.compile(r"([\d,]+)(?: to ([\d,]+))? bytes$")


@dataclass(frozen=True)
class Lengths:
    """Of the shortest and of the longest body, in bytes."""

    least: int
    most: int

    @classmethod
    def of_view(cls, answer: str) -> Self | None:
        """As `django_view` reports them: "200, 6,000 to 6,144 bytes"; None of other texts."""
        found = _ANSWER.search(answer)
        ends = [int(end.replace(",", "")) for end in found.groups() if end] if found else []
        return cls(ends[0], ends[-1]) if ends else None

    @classmethod
    def of_requests(cls, found: HttpRequests) -> Self | None:
        """None where no body arrived."""
        least, most = found.least_bytes, found.most_bytes
        return None if least is None or most is None else cls(least, most)

    def is_like(self, other: Self) -> bool:
        """Is every body from half of the other ones to twice of them?"""
        return other.least <= _FACTOR * self.least and self.most <= _FACTOR * other.most


@dataclass(frozen=True)
class OtherLength:
    """A variant with bodies of another length than the page. `of`: the variant that has the page's;
    None: it is the view.
    """

    variant: Variant
    lengths: Lengths
    expected: Lengths
    of: Variant | None


def others(requests: Mapping[Variant, HttpRequests], views: Mapping[str, Lengths]) -> list[OtherLength]:
    """The variants whose bodies are not about as long as the view's (`views`, by workload) or, where
    that is not known, as those of the first variant of their workload.
    """
    known = {variant: each for variant, own in requests.items() if (each := Lengths.of_requests(own))}
    first: dict[str, Variant] = {}
    for variant in known:
        first.setdefault(variant.workload, variant)
    found = []
    for variant, lengths in known.items():
        view = views.get(variant.workload)
        of = None if view else first[variant.workload]
        expected = view or known[first[variant.workload]]
        if not lengths.is_like(expected):
            found.append(OtherLength(variant, lengths, expected, of))
    return found
