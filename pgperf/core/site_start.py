"""How long this site takes to start: its settings, its apps and what they import.

A client that runs the site's own calls starts the site too, which can take seconds. CPU time, because
a process that starts while others keep the machine busy takes longer than the next one.
"""

import time

#: A process that did something else before it started Django says nothing about the site.
_MOST_S = 30.0

_took_s = 0.0


def note() -> None:
    """Call it once, when Django is ready in this process."""
    global _took_s
    _took_s = min(time.process_time(), _MOST_S)


def seconds() -> float:
    """Of CPU time in this process, until Django was ready; 0 before."""
    return _took_s
