"""Groups of fake clients, started as a run starts them."""

from collections.abc import Iterator
from contextlib import contextmanager

from pgperf.core.records import Route
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_startup import started
from pgperf.runner.plan import make_plan
from tests.runner.builders import definition


@contextmanager
def groups_of(
    *clients: int, cold: bool = False, workers: int = 1, connect: str = "persistent"
) -> Iterator[list[ClientGroup]]:
    what = definition(clients=clients, workers=workers, connection_modes=(connect,))
    named = [(variant, f"run-{at}") for at, variant in enumerate(make_plan(what).variants)]
    route = Route("here", "localhost", 1, "none", "nobody", "")
    with started(what, named, {"here": route}, "", cold, None) as groups:
        yield groups
