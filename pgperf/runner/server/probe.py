"""The server side of a run: free slots, backends by application name, whether they may be pinned."""

from collections.abc import Callable
from typing import Any

from pgperf.core import layers
from pgperf.core.answers import WHOLE, ControlQuery
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Plan, Route, most_direct
from pgperf.runner import preflight
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu import placement, release, schedstat
from pgperf.runner.cpu.pooler_cpus import PoolerCpus
from pgperf.runner.memory import RunMemory
from pgperf.runner.processes import pooler_process
from pgperf.runner.processes.backends import OWN_SESSION, SESSIONS, Sessions, hidden_from, is_backend
from pgperf.runner.remote.server import Agent, RemoteProcesses, WatchRequest
from pgperf.runner.server import departure, web_servers
from pgperf.runner.server.control_connection import ControlConnection


class ServerProbe:
    """A run's control connection to its server, over the most direct route.

    The fake layer has no server.
    """

    def __init__(
        self,
        routes: list[Route],
        connection: ControlConnection | None,
        run_id: str,
        may_pin: bool,
        agent: Agent | None = None,
    ) -> None:
        self._connection = connection
        self._may_pin = may_pin
        self._web_routes: dict[str, Route] = {}
        self._agent = agent
        pooled = [route for route in routes if route.pooler]
        own = {route.name for route in pooled if pooler_process.is_own(route.host)}
        self._addresses = {route.name: (route.host, route.port) for route in pooled if route.name not in own}
        self._pinning = placement.TemporaryPinning()
        self._pooler_cpus = PoolerCpus()
        self._of_new_backends: frozenset[int] | None = None  # the CPUs that they inherit; None: all
        self._postmaster: int | None = None  # None: not on this machine, or not looked up yet
        self._since_ticks = 0  # no backend of a client began before that
        self.application = f"pgperf-{run_id}"
        #: The pid of the pooler of each pooled route; None if it is not visible.
        self._poolers = {
            route.name: pooler_process.process(route.port) if route.name in own else None for route in pooled
        }
        self._transaction_pooled = {route.name for route in pooled if route.pooler != "session"}
        self.pooler_pid = next((pid for pid in self._poolers.values() if pid), None)

    @classmethod
    def open(
        cls, plan: Plan, routes: dict[str, Route], run_id: str, may_pin: bool, agent: Agent | None = None
    ) -> "ServerProbe":
        used = [route for route in routes.values() if not route.url]
        web = {name: route for name, route in routes.items() if route.url}
        reach = any(layers.connects(each.layer) or layers.over_http(each.layer) for each in plan.variants)
        asks = bool(used) and reach
        probe = cls(used if asks else [], None, run_id, may_pin, agent if asks else None)
        probe._web_routes = web
        if asks:  # last, as it starts a process
            probe._connection = ControlConnection(most_direct(used), f"pgperf-{run_id}-monitor")
        return probe

    def __enter__(self) -> "ServerProbe":
        if self._connection:
            self._connection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._pinning.restore()
        finally:
            if self._connection:
                self._leave(self._connection, *error)

    def _leave(self, connection: ControlConnection, *error: Any) -> None:
        if error[0]:
            self._end_statements(connection)
        connection.__exit__(*error)

    def _end_statements(self, connection: ControlConnection) -> None:
        """End the statements of killed clients: a server notices a lost connection only after the
        statement.
        """
        self._end(connection, _THAT_WORK)

    def end_sessions(self) -> None:
        """End all sessions of clients: a server may never notice that a lost load host is gone."""
        if self._connection:
            self._end(self._connection, _OF_CLIENTS)

    def _end(self, connection: ControlConnection, which: str) -> None:
        try:
            with while_waiting(lambda: None):
                connection.query((_END_SESSIONS + which).format(self.application), _CLEAN_UP_S)
        except ClientFailed:
            pass  # the server is gone as well, or does not answer

    def call_agent(self) -> None:
        """Call the agent if the server's processes are not on this machine."""
        if self._agent and self._connection and not Sessions.of(self.rows(SESSIONS)).here:
            self._agent.ask()

    @property
    def is_here(self) -> bool:
        """Does the server run on this machine? Known after `pin_refusal`."""
        return self._postmaster is not None

    @property
    def can_be_asked(self) -> bool:
        """Is there a server? The fake layer has none."""
        return self._connection is not None

    def rows(self, query: ControlQuery) -> list[list[str | None]]:
        """The rows as text, checked; none without a server."""
        return self._connection.rows(query) if self._connection else []

    def all(self, query: ControlQuery) -> list[tuple[Any, ...]]:
        """Like `rows`, as typed values."""
        return self._connection.all(query) if self._connection else []

    def one(self, query: ControlQuery) -> tuple[Any, ...]:
        """Like `all`, of the only row; there must be a server."""
        assert self._connection
        return self._connection.one(query)

    def headroom(self, memory: RunMemory) -> preflight.Headroom:
        free = free_slots(self._connection) if self._connection else 1_000_000
        return preflight.Headroom(free, memory.allowed_bytes, memory.rule)

    def pin_refusal(self) -> str:
        """Why the server's backends may not be pinned; "" if they may."""
        if not self._connection:
            return _PIN_OFF if self._web_routes and not self._may_pin else ""
        pid, born_s = self._connection.one(OWN_SESSION)
        if is_backend(pid, born_s):
            self._postmaster, self._since_ticks = schedstat.parent(pid), schedstat.started(pid)
        if not self._may_pin:
            return _PIN_OFF
        if not self._postmaster:
            return "the server is not on this machine"
        return (
            ""
            if placement.may_pin(self._postmaster)
            else "the system does not allow pgperf to pin the server's processes"
        )

    def cpus_refusal(self, cpus: frozenset[int] | None) -> str:
        """Why the server's backends may not have these CPUs; "" if they may, known after
        `pin_refusal`. The backend of this connection tries: the kernel refuses what its control group
        lacks, or grants a part.
        """
        if not (cpus and self._connection and self._postmaster):
            return ""
        pid, _born_s = self._connection.one(OWN_SESSION)
        before = release.cpus_of(pid)
        granted = release.cpus_of(pid) if placement.pin(pid, cpus) else None
        placement.pin(pid, before)
        if granted == cpus:
            return ""
        listed = ", ".join(map(str, sorted(cpus)))
        return f"the server's control group (cpuset) does not allow it the CPUs {listed}"

    def bind(self, plan: Plan, cpu_placement: placement.CpuPlacement) -> None:
        """Note who reaches poolers, by the plan. Pin the postmaster for the run, if variants of the
        plan reconnect, as web servers may: the processes that it starts inherit its CPUs.
        """
        self._expect_poolers(plan)
        passing = [
            variant for variant in plan.variants if variant.backends_pass or layers.over_http(variant.layer)
        ]
        if self._postmaster and passing:
            cpus = cpu_placement.sides(all(layers.over_http(variant.layer) for variant in passing)).server
            self._pinning.pin(self._postmaster, cpus)
            self._of_new_backends = cpus

    def _expect_poolers(self, plan: Plan) -> None:
        """Cohorts run one after the other, and a pooler's place has to be that of all of them."""
        for variant in plan.variants:
            pooler = self._poolers.get(variant.route)
            if pooler and layers.connects(variant.layer):
                self._pooler_cpus.reached(pooler, variant.route, by_web_servers=False)
        asked = {variant.route for variant in plan.variants if layers.over_http(variant.layer)}
        web = {name: route for name, route in self._web_routes.items() if name in asked}
        self._pooler_cpus.expect(name for name, route in web.items() if web_servers.is_here(route))

    def departed(self, group: ClientGroup) -> str:
        """Wait until the backends of a group have left, where they pass; why not, else "".

        The connections of a pooler stay; they have to be idle.
        """
        if not (self._connection and group.backends_pass):
            return ""
        if group.variant.route in self._poolers:
            return departure.of_statements(self.all, group.applications)
        return departure.of_backends(
            self.all, group.applications, self._postmaster, since_ticks=self._since_ticks
        )

    def finder(self, cpu_placement: placement.CpuPlacement) -> Callable[[list[ClientGroup]], None]:
        """Fills in and pins the server processes of each group, found by application name."""

        def find(groups: list[ClientGroup]) -> None:
            for group in groups:
                self.departed(group)  # a backend on its way out would look like the server's own process
            rows = self.rows(SESSIONS)
            sessions = Sessions.of(rows)
            auxiliaries = sessions.auxiliaries()
            missing_grant = self._missing_grant()
            of_clients: list[int] = []
            for group in groups:
                route = group.variant.route
                backends = self._backends(sessions, group, groups)
                group.server_pids = backends if self._sees_all(sessions, group, groups) else []
                group.auxiliary_pids = auxiliaries
                group.pooled, group.pooler_pid = route in self._poolers, self._poolers.get(route)
                group.missing_grant = missing_grant if group.pooled else ""
                of_clients += backends
            self._find_web(groups)
            self._pin(groups, of_clients, cpu_placement)
            if self._agent and not sessions.here:
                self._watch(self._agent, rows, groups)

        return find

    def _find_web(self, groups: list[ClientGroup]) -> None:
        for name, web_route in self._web_routes.items():
            if over_it := [group for group in groups if group.variant.route == name]:
                web_servers.find(over_it, web_route, lambda: Sessions.of(self.rows(SESSIONS)))

    def _pin(
        self, groups: list[ClientGroup], backends: list[int], cpu_placement: placement.CpuPlacement
    ) -> None:
        """Pin what serves the groups. `backends`: those that serve clients directly or by a pooler."""
        for group in groups:
            self._note_pooler(group)
        self._pooler_cpus.place()
        for pid in backends:
            self._pinning.pin(pid, cpu_placement.server)
        for group in groups:
            group.pooler_beside_server = self._pooler_cpus.is_beside_server(group.pooler_pid)
            if layers.over_http(group.variant.layer):
                self._pin_web(group, cpu_placement)
        for pooler in self._pooler_cpus.known:
            self._pinning.pin(pooler, self._pooler_cpus.of(pooler, cpu_placement))

    def _pin_web(self, group: ClientGroup, cpu_placement: placement.CpuPlacement) -> None:
        of_clients, of_web = cpu_placement.sides(over_http=True)
        of_database = self._behind_web(group, cpu_placement)
        if group.relay_pid:  # a distance takes no CPU time from the web servers
            self._pinning.pin(group.relay_pid, of_clients)
        for pid in (*(group.web.proxy or ()), *(group.web.web or ())):
            self._pinning.pin(pid, of_web)
        for pid in group.server_pids:
            self._pinning.pin(pid, of_database)
        fewer = of_web and of_database and of_database < of_web
        group.database_cpus = len(of_database or ()) if fewer else None

    def _behind_web(self, group: ClientGroup, cpu_placement: placement.CpuPlacement) -> frozenset[int] | None:
        """The CPUs of the pooler and the backends that serve web servers; None: all."""
        if not (group.pooler_pid or group.server_pids):
            return self._of_new_backends
        shared = self._pooler_cpus.is_shared(group.pooler_pid)
        return cpu_placement.sides(over_http=not shared).server

    def _note_pooler(self, group: ClientGroup) -> None:
        layer, route = group.variant.layer, group.variant.route
        if group.pooler_pid and (layers.connects(layer) or layers.over_http(layer)):
            self._pooler_cpus.reached(group.pooler_pid, route, layers.over_http(layer))
        if group.web.web:
            self._pooler_cpus.saw(route)

    def pooler_placement(self, cpu_placement: placement.CpuPlacement) -> dict[str, str]:
        """Route -> the CPUs of its pooler and why, as far as poolers were seen."""
        return self._pooler_cpus.to_json(cpu_placement)

    def _missing_grant(self) -> str:
        """The GRANT that would show the sessions behind poolers; "" if the login sees them."""
        found = self.all(hidden_from(self.application)) if self._poolers else []
        return "; ".join(f"GRANT {role} TO {login}" for role, login in found)

    def _watch(self, agent: Agent, rows: list[list[str | None]], groups: list[ClientGroup]) -> None:
        """Have the agent on the server's host sample the processes of each group."""
        reported = Sessions.reported(rows)
        for group in groups:
            route = group.variant.route
            address = self._addresses.get(route)
            shared = bool(address) and route in self._transaction_pooled
            known = (shared or self._sees_all(reported, group, groups)) and not group.variant.backends_pass
            group.remote_processes = RemoteProcesses(
                self._backends(reported, group, groups) if known else [], address, shared
            )
        backends = sorted({pid for group in groups for pid in group.remote_processes.backends})
        nameless = [[pid, "", *rest] for pid, _name, *rest in rows]
        agent.watch(WatchRequest(nameless, backends, sorted(set(self._addresses.values()))))

    def _backends(self, sessions: Sessions, group: ClientGroup, groups: list[ClientGroup]) -> list[int]:
        """The backends that serve a group, as far as they can be found.

        A transaction pooler may use any of its server connections, and so may any pooler for clients
        whose backends pass: all of its route's count. The other variants are idle meanwhile, so the
        CPU time is the group's. Without a pooler, such clients have a new backend each time.
        """
        pooler = self._poolers.get(group.variant.route) if self._shares(group) else None
        connected = sessions.from_process(pooler) if pooler else []
        if group.variant.backends_pass:
            return connected
        return list(dict.fromkeys(sessions.named(self._names(group, groups)) + connected))

    def _shares(self, group: ClientGroup) -> bool:
        """May any server connection of its pooler serve it?"""
        return group.variant.route in self._transaction_pooled or group.variant.backends_pass

    def _sees_all(self, sessions: Sessions, group: ClientGroup, groups: list[ClientGroup]) -> bool:
        """Are all backends of the group visible?

        With a transaction pooler, only if its process is.
        """
        route = group.variant.route
        pooler_unseen = route in self._transaction_pooled and self._poolers[route] is None
        return not pooler_unseen and sessions.hidden.isdisjoint(self._names(group, groups))

    def _names(self, group: ClientGroup, groups: list[ClientGroup]) -> list[str]:
        """The application names of the connections that may serve a group."""
        route = group.variant.route
        if route not in self._transaction_pooled:
            return group.applications
        of_route = (other for other in groups if other.variant.route == route)
        return list(dict.fromkeys(name for other in of_route for name in other.applications))


