"""The language and the time zone of who reads a page, asked for once: Django takes longer to tell them
than a number takes to be written, and a page has thousands of numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import tzinfo
from typing import NamedTuple

from django.utils.timezone import get_current_timezone
from django.utils.translation import get_language


class _Reader(NamedTuple):
    language: str | None
    timezone: tzinfo


_known: ContextVar[_Reader | None] = ContextVar("pgperf_reader", default=None)


@contextmanager
def same_reader() -> Iterator[None]:
    """Neither language nor time zone changes inside."""
    token = _known.set(_Reader(get_language(), get_current_timezone()))
    try:
        yield
    finally:
        _known.reset(token)


def language() -> str | None:
    """As Django's `get_language`: None where translations are off."""
    known = _known.get()
    return known.language if known else get_language()


def timezone() -> tzinfo:
    """As Django's `get_current_timezone`."""
    known = _known.get()
    return known.timezone if known else get_current_timezone()
