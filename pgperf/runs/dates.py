"""Dates as people read them: in the format of their language, and never broken over two lines.

Files that programs read have ISO 8601 instead.
"""

from datetime import date, datetime
from functools import lru_cache

from django.conf import settings
from django.utils.formats import date_format
from django.utils.timezone import is_aware, localtime

from pgperf.runs import reader

_SPACE, _NO_BREAK_SPACE = " ", "\u00a0"


def moment(when: datetime) -> str:
    """The day and the time by the site's clocks: “Nov. 30, 2026, 9:11 a.m.”."""
    return _unbroken(date_format(_local(when), "DATETIME_FORMAT"))


def day(when: datetime) -> str:
    """The day by the site's clocks: “Nov. 30, 2026”."""
    return _day(_local(when).date(), reader.language())


def _local(when: datetime) -> datetime:
    """As templates do."""
    return localtime(when, reader.timezone()) if settings.USE_TZ and is_aware(when) else when


@lru_cache(maxsize=4096)
def _day(found: date, _language: str | None) -> str:
    """A chart of many runs has a thousand days, many of them equal."""
    return _unbroken(date_format(found, "DATE_FORMAT"))


def _unbroken(text: str) -> str:
    return text.replace(_SPACE, _NO_BREAK_SPACE)
