"""The symbols of units of time, as people read them."""

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from pgperf.core.time_units import MICROSECONDS, MILLISECONDS, SECONDS, TimeUnit

_TITLES = {MICROSECONDS: _("µs"), MILLISECONDS: _("ms"), SECONDS: _("s")}


def unit_title(unit: TimeUnit) -> str:
    """The unit's symbol."""
    return gettext(_TITLES[unit])
