"""How the clients work while the processes that serve them are looked for."""

import time
from collections.abc import Collection
from dataclasses import replace

import pytest

from pgperf.core import protocol
from pgperf.core.records import Route
from pgperf.runner.client_group import ClientGroup, find_server_cgroup
from pgperf.runner.plan import make_plan
from pgperf.runner.processes import web_processes
from pgperf.runner.processes.backends import Session, Sessions
from pgperf.runner.processes.web_processes import Connections, WebProcesses
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


def test_a_look_begins_when_clients_from_far_away_have_reached_the_servers() -> None:
    (variant, *_) = make_plan(definition(clients=(1,))).variants
    for hosts in (0, 1):  # of a load host's clients, the start is in the order
        group, asked_ns = Noting(replace(variant, hosts=hosts), "app"), time.monotonic_ns()
        with web_servers._working(group, 0.05):
            assert time.monotonic_ns() >= (group.begun.start_ns or asked_ns) + 50_000_000
        assert group.begun.window_ns == web_servers._MOMENT.window_ns + 50_000_000


@pytest.mark.parametrize(
    ("host", "relayed_host", "is_here"),
    [("127.0.0.1", "", True), ("192.0.2.7", "", False), ("127.0.0.1", "192.0.2.7", False)],
)
def test_the_web_server_is_at_the_checked_address(host: str, relayed_host: str, is_here: bool) -> None:
    """Of several that its name has. A delay relay has another address and port."""
    route = Route("web", host, 9000, "", "", "", url="http://localhost:8000", relayed_host=relayed_host)
    assert web_servers._end(route) == (relayed_host or host, 8000)
    assert web_servers.is_here(route) is is_here


END = ("127.0.0.1", 40_000)
OTHERS = (Session(11, "somebody", 50_000, "127.0.0.1"),)
SEEN = (*OTHERS, Session(12, "", END[1], END[0]))


@pytest.mark.parametrize(
    ("ends", "idle", "at_work", "pids", "elsewhere", "unknown"),
    [
        ({END}, SEEN, SEEN, [12], False, ""),
        ({END}, OTHERS, SEEN, [], False, ""),  # a backend for each request
        (set(), OTHERS, OTHERS, [], False, ""),  # a page without a query
        ({END}, OTHERS, OTHERS, [], True, "its web servers use another server than the run's"),
        ({END}, (), (), [], False, "visible from here"),  # the server is on another machine
    ],
)
def test_backends_are_looked_for_again_while_the_web_servers_work(
    monkeypatch: pytest.MonkeyPatch,
    ends: set[tuple[str, int]],
    idle: tuple[Session, ...],
    at_work: tuple[Session, ...],
    pids: list[int],
    elsewhere: bool,
    unknown: str,
) -> None:
    (variant, *_) = make_plan(definition(clients=(1,))).variants
    group = Noting(replace(variant, layer="http"), "app", web=WebProcesses(proxy=[], web=[7]))
    answers = iter([Sessions(idle)])

    def connections(found: Collection[int]) -> Connections:
        assert [*found] == [7]
        return Connections(frozenset(ends))

    monkeypatch.setattr(web_processes, "connections", connections)
    web_servers._find_backends(group, lambda: next(answers, Sessions(at_work)))
    assert (group.server_pids, group.server_elsewhere) == (pids, elsewhere)
    assert group.backends_pass == (not pids and not elsewhere)
    if unknown:
        find_server_cgroup([group])
        assert unknown in group.server_unknown


@pytest.mark.parametrize(
    ("found", "looks"),
    [
        (WebProcesses(proxy=[7], forwarded=True), 1),  # they never show
        (WebProcesses(proxy=[7]), len(web_servers._LOOKS_AFTER_S)),  # none was connected just then
        (WebProcesses(), 1),
    ],
)
def test_servers_behind_a_forwarder_are_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch, found: WebProcesses, looks: int
) -> None:
    (variant, *_) = make_plan(definition(clients=(1,))).variants
    group, looked = Noting(replace(variant, layer="http"), "app"), []

    def find(end: tuple[str, int], _working: object) -> WebProcesses:
        looked.append(end)
        return found

    monkeypatch.setattr(web_processes, "find", find)
    web_servers._look(group, END)
    assert looked == [END] * looks
    assert group.web == found
