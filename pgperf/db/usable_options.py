"""Finds the OPTIONS of an alias of DATABASES with which Django cannot work, by trying them.

A driver takes any object as an option. A wrong one ends in a TypeError somewhere inside the driver
or Django, at the connect or at the first query, and no error says which option it was.
"""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from pgperf.core import printable
from pgperf.core.exceptions import UnusableOptions

#: A pool is kept for all connections of an alias, with the options of the first.
_SHARED = "pool"


def check(connection: Any, own: Collection[Any]) -> None:
    """Raises UnusableOptions if Django cannot work with `own`, the names of the alias's own OPTIONS.

    The errors of a server, of a driver about a server, and of Django's own checks say what is wrong,
    so they are none. Nor is an error that happens without these OPTIONS too.
    """
    options = dict(connection.settings_dict["OPTIONS"])
    options.pop(_SHARED, None)
    given = {name: value for name, value in options.items() if name in own}
    others = {name: value for name, value in options.items() if name not in own}
    error = _error(connection, options)
    if not error or _error(connection, others):
        return
    wrong = {name: value for name, value in given.items() if _error(connection, {**others, name: value})}
    raise UnusableOptions(_said(connection.alias, wrong or given, error, alone=bool(wrong)))


def check_kind(alias: str, options: Any) -> None:
    """Raises UnusableOptions unless they are a mapping, as Django needs them."""
    if not isinstance(options, Mapping):
        raise UnusableOptions(f"OPTIONS of the alias {alias!r} of DATABASES: {_kind(options)}; write a dict")


def _error(connection: Any, options: Mapping[Any, Any]) -> str:
    """The class of the error with which a query fails over a connection with these OPTIONS; "" if
    there is none, or one that says what is wrong.
    """
    trial = type(connection)({**connection.settings_dict, "OPTIONS": options}, connection.alias)
    try:
        with closing(trial), trial.cursor() as cursor:
            cursor.execute("SELECT 1")
            len(cursor.fetchall())
    except (Error, ImproperlyConfigured, OSError):
        return ""
    except Exception as error:
        return type(error).__name__
    return ""


def _said(alias: str, wrong: Mapping[Any, Any], error: str, *, alone: bool) -> str:
    named = " and ".join(f"OPTIONS[{name!r}], {_kind(value)}," for name, value in wrong.items())
    them, how = ("it", "") if len(wrong) == 1 else ("them", ", with each alone too" if alone else " together")
    return printable.one_line(
        f"{named} of the alias {alias!r}: no query works with {them}{how} ({error}). Correct {them} in DATABASES, or"
        f" remove {them}"
    )


def _kind(value: Any) -> str:
    """What sort of object it is, in words without its value."""
    return "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
