"""Numbers of rows in the address of a page, and how a choice of runs reads them."""

from django.http import Http404

#: The columns that a choice of runs shows.
COLUMNS = ("benchmark_name", "requested_at", "quick", "database_name")
_DIGITS = 18


def number(text: str) -> int:
    """The primary key. Raises Http404 for what cannot be one."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise Http404
    return int(text)
