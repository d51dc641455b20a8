"""The CPUs of each pooler of a run, by who uses it.

The pooler of clients shares their CPUs, which leaves the server its own. Clients that request pages
have their CPUs for themselves: a pooler that web servers reach shares the web servers'. One that
both reach has those of the server of clients, which are some of the web servers' too: no client of
either kind runs there. Its backends are beside it.

A place holds for the whole run. Where web servers may use a pooler of clients, and it is not seen
before the first slice whether they do, that pooler has the place of one that both reach.
"""

from collections.abc import Iterable

from pgperf.runner.cpu.placement import CpuPlacement

_OF_CLIENTS, _OF_SERVER = "as the clients", "as the database server"
_REASONS = {
    (True, False): f"{_OF_CLIENTS}: only clients use this pooler",
    (False, True): "as the web servers: only web servers use this pooler",
    (True, True): f"{_OF_SERVER}: clients and web servers use this pooler, and no client runs there",
}
_PERHAPS = f"{_OF_SERVER}: clients use this pooler, and web servers may, too"


class PoolerCpus:
    """Who reaches each pooler, by the plan or as it was seen. Who reached it once counts from then
    on.
    """

    def __init__(self) -> None:
        self._by_clients: dict[int, set[str]] = {}  # pid -> routes
        self._by_web: dict[int, set[str]] = {}
        self._unseen: set[str] = set()  # routes of web servers that may use any of them
        self._perhaps: set[int] = set()  # those that web servers might use when they were placed
        self._with_clients: set[int] = set()  # those that were placed there

    def expect(self, routes: Iterable[str]) -> None:
        """Variants over these routes go to web servers, which may reach any pooler."""
        self._unseen |= set(routes)

    def saw(self, route: str) -> None:
        """The web servers of that route have been seen, and whom they reach."""
        self._unseen.discard(route)

    def reached(self, pid: int, route: str, by_web_servers: bool) -> None:
        """A variant over that route reaches the pooler, by its clients or by web servers."""
        (self._by_web if by_web_servers else self._by_clients).setdefault(pid, set()).add(route)

    def place(self) -> None:
        """Choose the places before a slice: a pooler of clients keeps the one that it has, unless web
        servers that have been seen without it reach it after all.
        """
        if self._unseen:
            self._perhaps |= set(self._by_clients) - self._with_clients
        self._with_clients |= {pid for pid in self._by_clients if not self.is_beside_server(pid)}

    @property
    def known(self) -> set[int]:
        return {*self._by_clients, *self._by_web}

    def is_beside_server(self, pid: int | None) -> bool:
        """Has it the server's CPUs, and not the clients'?"""
        return pid in self._by_web or pid in self._perhaps

    def is_shared(self, pid: int | None) -> bool:
        """Do both reach it, or may they?"""
        return pid in self._by_clients and self.is_beside_server(pid)

    def of(self, pid: int, placed: CpuPlacement) -> frozenset[int] | None:
        """The CPUs to pin it to; None leaves it to the scheduler."""
        if self.is_beside_server(pid):
            return placed.sides(over_http=not self.is_shared(pid)).server
        return placed.clients

    def to_json(self, placed: CpuPlacement) -> dict[str, str]:
        """Route -> the CPUs of its pooler, and why; nothing where all roles have the same CPUs."""
        if placed.placement != "apart":
            return {}
        return {
            route: self._reason(pid, placed)
            for routes in (self._by_clients, self._by_web)
            for pid in routes
            for route in sorted(routes[pid])
        }

    def _reason(self, pid: int, placed: CpuPlacement) -> str:
        by_clients, by_web = pid in self._by_clients, pid in self._by_web
        reason = _PERHAPS if pid in self._perhaps and not by_web else _REASONS[by_clients, by_web]
        if pid in self._with_clients and by_web:
            reason += f"; until that was seen, {_named(placed.clients)}, {_OF_CLIENTS}"
        return f"{_named(self.of(pid, placed))}, {reason}"


def _named(cpus: Iterable[int] | None) -> str:
    numbers = sorted(cpus or ())
    return f"CPU{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
