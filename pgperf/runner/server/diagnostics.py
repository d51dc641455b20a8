"""Diagnostic slices: a variant runs once more, untimed, while pgperf queries its server, pooler and
host.

If a source cannot be queried, a note says why, and pgperf does not query it again in this run. Only
the variant's own clients can fail the run.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from types import TracebackType
from typing import Any, Self, TypeVar

from pgperf.analysis.disturbances import OTHER_CPUS
from pgperf.core import layers, protocol
from pgperf.core.exceptions import ClientFailed, LayerUnavailable, ProtocolError
from pgperf.core.records import RECONNECTING, Route, most_direct
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import top
from pgperf.runner.server import pg_stat_activity, pg_stat_statements
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pg_stat_activity import SessionState
from pgperf.runner.server.pg_stat_statements import PgStatStatements, StatementCounts
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole
from pgperf.runner.slice_window import Durations, chains_of
from pgperf.runner.timed_slice import armed

T = TypeVar("T")

_SHARED_CONNECTIONS = (
    "pg_stat_statements.track is none, and behind a transaction pooler it cannot be switched on for one"
    " variant alone; set it to top on the server"
)
_DENIED = (
    "pg_stat_statements.track is none, and the login may not change that for its own sessions: GRANT SET ON PARAMETER"
    ' pg_stat_statements.track, compute_query_id TO "{}"'
)
_NEW_SESSIONS = (
    "pg_stat_statements.track is none, and cannot be switched on for sessions that begin within the slice; set it to"
    " top on the server"
)
_ON_LOAD_HOSTS = (
    "pg_stat_statements.track is none, and is not switched on for clients on load hosts; set it to top on the"
    " server"
)
_SEVERAL_WORKERS = (
    "pg_stat_statements.track is none, and is switched on for one session of a process only, not for those of several"
    " workers; set it to top on the server"
)
_POOL_RESETS = (
    "pg_stat_statements.track is none, and cannot be switched on in a pool that resets its sessions; set it to top on"
    " the server"
)
_HIDDEN = '{} may not see {}: GRANT pg_monitor TO "{}"'
_OF_WEB_SERVER = "the sessions of a web server serve other requests too, and are not told apart"
_NONE_OF_WEB_SERVER = "no backend of the web servers was found on this server"
#: The note if there is no direct route.
NO_DIRECT_ROUTE = (
    "every route goes through a pooler, where a query for session states would occupy the server connections that"
    " the clients wait for: add a direct route"
)


@dataclass(frozen=True)
class DiagnosticResult:
    """The result of one diagnostic slice: diagnostics (see analysis.diagnostics), and the
    processes. `taken_cpus`: how many CPUs of this host others used meanwhile. `has_failures`: a
    request failed, so what the sessions did counts for nothing.
    """

    diagnostics: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    taken_cpus: float = 0.0
    has_failures: bool = False

    @property
    def is_disturbed(self) -> bool:
        return self.taken_cpus >= OTHER_CPUS

    @property
    def badness(self) -> tuple[bool, float]:
        """Of two slices of a variant, the one with less of it counts."""
        return self.has_failures, self.taken_cpus

    def instead_of(self, disturbed: Self) -> Self:
        """This result with the programs of the one that it replaces, which may rest by now but have
        disturbed others.
        """
        others = [row for row in disturbed.top["processes"] if row["role"] == top.OTHER]
        return replace(self, top={**self.top, "disturbed_by": others})


@dataclass
class DiagnosticConnections:
    """The control connections of diagnostic slices, each opened when it is first needed. Use as a
    context manager.

    `routes` are the run's; `application` is the prefix of all its application names.
    """

    routes: Mapping[str, Route]
    application: str
    notes: dict[str, str] = field(default_factory=dict)  # source -> why it is no longer queried
    _open: dict[str, ControlConnection | PgBouncerConsole] = field(default_factory=dict)
    _statements: PgStatStatements | None = None

    def examine(self, group: ClientGroup, request: protocol.Slice, calls: int | None) -> DiagnosticResult:
        """Run the slice and poll meanwhile. `calls`: statements of one operation, None if unknown.

        Raises ClientFailed if the variant's own clients fail.
        """
        found = _DiagnosticSlice(self, group, self.routes[group.variant.route]).run(request)
        return replace(found, diagnostics={**found.diagnostics, "calls_expected": calls})

    @property
    def direct(self) -> Route:
        """The most direct route, over which the server is queried."""
        return most_direct(self.routes.values())

    def ask(self, source: str, query: Callable[[], T]) -> T | None:
        """The answer; None, with a note, if the source fails now or has failed before."""
        if source in self.notes:
            return None
        try:
            return query()
        except (ClientFailed, LayerUnavailable, ProtocolError) as error:
            self.notes[source] = str(error)
        except (LookupError, ValueError):
            self.notes[source] = f"{source}: this version of pgperf does not know its answer"
        self._close(source)
        return None

    def monitor(self, source: str) -> ControlConnection:
        """A connection for that source alone, so that its errors affect no other source."""
        if source not in self._open:
            self._open[source] = ControlConnection(self.direct, f"{self.application}-{source}").__enter__()
        found = self._open[source]
        assert isinstance(found, ControlConnection)
        return found

    def activity(self) -> ControlConnection:
        """Raises ClientFailed without a direct route: the query would disturb the sessions that it
        reads.
        """
        if self.direct.pooler:
            raise ClientFailed(NO_DIRECT_ROUTE)
        return self.monitor("activity")

    def console(self, route: Route) -> PgBouncerConsole:
        name = pooler_of(route)
        if name not in self._open:
            self._open[name] = PgBouncerConsole(route, f"{self.application}-console").__enter__()
        found = self._open[name]
        assert isinstance(found, PgBouncerConsole)
        return found

    def statements(self) -> PgStatStatements:
        """Raises ClientFailed with the reason if the counts cannot be read."""
        if self._statements is None:
            found = PgStatStatements.find(self.monitor("statements"))
            if isinstance(found, str):
                raise ClientFailed(found)
            self._statements = found
        return self._statements

    def pids(self) -> Iterator[int]:
        """The processes that work for its connections on this machine."""
        return chain.from_iterable(opened.pids() for opened in self._open.values())

    def _close(self, source: str) -> None:
        opened = self._open.pop(source, None)
        if opened is not None:
            opened.__exit__(ClientFailed, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for opened in self._open.values():
                stack.push(opened.__exit__)
        self._open.clear()


def pooler_of(route: Route) -> str:
    """The name of the source for a route's pooler."""
    return f"pooler of {route.name}"


