"""The routes that a definition names: the database's own, and delayed routes
(`pgperf.core.delayed_routes`).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pgperf.core.delayed_routes import apart
from pgperf.core.records import Route
from pgperf.delay.relay import DelayRelay


@contextmanager
def longer(near: Mapping[str, Route], names: Iterable[str]) -> Iterator[dict[str, Route]]:
    """The routes of these names.

    A delayed route leads through a relay to one of the database's routes, `near`.
    """
    with ExitStack() as relays:
        found = {}
        for name in names:
            base, ms = apart(name)
            route = near[base]
            if ms:
                relay = relays.enter_context(DelayRelay(route.host, route.port, ms))
                route = replace(relay.over(route), name=name)
            found[name] = route
        yield found
