"""The processes that the probe finds for a variant, on a real server and pooler."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from pgperf.core.records import Page, Route, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import release, schedstat
from pgperf.runner.cpu.placement import CpuPlacement, Sides, TemporaryPinning
from pgperf.runner.plan import make_plan
from pgperf.runner.processes import pooler_process
from pgperf.runner.processes.backends import OWN_SESSION, SESSIONS
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.remote.server import AgentSamples, WatchRequest
from pgperf.runner.server import departure, probe
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.probe import ServerProbe
from tests.core.builders import variant
from tests.runner.builders import definition

NAME = "pgperf-lent-0"
HIDDEN = [["17", NAME, None, None, None]]


def login_of(route: Route) -> dict[str, Any]:
    return {name: getattr(route, name) for name in ("host", "port", "dbname", "user", "password")}


@pytest.fixture
def shared(stack: dict[str, str], routes: dict[str, Route]) -> Iterator[Route]:
    """A route by transaction, and a client on it, whose name its last server connection has."""
    port = int(stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"])
    route = replace(routes["pgbouncer"], name="lent", port=port, pooler="transaction")
    with psycopg.connect(**login_of(route), application_name=NAME, autocommit=True) as client:
        client.execute("SELECT 1")
        yield route


@pytest.fixture
def monitor(routes: dict[str, Route]) -> Iterator[ControlConnection]:
    with ControlConnection(routes["tcp"], "pgperf-lent-monitor") as monitor:
        yield monitor


class Agent:
    """What it was told to watch."""

    orders: list[WatchRequest]

    def __init__(self) -> None:
        self.orders = []

    def ask(self) -> None: ...

    def watch(self, order: WatchRequest) -> None:
        self.orders.append(order)

    def hand_over(self) -> AgentSamples | None:
        return None

    def facts(self) -> dict[str, Any]:
        return {}


def found(over: Route, monitor: ControlConnection, agent: Agent | None = None) -> ClientGroup:
    """The one group of a run over that route, with its server processes."""
    group = ClientGroup(
        variant(workload="w", route=over.name, placement="scheduler"),
        NAME,
    )
    ServerProbe([over], monitor, "lent", False, agent).finder(CpuPlacement("scheduler"))([group])
    return group


def test_a_backend_on_its_way_out_is_not_one_of_the_servers_own_processes(
    routes: dict[str, Route], monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that reconnect have given back their first connection just now."""
    calls: list[str] = []
    monkeypatch.setattr(ServerProbe, "departed", lambda self, group: calls.append(group.variant.label))
    rows = ServerProbe.rows
    monkeypatch.setattr(ServerProbe, "rows", lambda self, query: calls.append("rows") or rows(self, query))
    group = found(routes["tcp"], monitor)
    assert calls == [group.variant.label, "rows"]
    assert group.auxiliary_pids