def free_slots(connection: ControlConnection) -> int:
    """How many more connections the server accepts from this login."""
    (free,) = connection.one(_FREE_SLOTS)
    return max(0, free)


# Only pg_monitor sees the type of other roles' backends, so parallel workers count as connections
# here.
_FREE_SLOTS_SQL = """
SELECT least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0) - count(*),
    CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit - count(*) FILTER (WHERE a.usename = current_user) END,
    CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit - count(*) FILTER (WHERE a.datname = current_database()) END)
FROM pg_stat_activity a, pg_roles r, pg_database d
WHERE a.datid IS NOT NULL AND a.usesysid IS NOT NULL
  AND r.rolname = current_user AND d.datname = current_database()
GROUP BY r.rolconnlimit, d.datconnlimit
"""
_FREE_SLOTS = ControlQuery("its free connection slots", _FREE_SLOTS_SQL, (WHOLE,))
# One session that the login may not end would fail the whole statement: only a superuser ends those
# of superusers.
_END_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_roles r ON r.oid = usesysid
WHERE pid <> pg_backend_pid()
  AND (pg_has_role(usesysid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
  AND (NOT rolsuper OR current_setting('is_superuser')::bool) AND """
_THAT_WORK = "application_name LIKE '{}-%' AND state <> 'idle'"
_OF_CLIENTS = "application_name ~ '^{}-[0-9]'"
_CLEAN_UP_S = 5.0
_PIN_OFF = "PGPERF['PIN_SERVER'] is off"
