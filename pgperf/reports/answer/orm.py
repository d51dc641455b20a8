"""What the ORM adds to the cursor that it stands on."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import pairwise

from django.utils.translation import gettext as _

from pgperf.analysis.disturbances import POOR
from pgperf.analysis.ladder import Ladder, Step
from pgperf.core.layers import LAYERS, Rung
from pgperf.core.time_units import unit_of
from pgperf.reports import ladders, number_format
from pgperf.reports.answer.point import Point
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Note


def point(shown: Sequence[Ladder], rows: RunRows) -> Point | None:
    """None of ladders without the ORM, or without the cursor below it."""
    among = rows.ladders
    pairs = [(ladder, pair) for ladder in shown if (pair := _rungs(ladder))]
    found = [(ladder, orm) for ladder, (_cursor, orm) in pairs]
    if not found:
        return None
    line = Note(_("Over %s.") % ", ".join(_part(*each, among) for each in found))
    sentence = share_sentence(
        [step for _ladder, step in found],
        is_disturbed=_is_disturbed(rows, {step.label for _ladder, pair in pairs for step in pair}),
    )
    if len({ladder.clients for ladder in among}) > 1:
        sentence = f"{ladders.load_title(shown[0])}: {sentence}"
    return Point(_("What the ORM adds"), (sentence,), (line,), anchor="ladder")


def _is_disturbed(rows: RunRows, labels: Collection[str]) -> bool:
    """Did others much disturb the measurement of one of these variants?"""
    found = (row.record.verdict for row in rows.variants if row.label in labels)
    return any((verdict.grade.others or 0.0) >= POOR for verdict in found if verdict)


def _rungs(ladder: Ladder) -> tuple[Step, Step] | None:
    """The rungs of the cursor and of the ORM that stands on it."""
    wanted = (Rung.CURSOR, Rung.ORM)
    return next((pair for pair in pairwise(ladder.steps) if (_rung(pair[0]), _rung(pair[1])) == wanted), None)


def _rung(step: Step) -> Rung | None:
    return LAYERS[step.layer].rung if step.layer in LAYERS else None


def share_sentence(steps: Sequence[Step], *, is_disturbed: bool) -> str:
    """How much of an operation's time raw SQL would save."""
    if not any(step.step_us > 0 for step in steps):
        return _("This run shows no time that the ORM takes: the cursor is as slow.")
    shares = [step.step_us / step.us for step in steps if step.us]
    low, high = (
        number_format.whole(round(100 * end)) for end in (min(shares, default=0), max(shares, default=0))
    )
    share = _("%s %%") % low if low == high else _("%(low)s to %(high)s %%") % {"low": low, "high": high}
    ends = number_format.differences_in_one_unit(
        {str(at): step.us for at, step in enumerate(steps)},
        **{end.__name__: end(step.step_us for step in steps) for end in (min, max)},
    )
    us = ends["min"] if ends["min"] == ends["max"] else _("%(min)s to %(max)s") % ends
    said = {"us": us, "unit": ends["unit"], "share": share}
    if all(map(_is_certain, steps)):
        takes, saves = _("The ORM takes %(us)s %(unit)s, %(share)s of the time."), _("Raw SQL would save it.")
    else:
        takes, saves = _("The ORM seems to take %(us)s %(unit)s, %(share)s of the time."), _least(steps)
    if is_disturbed:
        saves = _("Waiting for other processes is part of it, so raw SQL may save less.")
    return f"{takes % said} {saves}"


def _least(steps: Sequence[Step]) -> str:
    """What is sure of a step that is not known well."""
    lows = [step.step_low_us for step in steps]
    least = min((low for low in lows if low is not None), default=0.0)
    if None in lows or least <= 0:
        return _("The intervals are too wide to tell what raw SQL would save.")
    return _("Raw SQL would save %(least)s %(unit)s at least.") % number_format.in_one_unit(least=least)


def _is_certain(step: Step) -> bool:
    """Is the step known to within half of it?"""
    low, high = step.step_low_us, step.step_high_us
    return low is not None and high is not None and step.step_us / 2 <= low <= high <= step.step_us * 3 / 2


def _part(ladder: Ladder, step: Step, among: Sequence[Ladder]) -> str:
    unit, ends = unit_of([step.us, step.step_us]), (step.step_low_us, step.step_high_us)
    form = partial(number_format.interval, figures=[step.us / unit.us])
    return _("%(route)s %(us)s of %(of)s %(unit)s (95 %% interval %(interval)s)") % {
        "route": ladders.ladder_title(ladder, among),
        **number_format.differences_in_one_unit({"of": step.us}, us=step.step_us),
        "interval": number_format.in_unit(unit, form, *ends),
    }
