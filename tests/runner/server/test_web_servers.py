"""How the clients work while the processes that serve them are looked for."""

import time
from dataclasses import replace

from pgperf.core import protocol
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.plan import make_plan
from pgperf.runner.server import web_servers
from pgperf.runner.slice_window import Recorded
from tests.runner.builders import definition


class Noting(ClientGroup):
    """A group on a load host that notes what it is asked for."""

    def begin(self, request: protocol.Slice) -> None:
        self.begun = request

    def collect(self, request: protocol.Slice) -> Recorded:
        self.collected = request
        return Recorded([], [], [])


def test_clients_on_a_load_host_have_begun_when_processes_are_looked_for() -> None:
    (variant, *_) = make_plan(definition(clients=(1,))).variants
    group = Noting(replace(variant, hosts=1), "app")
    ordered_ns = time.monotonic_ns()
    with web_servers._working(group):
        assert ordered_ns < group.begun.start_ns <= time.monotonic_ns()
    assert group.collected == group.begun
