"""Dates as people read them: in the format of their language, and never broken over two lines.

Files that programs read have ISO 8601 instead.
"""

from datetime import date, datetime
from functools import lru_cache

from django.utils.formats import date_format
from django.utils.timezone import template_localtime  # type: ignore[attr-defined]
from django.utils.translation import get_language

_SPACE, _NO_BREAK_SPACE = " ", "\u00a0"


def moment(when: datetime) -> str:
    """The day and the time by the site's clocks: “Nov. 30, 2026, 9:11 a.m.”."""
    return _unbroken(date_format(template_localtime(when), "DATETIME_FORMAT"))


def day(when: datetime) -> str:
    """The day by the site's clocks: “Nov. 30, 2026”."""
    return _day(template_localtime(when).date(), get_language())


@lru_cache(maxsize=4096)
def _day(found: date, _language: str | None) -> str:
    """A chart of many runs has a thousand days, many of them equal."""
    return _unbroken(date_format(found, "DATE_FORMAT"))


def _unbroken(text: str) -> str:
    return text.replace(_SPACE, _NO_BREAK_SPACE)
