"""The symbols of units of time, as people read them."""

from django.utils.translation import gettext as _

from pgperf.core.time_units import MICROSECONDS, MILLISECONDS, SECONDS, TimeUnit


def unit_title(unit: TimeUnit) -> str:
    """The unit's symbol."""
    return {MICROSECONDS: _("µs"), MILLISECONDS: _("ms"), SECONDS: _("s")}[unit]