def test_a_process_from_before_the_run_is_none_of_a_slice(
    routes: dict[str, Route], monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process stands for a background worker of the server that no view lists."""
    over = ServerProbe([routes["tcp"]], monitor, "lent", False)
    over.pin_refusal()
    assert over.is_here
    monkeypatch.setattr(schedstat, "children", lambda pid: [os.getpid()])
    monkeypatch.setattr(departure, "_awaited", lambda pids, deadline: len(pids))
    group = ClientGroup(variant(workload="w", route="tcp", connect="per_operation"), NAME)
    assert over.departed(group) == ""


def test_the_backends_of_a_server_must_get_the_cpus_that_they_are_given(
    routes: dict[str, Route], monitor: ControlConnection
) -> None:
    """A cpuset refuses CPUs, or grants a part of them without a word."""
    pid, _born_s = monitor.one(OWN_SESSION)
    before = release.cpus_of(pid)
    assert before
    one = frozenset(sorted(before)[:1])
    over = ServerProbe([routes["tcp"]], monitor, "lent", True)
    assert over.cpus_refusal(one) == "", "not known yet whether the server is here"
    if over.pin_refusal():
        pytest.skip("needs the right to pin the server's processes")
    assert [over.cpus_refusal(cpus) for cpus in (None, one, before)] == ["", "", ""]
    more = before | {max(before) + 1_000}
    assert "(cpuset) does not allow it the CPUs" in over.cpus_refusal(more)
    assert "(cpuset)" in over.cpus_refusal(frozenset({max(before) + 1_000}))
    assert release.cpus_of(pid) == before


@pytest.mark.parametrize(("seconds", "is_here"), [(0, True), (-60, False)])
def test_a_server_elsewhere_may_report_the_pid_of_a_backend_here(
    monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch, seconds: int, is_here: bool
) -> None:
    pid, born_s = monitor.one(OWN_SESSION)
    monkeypatch.setattr(monitor, "one", lambda query: (pid, born_s + seconds))
    over = ServerProbe([], monitor, "lent", False)
    over.pin_refusal()
    assert over.is_here is is_here


def test_backends_of_a_transaction_pooler_are_found_through_its_process(
    shared: Route, monitor: ControlConnection
) -> None:
    group = found(shared, monitor)
    assert group.pooler_pid == pooler_process.process(shared.port)
    assert group.server_pids
    assert group.processes().server == group.server_pids


def test_backends_of_an_invisible_transaction_pooler_are_unknown(
    shared: Route, monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with the variant's name are a part of them."""
    monkeypatch.setattr(pooler_process, "process", lambda port: None)
    assert found(replace(shared, pooler="session"), monitor).server_pids
    group = found(shared, monitor)
    assert (group.pooled, group.server_pids) == (True, [])
    assert group.processes().server is group.processes().pooler is None


def test_a_hidden_session_makes_the_backends_unknown(
    shared: Route, monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pooler's connections for other logins are not those that are meant."""
    real = ServerProbe.rows
    monkeypatch.setattr(
        ServerProbe, "rows", lambda self, query: real(self, query) + (HIDDEN if query is SESSIONS else [])
    )
    assert found(shared, monitor).processes().server is None


def test_an_invisible_pooler_and_a_server_on_another_host(
    shared: Route, monitor: ControlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent finds the pooler's backends only if the pooler is on the agent's machine."""
    monkeypatch.setattr("pgperf.runner.processes.backends.is_backend", lambda pid, born_s: False)
    monkeypatch.setattr(pooler_process, "process", lambda port: None)
    agent = Agent()
    assert found(shared, monitor, agent).remote_processes.backends == []
    monkeypatch.setattr(pooler_process, "is_own", lambda host: False)
    there = found(shared, monitor, agent).remote_processes
    assert there.backends
    assert (there.pooler, there.shared) == ((shared.host, shared.port), True)
    assert [order.poolers for order in agent.orders] == [[], [(shared.host, shared.port)]]
    assert {row[4] for row in agent.orders[0].sessions} == {None, "127.0.0.1"}


def test_the_sessions_of_other_logins_do_not_keep_those_of_clients(
    routes: dict[str, Route], monitor: ControlConnection, superuser_login: dict[str, Any]
) -> None:
    """The monitor's login may end neither a superuser's session nor that of a stranger."""
    own = login_of(routes["tcp"])
    named = {"dbname": own["dbname"], "application_name": NAME}
    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(**superuser_login, **named))
        stack.callback(admin.execute, "DROP ROLE pgperf_stranger")
        admin.execute("CREATE ROLE pgperf_stranger LOGIN PASSWORD 'of another'")
        other = {**own, "user": "pgperf_stranger", "password": "of another", "application_name": NAME}
        stranger = stack.enter_context(psycopg.connect(**other, autocommit=True))
        client = stack.enter_context(psycopg.connect(**own, application_name=NAME, autocommit=True))
        ServerProbe([routes["tcp"]], monitor, "lent", False).end_sessions()
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            client.execute("SELECT 1")
        for left in (admin, stranger):
            left.execute("SELECT 1")
    assert monitor.query("SELECT 1") == [["1"]]


class Pins:
    """The CPUs that each process was pinned to."""

    def __init__(self) -> None:
        self.given: dict[int, set[frozenset[int] | None]] = {}

    def pin(self, pid: int, cpus: frozenset[int] | None) -> None:
        self.given.setdefault(pid, set()).add(cpus)


CLIENTS, SERVER, BEHIND = frozenset({0, 1}), frozenset({2, 3}), frozenset({1, 2, 3})
FOUR = CpuPlacement("apart", CLIENTS, SERVER, Sides(frozenset({0}), BEHIND))


def behind(route: str, pooler: int | None, backends: list[int]) -> ClientGroup:
    """A group that requests pages of web server 21 behind proxy 20."""
    group = ClientGroup(variant(layer="http", route=route), NAME)
    group.web = WebProcesses(proxy=[20], web=[21])
    group.pooler_pid, group.server_pids = pooler, backends
    return group


def through(pooler: int) -> ClientGroup:
    group = ClientGroup(variant(layer="psycopg", route="pgbouncer"), NAME)
    group.pooler_pid = pooler
    return group


@pytest.mark.parametrize(
    ("groups", "backends", "expected"),
    [
        ([behind("web", 30, [40])], [], {20: BEHIND, 21: BEHIND, 30: BEHIND, 40: BEHIND}),
        ([behind("web", None, [40]), through(30)], [41], {20: BEHIND, 21: BEHIND, 30: CLIENTS, 40: BEHIND, 41: SERVER}),
        ([through(30), behind("web", 30, [40])], [40], {20: BEHIND, 21: BEHIND, 30: SERVER, 40: SERVER}),
    ],
    ids=["web servers alone", "each its own", "one pooler for both"],
)  # fmt: skip
def test_each_process_is_pinned_to_one_place(
    groups: list[ClientGroup], backends: list[int], expected: dict[int, frozenset[int]]
) -> None:
    over = ServerProbe([], None, "lent", True)
    over._pinning = pins = Pins()  # type: ignore[assignment]
    over._pin(groups, backends, FOUR)
    assert pins.given == {pid: {cpus} for pid, cpus in expected.items()}


def test_a_simulated_distance_takes_no_cpu_time_from_the_web_servers() -> None:
    over = ServerProbe([], None, "lent", True)
    over._pinning = pins = Pins()  # type: ignore[assignment]
    group = behind("web", None, [40])
    group.relay_pid = 50
    over._pin([group], [], FOUR)
    assert pins.given[50] == {FOUR.sides(over_http=True).clients}


WITH_PAGES = definition(
    workloads=(WorkloadDefinition("page", "SELECT 1", page=Page("/")),), layers=("psycopg", "http"),
    routes=("pgbouncer", "web"), web_routes={"web": ""}, nominal_us={},
)  # fmt: skip


@pytest.mark.parametrize(
    ("cohorts", "cpus", "reason"),
    [
        ([[through(30)], [behind("web", 30, [40])]], SERVER, "clients and web servers use this pooler"),
        ([[behind("web", 30, [40])], [through(30)]], SERVER, "clients and web servers use this pooler"),
        ([[through(30)], [behind("web", None, [40])]], SERVER, "web servers may, too"),
        ([[behind("web", None, [40])], [through(30)]], CLIENTS, "only clients use this pooler"),
        ([[through(30), behind("web", None, [40])]], CLIENTS, "only clients use this pooler"),
    ],
    ids=["clients first", "pages first", "clients first, each its own", "pages first, each its own", "each its own"],
)  # fmt: skip
def test_a_pooler_has_one_place_in_all_cohorts(
    cohorts: list[list[ClientGroup]], cpus: frozenset[int], reason: str
) -> None:
    over = ServerProbe([], None, "lent", True)
    over._pinning, over._poolers = (pins := Pins()), {"pgbouncer": 30}  # type: ignore[assignment]
    over._web_routes = {"web": Route("web", "127.0.0.1", 1, "", "", "", url="http://127.0.0.1:1")}
    over.bind(make_plan(WITH_PAGES), FOUR)
    for groups in cohorts * 2:
        over._pin(groups, [], FOUR)
    assert pins.given[30] == {cpus}
    assert reason in over.pooler_placement(FOUR)["pgbouncer"]


@pytest.mark.parametrize(
    ("groups", "fewer"),
    [([behind("web", 30, [40])], None), ([through(30), behind("web", 30, [40])], len(SERVER))],
    ids=["web servers alone", "one pooler for both"],
)
def test_a_database_that_has_fewer_cpus_than_web_servers_says_how_many(
    groups: list[ClientGroup], fewer: int | None
) -> None:
    over = ServerProbe([], None, "lent", True)
    over._pinning = Pins()  # type: ignore[assignment]
    over._pin(groups, [], FOUR)
    assert [group.database_cpus for group in groups] == [*[None] * (len(groups) - 1), fewer]


@pytest.mark.parametrize(
    ("layers", "cpus", "fewer"),
    [
        (("http",), BEHIND, None), (("psycopg",), SERVER, len(SERVER)), (("psycopg", "http"), SERVER, len(SERVER)),
    ],
)  # fmt: skip
def test_new_backends_have_the_cpus_that_serve_all_who_reconnect(
    layers: tuple[str, ...], cpus: frozenset[int], fewer: int | None
) -> None:
    what = replace(WITH_PAGES, layers=layers, routes=("tcp", "web"), connection_modes=("per_operation",))
    over = ServerProbe([], None, "lent", True)
    over._pinning, over._postmaster = (pins := Pins()), 7  # type: ignore[assignment]
    over.bind(make_plan(what), FOUR)
    assert pins.given == {7: {cpus}}
    group = behind("web", None, [])
    over._pin([group], [], FOUR)
    assert group.database_cpus == fewer, "those of backends that begin with each request"


class Left:
    """A connection that notes its end."""

    ended = False

    def __exit__(self, *error: Any) -> None:
        self.ended = True


def test_processes_that_cannot_be_released_keep_no_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: TemporaryPinning) -> None:
        raise RuntimeError

    connection = Left()
    monkeypatch.setattr(TemporaryPinning, "restore", fail)
    with pytest.raises(RuntimeError):
        ServerProbe([], connection, "lent", False).__exit__(None, None, None)  # type: ignore[arg-type]
    assert connection.ended


def test_nothing_is_connected_where_the_pooler_cannot_be_looked_for(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that was started then would stay."""
    made: list[object] = []
    monkeypatch.setattr(probe, "ControlConnection", lambda *given: made.append(given))
    plan = make_plan(definition(layers=("psycopg",), routes=("tcp", "pgbouncer"), nominal_us={}))
    ServerProbe.open(plan, routes, "odd", may_pin=False)
    assert len(made) == 1

    def unknown(host: str) -> bool:
        raise OSError(host)

    monkeypatch.setattr(pooler_process, "is_own", unknown)
    with pytest.raises(OSError, match=routes["pgbouncer"].host):
        ServerProbe.open(plan, routes, "odd", may_pin=False)
    assert len(made) == 1


def test_free_slots_count_only_connections_the_login_may_open(
    monitor: ControlConnection, superuser_login: dict[str, Any]
) -> None:
    """What is reserved is not free, and a limit of the login's own comes first."""
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        (setting,) = admin.execute("SHOW max_connections").fetchone() or ()
    most = int(setting) - 3  # which PostgreSQL reserves for a superuser
    before = probe.free_slots(monitor)
    assert most - 100 < before < most
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        admin.execute("ALTER ROLE pgperf CONNECTION LIMIT 50")
        try:
            assert probe.free_slots(monitor) < 50
            admin.execute("ALTER ROLE pgperf CONNECTION LIMIT 0")
            assert probe.free_slots(monitor) == 0
        finally:
            admin.execute("ALTER ROLE pgperf CONNECTION LIMIT -1")
