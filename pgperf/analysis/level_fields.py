"""The fields of a run's levels as they are read from JSON, each checked: a kept file may have been
changed, and is read before anything is calculated. Pure.

Every function raises ValueError, which names the field.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pgperf.core.records import Variant

#: One value per block; a second tuple is subtracted from the first, where a third variant stands
#: between the two.
Values = tuple[tuple[float, ...], ...]

#: Far longer and far shorter than any operation: 30 years, and a millionth of a nanosecond.
LONGEST_US, SHORTEST_US = 1e15, 1e-9
#: The largest values: ln of such a time, ln of the ratio of two, and their difference in µs.
_LARGEST = {"log_us": 35.0, "log_over": 70.0, "us_over": LONGEST_US}
#: Of a field of samples: of all operations, or paired directly and by a third variant.
_MOST_SAMPLES = {"log_us": 1, "log_over": 2, "us_over": 2}
#: A run has at most 100 blocks.
_MOST_VALUES = 1_000
#: No factor of `stopping` is near it.
_MOST_WIDENED = 2.0
#: The whole numbers of a variant, with the least of each.
_COUNTS = {"clients": 1, "workers": 1, "control": 0, "hosts": 0}
_MOST_COUNTED = 1_000_000
#: Longer than any name that a form takes.
_LONGEST_NAME = 300
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")


def samples(name: str, stored: Any) -> Values:
    """Of a field of a Level."""
    if not isinstance(stored, list) or len(stored) > _MOST_SAMPLES[name]:
        raise ValueError(f"{name} is not a list of at most {_MOST_SAMPLES[name]} samples of numbers")
    return tuple(_sample(name, each) for each in stored)


def _sample(name: str, stored: Any) -> tuple[float, ...]:
    if not (isinstance(stored, list) and 0 < len(stored) <= _MOST_VALUES):
        raise ValueError(f"{name} has a sample that is not a list of numbers")
    most = _LARGEST[name]
    if wrong := [value for value in stored if not (is_number(value) and abs(value) <= most)]:
        raise ValueError(f"{name} has {_shown(wrong[0])}, which is not a number from -{most:g} to {most:g}")
    return tuple(map(float, stored))


def time(name: str, stored: Any) -> float | None:
    """In µs; None is not known."""
    if stored is None:
        return None
    if not (is_number(stored) and SHORTEST_US <= stored <= LONGEST_US):
        raise ValueError(f"{name} is {_shown(stored)}, which is not a time in µs")
    return float(stored)


def factor(name: str, stored: Any) -> float:
    """On half-widths."""
    if not (is_number(stored) and 1 <= stored < _MOST_WIDENED):
        raise ValueError(f"{name} is {_shown(stored)}, which is not a factor on half-widths")
    return float(stored)


def words(name: str, stored: Any) -> str:
    """A text for people in one line, such as the name of a route."""
    if not is_words(stored):
        raise ValueError(f"{name} is {_shown(stored)}, which is not a name")
    return str(stored)


def is_words(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and not _CONTROL.search(value)


def variant(stored: Any) -> Variant:
    """The variant of a level."""
    if not isinstance(stored, Mapping):
        raise ValueError(f"variant is {_shown(stored)}, which is not an object")
    try:
        found = Variant(**stored)
    except TypeError as error:
        raise ValueError(f"variant: {str(error).partition(' ')[2]}") from None
    for each in fields(Variant):
        _check(each.name, getattr(found, each.name))
    return found


def _check(name: str, value: Any) -> None:
    field = f"variant.{name}"
    if name in _COUNTS:
        fits = is_whole(value) and _COUNTS[name] <= value <= _MOST_COUNTED
    elif name == "named":
        fits = isinstance(value, bool)
    elif name == "rate":
        fits = value is None or (is_number(value) and 0 < value <= LONGEST_US)
    else:
        fits = is_words(value)
    if not fits:
        raise ValueError(f"{field} is {_shown(value)}")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """The value in a message; of long ones, what they are."""
    if isinstance(value, bool) or value is None or is_number(value):
        shown = str(value)
        return shown if len(shown) <= 30 else f"a number of {len(shown)} characters"
    if isinstance(value, str):
        return "an odd text"
    return "a list" if isinstance(value, list) else "an object"