@dataclass(frozen=True)
class _Poll:
    """The session states and the pool of one poll, and when it ended."""

    ended_ns: int
    samples: int
    states: Counter[SessionState]
    pool: dict[str, str] | None


class _DiagnosticSlice:
    """One variant's diagnostic slice."""

    def __init__(self, connections: DiagnosticConnections, group: ClientGroup, route: Route) -> None:
        self._connections, self._group, self._route = connections, group, route
        self._notes: dict[str, str] = {}
        self._states: Counter[SessionState] = Counter()
        self._samples = 0
        self._pools: list[dict[str, str]] = []
        self._too_late = self._has_failures = False
        self._switched_on = False
        self._backends: str | None = None  # a condition; None: the server cannot be asked

    def run(self, request: protocol.Slice) -> DiagnosticResult:
        counted = self._count() if self._counting() else None
        totals = self._totals()
        self._get_ready()
        processes = top.TopSnapshot.take(self._roles())
        begin = time.monotonic()
        ops = self._work(armed(self._group, request))
        seconds = time.monotonic() - begin
        used = top.between(processes, top.TopSnapshot.take(self._roles()))
        found = {
            "seconds": seconds,
            "ops": ops,
            "samples": self._samples,
            "sessions": [[*state, times] for state, times in sorted(self._states.items())],
            "pooler": self._pooler(totals),
            "statements": self._statements(counted),
        }
        self._switch_off()
        found["notes"] = self._all_notes()
        return DiagnosticResult(found, used, self._taken_cpus(used), self._has_failures)

    def _taken_cpus(self, used: Mapping[str, Any]) -> float:
        """What others took of this machine; 0 where nothing tells its clients from them."""
        return top.taken_cpus(used, os.cpu_count() or 1) if self._group.clients_seen else 0.0

    def _get_ready(self) -> None:
        """Connect before the slice: connecting may take longer than the slice."""
        self._backends = self._connections.ask("activity", self._condition)

    def _condition(self) -> str:
        """Whose states are sampled. The backends of web servers have names of the site's."""
        connection, group = self._connections.activity(), self._group
        if not self._route.url:
            return pg_stat_activity.named(group.applications)
        if group.backends_pass:
            return pg_stat_activity.begun_after(connection)
        return pg_stat_activity.numbered(group.server_pids or [0])

    def _work(self, request: protocol.Slice) -> int:
        """Run the slice; returns the operations of its lead-in and window together."""
        group = self._group
        group.begin(request)
        began_ns = request.start_ns or time.monotonic_ns()
        polls = self._poll_until(began_ns, began_ns + request.lead_in_ns + request.window_ns)
        replies, durations, _phases = group.collect(request)
        closes_ns = began_ns + request.lead_in_ns + request.window_ns
        works_until_ns = closes_ns if request.rate else min(map(ended_ns, replies, durations))
        self._has_failures = any(reply.errors for reply in replies)
        if not self._has_failures:
            self._keep([poll for poll in polls if poll.ended_ns <= works_until_ns])
        return sum(reply.lead_in_ops + reply.ops for reply in replies)

    def _keep(self, polls: Sequence[_Poll]) -> None:
        for poll in polls:
            self._states.update(poll.states)
            self._samples += poll.samples
            self._pools += [poll.pool] if poll.pool else []
        self._too_late = not polls

    def _poll_until(self, from_ns: int, until_ns: int) -> list[_Poll]:
        """Poll backends and pool until then. On a busy machine the last polls may end too late."""
        poll_ms = min(pg_stat_activity.POLL_MS, (until_ns - from_ns) // 4_000_000)
        polls: list[_Poll] = []
        time.sleep(max(0, from_ns - time.monotonic_ns()) / 1e9)
        while time.monotonic_ns() + poll_ms * 1_000_000 < until_ns:
            states, pool = self._poll(poll_ms), self._pool()
            if states is None and pool is None:
                break
            if states is None:
                time.sleep(poll_ms / 1000)
            samples = pg_stat_activity.samples(poll_ms) if states is not None else 0
            polls.append(_Poll(time.monotonic_ns(), samples, states or Counter(), pool))
        return polls

    def _poll(self, milliseconds: int) -> Counter[SessionState] | None:
        ask, backends = self._connections, self._backends
        if not backends:
            return None
        return ask.ask("activity", lambda: pg_stat_activity.poll(ask.activity(), backends, milliseconds))

    def _pool(self) -> dict[str, str] | None:
        return self._of_pooler(lambda console: console.pool())

    def _totals(self) -> dict[str, int] | None:
        return self._of_pooler(lambda console: console.totals())

    def _of_pooler(self, query: Callable[[PgBouncerConsole], T]) -> T | None:
        if not self._route.pooler:
            return None
        ask, route = self._connections, self._route
        return ask.ask(pooler_of(route), lambda: query(ask.console(route)))

    def _counting(self) -> bool:
        """Are the statements of this variant counted?

        Counting is switched on for its sessions if needed. Those of a web server are not its own.
        """
        if self._route.url:
            self._notes["statements"] = _OF_WEB_SERVER
            return False
        found = self._connections.ask("statements", self._connections.statements)
        if found is None or not self._shown(found):
            return False
        if found.track == "none" and (refusal := self._switch_on()):
            self._notes["statements"] = refusal
            return False
        return True

    def _switch_on(self) -> str:
        """Let the server count the statements of the variant's sessions; why not, or "" if it does."""
        if refusal := self._lasting_sessions():
            return refusal
        if not pg_stat_statements.switch_on(self._group.clients, self._group.ready[0].server_version):
            return _DENIED.format(self._route.user)
        self._switched_on = True
        return ""

    def _lasting_sessions(self) -> str:
        """Why what is set in the clients' sessions would not last in all of them; "" if it does."""
        variant = self._group.variant
        if self._route.pooler not in ("", "session"):
            return _SHARED_CONNECTIONS
        if self._makes_sessions():
            return _NEW_SESSIONS
        if variant.hosts:
            return _ON_LOAD_HOSTS
        if variant.workers > 1 and not layers.is_async(variant.layer):  # whose tasks share one session
            return _SEVERAL_WORKERS
        resets = variant.connect == "pool" and not layers.LAYERS[variant.layer].pool_module  # asyncpg's own
        return _POOL_RESETS if resets else ""

    def _switch_off(self) -> None:
        """What follows in the same sessions is timed without counting."""
        if self._switched_on:
            pg_stat_statements.switch_off(self._group.clients)

    def _makes_sessions(self) -> bool:
        """Does the slice make sessions of its own? Then nothing can be switched on in them before."""
        variant = self._group.variant
        return layers.runs_tool(variant.layer) or variant.connect in RECONNECTING

    def _shown(self, found: PgStatStatements) -> bool:
        ask, user = self._connections, self._route.user
        shown = ask.ask("statements", lambda: found.shows(ask.monitor("statements"), user))
        if shown is False:
            self._notes["statements"] = self._hidden(f"the statements of {user}")
        return bool(shown)

    def _hidden(self, what: str) -> str:
        login = self._connections.direct.user
        return _HIDDEN.format(login, what, login)

    def _count(self, since: str = "") -> StatementCounts | None:
        ask, user = self._connections, self._route.user
        return ask.ask(
            "statements",
            lambda: ask.statements().count(ask.monitor("statements"), user, ask.application, since),
        )

    def _statements(self, before: StatementCounts | None) -> dict[str, int] | None:
        after = self._count(before.moment) if before else None
        if before is None or after is None:
            return None
        return {
            "calls": after.calls - before.calls,
            "rows": after.rows - before.rows,
            "others": after.others,
        }

    def _pooler(self, before: dict[str, int] | None) -> dict[str, Any] | None:
        after = self._totals() if before is not None else None
        if before is None or after is None:
            return None
        spent = {name: total - before.get(name, 0) for name, total in after.items()}
        return {"totals": spent, "pools": _extremes(self._pools), "polls": len(self._pools)}

    def _roles(self) -> dict[str, Sequence[int]]:
        group = self._group
        return {
            "clients": [client.pid for client in group.clients],
            "proxy": group.web.proxy or [],
            "web": group.web.web or [],
            "pooler": [group.pooler_pid] if group.pooler_pid else [],
            "server": group.server_pids,
            "auxiliaries": group.auxiliary_pids,
            "runner": sorted(self._ours()),
        }

    def _ours(self) -> set[int]:
        """What else works for the run: this process, the relay, and those that query the server
        meanwhile.
        """
        return {os.getpid(), self._group.relay_pid or 0, *self._connections.pids()}

    def _all_notes(self) -> dict[str, str]:
        """The reason for each missing part."""
        known = self._connections.notes
        notes = {
            "wait_events": known.get("activity", self._reason_unseen()),
            "pooler": known.get(pooler_of(self._route), ""),
            "statements": self._notes.get("statements", known.get("statements", "")),
        }
        return {name: why for name, why in notes.items() if why}

    def _reason_unseen(self) -> str:
        """Why the variant's sessions were not seen; "" if they were."""
        if any(not state for state, _, _ in self._states):
            return self._hidden(f"what sessions of {self._route.user} do")
        if self._states:
            return ""
        if self._has_failures:
            return "a request failed in the slice, so what the sessions did counts for nothing"
        if self._too_late:
            return "the machine was too busy: no query for session states ended within the slice"
        if self._route.url:
            return self._group.server_unknown or _NONE_OF_WEB_SERVER
        return (
            "pg_stat_activity has no session of this variant: its pooler leads to another server, or does not"
            " pass application_name on"
        )


def ended_ns(reply: protocol.SliceReply, durations: Durations) -> int:
    """When the first of a client's workers had ended. A tool tells its own window."""
    if reply.window_ns:
        return reply.first_ns + reply.window_ns
    return min(chain.first_ns + int(chain.durations.sum()) for chain in chains_of(reply, durations))


def _extremes(pools: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The minimum and the maximum of each of the pool's numbers, and its mode."""
    numbers = [{name: int(value) for name, value in pool.items() if value.isdecimal()} for pool in pools]
    names = sorted(set().union(*numbers))
    extremes: dict[str, Any] = {
        name: [min(each[name] for each in numbers), max(each[name] for each in numbers)] for name in names
    }
    return {**extremes, "mode": pools[-1].get("pool_mode", "")} if pools else {}
