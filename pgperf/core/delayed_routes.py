"""Names of delayed routes: `tcp+0.5ms` is the route `tcp` with 0.5 ms more for each round trip.

No target of a database can have such a name. Standard library only.
"""

import re

#: Of a relay.
MOST_MS = 10_000.0
_DELAYED = re.compile(r"(?P<base>.+)\+(?P<ms>\d+(\.\d+)?)ms")


def lengthened(route: str, ms: float) -> str:
    """The name of the route with `ms` milliseconds more per round trip."""
    base, own = apart(route)
    return f"{base}+{round(own + ms, 3):g}ms"


def is_written_well(name: str) -> bool:
    """Is the delay, if there is one, more than 0, at most MOST_MS, and in the form of `lengthened`?"""
    base, ms = apart(name)
    return "+" not in base and (base == name or (0 < ms <= MOST_MS and lengthened(base, ms) == name))


def apart(name: str) -> tuple[str, float]:
    """The database's route, and the delay in ms; 0 if the route is not delayed."""
    found = _DELAYED.fullmatch(name)
    return (found["base"], float(found["ms"])) if found else (name, 0.0)
