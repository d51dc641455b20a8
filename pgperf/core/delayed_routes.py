"""Routes made longer by a delay: `tcp+0.5ms` is route `tcp` with half a millisecond more for each round trip.

No target of a database can have such a name. Standard library only.
"""

import re

_FAR = re.compile(r"(?P<base>.+)\+(?P<ms>\d+(\.\d+)?)ms")


def lengthened(route: str, ms: float) -> str:
    """The name of that route with so many milliseconds more per round trip."""
    base, own = apart(route)
    return f"{base}+{round(own + ms, 3):g}ms"


def apart(name: str) -> tuple[str, float]:
    """The route of a database that the name begins with, and the milliseconds that it adds; 0 for that route itself."""
    found = _FAR.fullmatch(name)
    return (found["base"], float(found["ms"])) if found else (name, 0.0)
