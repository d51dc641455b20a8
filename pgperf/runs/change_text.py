"""A change point in words, for pages, commands and e-mail."""

import re

from django.utils.formats import number_format
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import gettext as _

from pgperf.core.layers import LAYERS
from pgperf.models import ChangePoint, Run

_LAYER = re.compile(r"^\S+")  # a label begins with it


def sentence(change: ChangePoint) -> str:
    """“Django ORM · socket: 12 µs slower since run 41, 2026-11-20”. `change.run` must be loaded."""
    text = (
        _("%(variant)s: %(us)s µs slower since run %(run)s, %(date)s")
        if change.after_us > change.before_us
        else _("%(variant)s: %(us)s µs faster since run %(run)s, %(date)s")
    )
    return text % {
        "variant": title(change.label),
        "us": _number(abs(change.after_us - change.before_us)),
        "run": change.run_id,
        "date": day(change.run),
    }


def levels(change: ChangePoint) -> str:
    """The levels in µs, and the ratios to the layer below."""
    numbers = {"before": _number(change.before_us), "after": _number(change.after_us)}
    if not change.below:
        return _("its time per operation was %(before)s µs and is %(after)s µs") % numbers
    text = _("its step over %(below)s was %(before)s µs and is %(after)s µs") % {
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


def _number(value: float) -> str:
    size = abs(value)
    return _rounded(value, 0 if size >= 10 else 1 if size >= 1 else 2)


def _ratio(value: float) -> str:
    return _rounded(value, 2)


def _rounded(value: float, decimals: int) -> str:
    """Django cuts digits off; it does not round."""
    return str(number_format(round(value, decimals), decimals))
