"""Where the time of one query goes, as one bar."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from pgperf.core.time_units import unit_of
from pgperf.models import VariantResult
from pgperf.reports import inline_svg, number_format
from pgperf.reports.inline_svg import Segment
from pgperf.reports.labels import role_names
from pgperf.reports.time_parts import time_parts


@dataclass(frozen=True)
class Part:
    """A part of one operation's time; `name` is that of its colour in pgperf.css."""

    name: str
    title: str
    time: str
    share: str
    segment: Segment


def time_bar(row: VariantResult) -> list[Part]:
    """The parts that take time; none for a variant without a CPU account."""
    known = {part: us for part, us in time_parts(row).items() if us}
    total = sum(known.values())
    shares = [us / total for us in known.values()]
    unit = unit_of([total])
    titles = role_names()
    return [
        Part(
            name=part,
            title=titles[part],
            time=number_format.time(known[part], unit),
            share=_percent(share, whole),
            segment=segment,
        )
        for part, share, whole, segment in zip(
            known, shares, whole_percents(shares), inline_svg.bar(shares), strict=True
        )
    ]


def described(bar: Sequence[Part]) -> str:
    """The bar in words, the largest part first."""
    by_size = sorted(bar, key=lambda part: -float(part.segment.width))
    return ", ".join(f"{part.title} {part.share}" for part in by_size)


def whole_percents(shares: Sequence[float]) -> list[int]:
    """Shares of 1 that are all of it, as whole percentages that add up to 100: those that lose most
    when they are rounded down are rounded up.
    """
    exact = [100 * share for share in shares]
    found = [int(each) for each in exact]
    by_loss = sorted(range(len(exact)), key=lambda at: found[at] - exact[at])
    for at in by_loss[: 100 - sum(found)]:
        found[at] += 1
    return found


def _percent(share: float, whole: int) -> str:
    return _("under 1 %") if share < 0.01 else f"{whole} %"
