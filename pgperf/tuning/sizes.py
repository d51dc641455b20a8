"""Sizes of memory as PostgreSQL reads and prints them: whole numbers with a unit of 1024 (pure)."""

import re

from pgperf.core.exceptions import InvalidDefinition

#: kB in each unit, the largest first.
UNITS = {"TB": 1 << 30, "GB": 1 << 20, "MB": 1 << 10, "kB": 1}
_SHOWN = re.compile(r"(\d{1,18})(TB|GB|MB|kB)", re.ASCII)
_TYPED = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(TB|GB|MB|KB)", re.IGNORECASE | re.ASCII)


def shown(kb: int) -> str:
    """The size in the largest unit that divides it, as SHOW prints it: 245760 as 240MB."""
    unit = next(unit for unit, size in UNITS.items() if kb % size == 0 and (kb or size == 1))
    return f"{kb // UNITS[unit]}{unit}"


def kb(text: str) -> int | None:
    """The size that SHOW printed, in kB; None for other text."""
    found = _SHOWN.fullmatch(text)
    return int(found[1]) * UNITS[found[2]] if found else None


def typed_kb(text: str) -> int:
    """The size that a user typed, such as 16GB or 1.5 gb, in kB.

    Raises InvalidDefinition for other text.
    """
    found = _TYPED.fullmatch(text.strip())
    if not found:
        raise InvalidDefinition(f"memory: {text[:40]!r} is no size; write a number with MB, GB or TB: 16GB")
    units = {unit.lower(): size for unit, size in UNITS.items()}
    return int(float(found[1]) * units[found[2].lower()])
