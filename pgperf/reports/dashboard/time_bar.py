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
    shares = {part: us / total for part, us in known.items()}
    unit = unit_of([total])
    titles = role_names()
    return [
        Part(
            name=part,
            title=titles[part],
            time=number_format.time(known[part], unit),
            share=_percent(share),
            segment=segment,
        )
        for (part, share), segment in zip(shares.items(), inline_svg.bar([*shares.values()]), strict=True)
    ]


def described(bar: Sequence[Part]) -> str:
    """The bar in words, the largest part first."""
    by_size = sorted(bar, key=lambda part: -float(part.segment.width))
    return ", ".join(f"{part.title} {part.share}" for part in by_size)


def _percent(share: float) -> str:
    return _("under 1 %") if share < 0.01 else f"{round(share * 100)} %"
