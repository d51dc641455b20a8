"""Numbers as people read them: three digits that count, the reader's own separators, and a word for the unknown."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _


def number(value: float | None) -> str:
    """About three significant digits; `None` reads "unknown", never 0."""
    if value is None:
        return _("unknown")
    return number_format(value, _decimals(value), force_grouping=True)


def whole(value: int | None) -> str:
    """An exact count."""
    return _("unknown") if value is None else number_format(value, 0, force_grouping=True)


def signed(value: float | None) -> str:
    """A difference, with its sign."""
    text = number(value)
    return f"+{text}" if value is not None and value > 0 else text.replace("-", "−")


def ratio(value: float | None) -> str:
    """A ratio with enough decimals to see one percent, and a tenth of it near 1."""
    if value is None:
        return _("unknown")
    decimals = 3 if abs(value - 1) < 0.1 else 2 if abs(value) < 10 else 1
    return "×" + number_format(value, decimals)


def percent(share: float | None) -> str:
    """A share of 1 as a percentage."""
    return _("unknown") if share is None else f"{number_format(share * 100, 1)} %"


def interval(low: float | None, high: float | None) -> str:
    """Both ends of a 95 % interval with the decimals of the wider one; "none" where the run gave none."""
    if low is None or high is None:
        return _("none")
    decimals = max(_decimals(low), _decimals(high)) if max(abs(low), abs(high)) < 100 else 0
    ends = (number_format(end, decimals, force_grouping=True).replace("-", "−") for end in (low, high))
    return " … ".join(ends)


def ratio_interval(low: float | None, high: float | None) -> str:
    """Both ends of a ratio's 95 % interval."""
    if low is None or high is None:
        return _("none")
    return f"{ratio(low)} … {ratio(high)}"


def seconds(value: float | None) -> str:
    """A length of time: tenths of a second under ten, then seconds, then minutes and seconds."""
    if value is None:
        return _("unknown")
    if value < 60:
        return _("%s s") % number_format(value, 1 if value < 10 else 0)
    minutes, rest = divmod(round(value), 60)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}


def _decimals(value: float) -> int:
    size = abs(value)
    return 0 if size >= 100 else 1 if size >= 10 else 2
