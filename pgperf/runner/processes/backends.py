"""The server's processes on this machine, and the connections that they serve."""

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import psutil

from pgperf.core.answers import ADDRESS, IDENTIFIER, NUMBER, PID, TEXT, WHOLE, ControlQuery
from pgperf.runner.cpu import schedstat
from pgperf.runner.processes import unix_sockets

#: Every connection of the server, including walsenders, and the workers of autovacuum, which come
#: and go. The start time is null for these, and for connections of other roles that the login may
#: not see; so are the client's port and address.
QUERY = """
SELECT pid, application_name, client_port,
       CASE WHEN usesysid IS NOT NULL THEN extract(epoch FROM backend_start) END, host(client_addr)
FROM pg_stat_activity WHERE datid IS NOT NULL
UNION ALL SELECT pid, NULL, NULL, NULL, NULL FROM pg_stat_replication
"""
SESSIONS = ControlQuery(
    "its sessions", QUERY, (PID.or_null, TEXT.or_null, WHOLE.or_null, NUMBER.or_null, ADDRESS.or_null)
)
OWN_SESSION = ControlQuery(
    "the process of this connection",
    "SELECT pid, extract(epoch FROM backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    (PID, NUMBER),
)
_HIDDEN = """
SELECT DISTINCT CASE WHEN rolsuper THEN 'pg_read_all_stats' ELSE rolname END, current_user
FROM pg_stat_activity JOIN pg_roles ON rolname = usename
WHERE application_name LIKE '{application}-%' AND backend_start IS NULL ORDER BY 1
"""
#: A pid of another machine may be an unrelated process here, so the start times must agree.
_START_TOLERANCE_S = 10.0


def hidden_from(application: str) -> ControlQuery:
    """What would show the login the hidden sessions of an application: a role, to grant to a login.

    Never the role of a superuser, whose members could become one.
    """
    sql = _HIDDEN.format(application=application)
    return ControlQuery("its hidden sessions", sql, (IDENTIFIER, IDENTIFIER))


#: The address and the TCP port of one end of a connection.
Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Session:
    """A connection as the server reports it. `address` and `port`: the client's; the port is -1 over
    a Unix socket.
    """

    pid: int
    application: str
    port: int
    address: str = ""

    @property
    def client(self) -> Endpoint:
        return self.address, self.port


@dataclass(frozen=True)
class Sessions:
    """The connections of a server whose processes are on this machine.

    `others`: the reported pids of all other connections; `hidden`: the application names of those
    that the login may not see; `elsewhere`: the server is on another machine after all.
    """

    here: Sequence[Session] = ()
    others: frozenset[int] = field(default_factory=frozenset)
    hidden: frozenset[str] = field(default_factory=frozenset)
    elsewhere: bool = False

    @classmethod
    def of(cls, rows: Iterable[Sequence[str | None]]) -> "Sessions":
        """From the rows of QUERY."""
        here, others, hidden = [], set(), set()
        for pid, application, port, born, address in rows:
            if born is None and application:
                hidden.add(application)
            if born is not None and is_backend(int(pid or 0), float(born)):
                here.append(Session(int(pid or 0), application or "", int(port or 0), address or ""))
            else:
                others.add(int(pid or 0))
        return cls(here, frozenset(others), frozenset(hidden))

    @classmethod
    def reported(cls, rows: Iterable[Sequence[str | None]]) -> "Sessions":
        """The connections of a server on another machine, as it reports them.

        Clients of its Unix sockets are on that machine, so they are not looked up on this one.
        """
        found = [
            Session(int(pid or 0), name or "", max(0, int(port or 0)), address or "")
            for pid, name, port, _born, address in rows
        ]
        return cls(found, elsewhere=True)

    def named(self, applications: Iterable[str]) -> list[int]:
        """The pids of connections with these application names, in the order of the names."""
        return [session.pid for name in applications for session in self.here if session.application == name]

    def from_process(self, pid: int) -> list[int]:
        """The pids of backends that a process of this machine is connected to; none if that is not
        visible. On the way to another machine its address may be translated, but seldom its port.
        """
        ends = own_ends(pid)
        local = [session.pid for session in self.here if session.port < 0]
        found = self.from_ends(ends) + unix_sockets.connected(pid, local)
        if found or not self.elsewhere:
            return found
        ports = {port for _address, port in ends}
        return [session.pid for session in self.here if session.port in ports]

    def from_ends(self, ends: Collection[Endpoint]) -> list[int]:
        """The pids of backends whose clients have these addresses and ports."""
        return [session.pid for session in self.here if session.client in ends]

    def auxiliaries(self) -> list[int]:
        """The server's processes that serve no connection; none if the server is not here.

        One that began after all connections may serve the next one, so it is left out.
        """
        if not self.here:
            return []
        serving = self.others | {session.pid for session in self.here}
        newest = max(schedstat.started(session.pid) for session in self.here)
        together = next(filter(None, (schedstat.siblings(session.pid) for session in self.here)), [])
        others = [pid for pid in together if pid not in serving]
        return [pid for pid in others if 0 < schedstat.started(pid) < newest]


def is_backend(pid: int, born_s: float) -> bool:
    """Is this pid, as a server reports it with its start time (seconds since 1970), a backend on
    this machine?
    """
    if not schedstat.backend_is_here(pid):
        return False
    try:
        return abs(psutil.Process(pid).create_time() - born_s) < _START_TOLERANCE_S
    except psutil.Error:
        return False


def own_ends(pid: int) -> set[Endpoint]:
    """The own ends of a process's TCP connections; none if they are not visible."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return set()
    own = [c.laddr for c in connections if c.pid == pid and c.status == psutil.CONN_ESTABLISHED]
    return {(unmapped(end.ip), end.port) for end in own}


def unmapped(address: str | bytes) -> str:
    """As a server writes it: a socket for both IP versions has IPv4 addresses in a longer form."""
    found = ipaddress.ip_address(address)
    return str(getattr(found, "ipv4_mapped", None) or found)
