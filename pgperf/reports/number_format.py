"""Numbers as people read them: three digits that count, the reader's own separators, and a word for
the unknown.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import lru_cache, partial

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from pgperf.core.time_units import TimeUnit, decimals, unit_of
from pgperf.runs import reader
from pgperf.runs.unit_titles import unit_title

#: Decimals of a number at an axis.
_MOST = 6
#: Decimals of any other number; one in a larger unit of time may have more.
FEW = 2
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|µs|ms|s|min|h)(?!\w))")


def number(value: float | None, most: int = FEW) -> str:
    """About three significant digits, `most` decimals at most; `None` reads "unknown", never 0."""
    if value is None:
        return _("unknown")
    return _fixed(value, decimals(value, most))


def at_least(value: float | None, most: int = FEW) -> str:
    """A lower bound."""
    return number(value, most) if value is None else f"≥ {number(value, most)}"


def in_unit(unit: TimeUnit, form: Callable[..., str], *times_us: float | None) -> str:
    """Times as `number`, `signed` or `interval` writes them, in this unit and without its symbol."""
    return form(*(None if us is None else us / unit.us for us in times_us), most=unit.decimals)


def in_one_unit(**times_us: float | None) -> dict[str, str]:
    """The times of one sentence in the unit of the longest, whose symbol is `unit`."""
    unit = unit_of(times_us.values())
    return {name: in_unit(unit, number, us) for name, us in times_us.items()} | {"unit": unit_title(unit)}


def differences_in_one_unit(
    figures_us: Mapping[str, float | None], **differences_us: float | None
) -> dict[str, str]:
    """The same of figures and of their differences, which have no more decimals than they."""
    unit = unit_of([*figures_us.values(), *differences_us.values()])
    form = partial(difference, figures=[us / unit.us for us in figures_us.values() if us is not None])
    return {
        **{name: in_unit(unit, number, us) for name, us in figures_us.items()},
        **{name: in_unit(unit, form, us) for name, us in differences_us.items()},
        "unit": unit_title(unit),
    }


def time(us: float | None, unit: TimeUnit | None = None) -> str:
    """A time with its unit: this one, or that which fits it."""
    if us is None:
        return _("unknown")
    unit = unit or unit_of([us])
    return _("%(number)s %(unit)s") % {"number": in_unit(unit, number, us), "unit": unit_title(unit)}


def time_interval(low_us: float, high_us: float) -> str:
    """Both ends of a range of times, with the unit of the longer one."""
    unit = unit_of([low_us, high_us])
    return f"{in_unit(unit, interval, low_us, high_us)} {unit_title(unit)}"


def unbroken(text: str) -> str:
    """The same, but a page does not break it between a number and its unit."""
    return _BEFORE_UNIT.sub("\u00a0", text)


def tick(value: float) -> str:
    """A round number at an axis: no decimals that it does not need."""
    digits = next((each for each in range(_MOST) if math.isclose(round(value, each), value)), _MOST)
    return _fixed(value, digits)


def whole(value: int | None) -> str:
    """An exact count."""
    return _("unknown") if value is None else _fixed(value, 0)


def difference(value: float | None, most: int = FEW, figures: Collection[float] = ()) -> str:
    """A number with no more decimals than the `figures` that it is the difference of, so that a reader
    who subtracts them finds it; but with a digit that counts.
    """
    return _("unknown") if value is None else _fixed(value, _decimals(value, most, figures))


def signed(value: float | None, most: int = FEW, figures: Collection[float] = ()) -> str:
    """A difference, with its sign."""
    text = difference(value, most, figures)
    return f"+{text}" if value is not None and value > 0 else text


def _decimals(value: float, most: int, figures: Collection[float]) -> int:
    own = decimals(value, most)
    if not figures:
        return own
    first = -math.floor(math.log10(abs(value))) if 0 < abs(value) < 1 else 0
    return min(own, max(first, min(decimals(each, most) for each in figures)))


def ratio(value: float | None) -> str:
    """A ratio with as many decimals as show a tenth of a percent near 1."""
    return _("unknown") if value is None else _times(value, _ratio_decimals(value))


def percent(share: float | None) -> str:
    """A share of 1 as a percentage."""
    return _("unknown") if share is None else f"{_fixed(share * 100, 1 if abs(share) < 1 else 0)} %"


def short_percent(share: float | None) -> str:
    """A share of 1 as a percentage with one decimal, none if that is 0 or from 10 % on."""
    if share is None:
        return _("unknown")
    tenths = round(share * 1000)
    return f"{_fixed(tenths / 10, 0 if tenths % 10 == 0 or tenths >= 100 else 1)} %"


def interval(low: float | None, high: float | None, most: int = FEW, figures: Collection[float] = ()) -> str:
    """Both ends of a 95 % interval with the decimals of the wider one; "none" where the run gave none.

    `figures`: those that an interval of a `difference` comes from.
    """
    if low is None or high is None:
        return _("none")
    ends = (_decimals(end, most, figures) for end in (low, high))
    digits = max(ends) if max(abs(low), abs(high)) < 100 else 0
    return " … ".join(_fixed(end, digits) for end in (low, high))


def ratio_interval(low: float | None, high: float | None) -> str:
    """Both ends of a ratio's 95 % interval."""
    if low is None or high is None:
        return _("none")
    digits = min(_ratio_decimals(low), _ratio_decimals(high))
    return f"{_fixed(low, digits)} … {_fixed(high, digits)}"


def seconds(value: float | None) -> str:
    """A length of time: tenths of a second under ten, then seconds, then minutes and seconds, then
    hours and minutes; a last part of 0 is left out.
    """
    if value is None:
        return _("unknown")
    if value < 60:
        return _("%s s") % _fixed(value, 1 if value < 10 else 0)
    whole_s = round(value)
    if whole_s < 3600:
        return _parts(_("%d min"), _("%d s"), *divmod(whole_s, 60))
    return _parts(_("%d h"), _("%d min"), *divmod(round(whole_s / 60), 60))


def between(start: datetime | None, end: datetime | None) -> str:
    """The time from one to the other; a dash where it is not known, as after a clock was set back."""
    if start is None or end is None or end < start:
        return "–"
    return seconds((end - start).total_seconds())


def _parts(first: str, second: str, number_of_first: int, number_of_second: int) -> str:
    """Two parts of a length of time, or the first one where the second is 0."""
    return first % number_of_first + (" " + second % number_of_second if number_of_second else "")


def _fixed(value: float, digits: int) -> str:
    """Rounded here, since number_format cuts off what it does not show; 0 has no sign."""
    return _localized(round(value, digits) or 0, digits, reader.language())


@lru_cache(maxsize=8192)
def _localized(value: float, digits: int, _language: str | None) -> str:
    """A page has thousands of numbers of three digits, many of them equal."""
    return number_format(value, digits, force_grouping=True).replace("-", "−")


def _ratio_decimals(value: float) -> int:
    return 3 if value < 2 else 2 if value < 10 else 1


def _times(value: float, digits: int) -> str:
    return f"×{_fixed(value, digits)}"
