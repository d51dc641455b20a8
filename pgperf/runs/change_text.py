"""A change point in words, for pages, commands and e-mail."""

import re

from django.utils.formats import number_format
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import gettext as _

from pgperf.core.layers import LAYERS
from pgperf.core.time_units import MICROSECONDS, MILLISECONDS, SECONDS, TimeUnit, decimals, unit_of
from pgperf.models import ChangePoint, Run

_LAYER = re.compile(r"^\S+")  # a label begins with it


def sentence(change: ChangePoint) -> str:
    """“Django ORM · socket: 12 µs slower since run 41, 2026-11-20”. `change.run` must be loaded."""
    names = {
        "variant": title(change.label),
        "change": since(change.before_us, change.after_us, change.run),
    }
    return _("%(variant)s: %(change)s") % names


def since(before_us: float, after_us: float, run: Run) -> str:
    """What changed with this run, without the variant's name."""
    text = (
        _("%(change)s slower since run %(run)s, %(date)s")
        if after_us > before_us
        else _("%(change)s faster since run %(run)s, %(date)s")
    )
    apart_us = abs(after_us - before_us)
    return text % {"change": _time(apart_us, unit_of([apart_us])), "run": run.pk, "date": day(run)}


def levels(change: ChangePoint) -> str:
    """The levels, and the ratios to the layer below."""
    unit = unit_of([change.before_us, change.after_us])
    numbers = {"before": _time(change.before_us, unit), "after": _time(change.after_us, unit)}
    if not change.below:
        return _("its time per operation was %(before)s and is %(after)s") % numbers
    text = _("its step over %(below)s was %(before)s and is %(after)s") % {
        **numbers,
        "below": title(change.below),
    }
    if change.before_ratio is None or change.after_ratio is None:
        return text
    ratios = {"before": _ratio(change.before_ratio), "after": _ratio(change.after_ratio)}
    return f"{text} ({_('%(before)s times before, %(after)s times now') % ratios})"


def title(label: str) -> str:
    """A variant's label with its layer's title."""
    return _LAYER.sub(lambda found: LAYERS[found[0]].title if found[0] in LAYERS else found[0], label)


def day(run: Run) -> str:
    """The day of its end by the site's clocks, as ISO 8601 has it."""
    return str(template_localtime(run.finished_at or run.requested_at).date())


def _time(us: float, unit: TimeUnit) -> str:
    value, size = us / unit.us, abs(us)
    few = 0 if size >= 10 else 1 if size >= 1 else 2
    number = _rounded(value, few if unit is MICROSECONDS else decimals(value, unit.decimals))
    return f"{number} {_symbol(unit)}"


def _symbol(unit: TimeUnit) -> str:
    return {MICROSECONDS: _("µs"), MILLISECONDS: _("ms"), SECONDS: _("s")}[unit]


def _ratio(value: float) -> str:
    return _rounded(value, 2)


def _rounded(value: float, digits: int) -> str:
    """Django cuts digits off; it does not round."""
    return str(number_format(round(value, digits), digits))
