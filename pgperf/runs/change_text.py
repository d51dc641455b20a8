"""A change point in words, for pages, commands and e-mail."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.core.layers import LAYERS
from pgperf.core.time_units import MICROSECONDS, TimeUnit, decimals, unit_of
from pgperf.models import ChangePoint, Run
from pgperf.runs import dates
from pgperf.runs.layer_changes import LayerChange, layers_of
from pgperf.runs.step_series import Step
from pgperf.runs.unit_titles import unit_title

_LAYER = re.compile(r"^\S+")  # a label begins with it


def sentence(change: ChangePoint) -> str:
    """“Django ORM · socket: 12 µs slower since run 41, Nov. 20, 2026”. `change.run` must be loaded."""
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
    if change.layers is not None:
        return _headline_levels(change, numbers)
    if not change.below:
        return _("its time per operation was %(before)s and is %(after)s") % numbers
    text = _("its step over %(below)s was %(before)s and is %(after)s") % {
        **numbers,
        "below": title(change.below),
    }
    return f"{text}{_ratios(change)}"


def layers(change: ChangePoint) -> list[str]:
    """Which layers' steps changed with the headline figure at the same run, each in a line, and what
    they add up to; nothing of another change.
    """
    found = layers_of(change)
    changed = [each for each in found if each.changed]
    if not changed:
        return [_("no layer’s step changed beyond its noise")] if found else []
    lines = [f"{step_title(each.step)}: {_apart(each.apart_us)}{_ratios(each)}" for each in changed]
    sum_us, whole_us = sum(each.apart_us for each in changed), change.after_us - change.before_us
    unit = unit_of([sum_us, whole_us])
    sums = {"sum": _signed(sum_us, unit), "whole": _signed(whole_us, unit)}
    total = ngettext(
        "this step explains %(sum)s of %(whole)s",
        "these steps add up to %(sum)s of %(whole)s",
        len(changed),
    )
    return [*lines, total % sums]


def told(changes: Sequence[ChangePoint]) -> list[ChangePoint]:
    """The changes in their order, without the steps that a headline's change of the same run names;
    of one run, the headline's first.
    """
    by_run: dict[int, list[ChangePoint]] = {}
    for change in changes:
        by_run.setdefault(change.run_id, []).append(change)
    return [each for of_run in by_run.values() for each in _told_of_run(of_run)]


def _told_of_run(changes: Sequence[ChangePoint]) -> list[ChangePoint]:
    named = {each.step for change in changes for each in layers_of(change) if each.changed}
    left = [each for each in changes if each.layers is not None or (each.label, each.below) not in named]
    return sorted(left, key=lambda each: each.layers is None)


def _headline_levels(change: ChangePoint, numbers: dict[str, str]) -> str:
    name = _("its time per operation, the headline figure (of a suite, the geometric mean)")
    text = _("%(name)s, was %(before)s and is %(after)s") % {"name": name, **numbers}
    if change.before_us <= 0:
        return text
    return f"{text} ({_('%(ratio)s times') % {'ratio': _ratio(change.after_us / change.before_us)}})"


def _ratios(change: ChangePoint | LayerChange) -> str:
    """Those to the layer below, in brackets; "" where they are not known."""
    if change.before_ratio is None or change.after_ratio is None:
        return ""
    ratios = {"before": _ratio(change.before_ratio), "after": _ratio(change.after_ratio)}
    return f" ({_('%(before)s times before, %(after)s times now') % ratios})"


def _signed(us: float, unit: TimeUnit) -> str:
    return f"{'−' if us < 0 else '+'}{_time(abs(us), unit)}"


def _apart(us: float) -> str:
    text = _("%s slower") if us > 0 else _("%s faster")
    return text % _time(abs(us), unit_of([us]))


def step_title(step: Step) -> str:
    """What the series of a step shows."""
    if not step.below:
        return _("%(variant)s: time per operation") % {"variant": title(step.variant)}
    return _("%(variant)s over %(below)s") % {"variant": title(step.variant), "below": title(step.below)}


def title(label: str) -> str:
    """A variant's label with its layer's title."""
    return _LAYER.sub(lambda found: LAYERS[found[0]].title if found[0] in LAYERS else found[0], label)


class Ended(Protocol):
    """A run, or a row that has its times."""

    @property
    def finished_at(self) -> datetime | None: ...

    @property
    def requested_at(self) -> datetime: ...


def day(run: Ended) -> str:
    """The day of its end."""
    return dates.day(run.finished_at or run.requested_at)


def _time(us: float, unit: TimeUnit) -> str:
    value, size = us / unit.us, abs(us)
    few = 0 if size >= 10 else 1 if size >= 1 else 2
    number = _rounded(value, few if unit is MICROSECONDS else decimals(value, unit.decimals))
    return f"{number} {unit_title(unit)}"


def _ratio(value: float) -> str:
    return _rounded(value, 2)


def _rounded(value: float, digits: int) -> str:
    """Django cuts digits off; it does not round."""
    return str(number_format(round(value, digits), digits))
