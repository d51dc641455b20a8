"""Delay relays in front of PostgreSQL's TCP port, which simulate distance."""

import sys

from example.stack.part import Part
from example.stack.pgbouncer import accepts
from example.stack.place import Place
from example.stack.state import State
from example.stack.web import CHECKOUT

#: Part and route -> round trip in milliseconds: another zone of a region, another continent.
DISTANCES = {"distance_05ms": 0.5, "distance_45ms": 45.0}


def part(place: Place, state: State, name: str) -> Part:
    port = state.ports[name]
    options = f"-m pgperf.delay.relay --to 127.0.0.1:{state.ports['postgres']} --rtt-ms {DISTANCES[name]} --port {port}"
    return Part(
        name=f"distance of {DISTANCES[name]:g} ms",
        argv=[sys.executable, *options.split()],
        log=place.own / f"{name}.log",
        answers=lambda _: accepts(port),
        cwd=CHECKOUT,
    )
