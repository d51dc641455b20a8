"""The CPUs of each pooler of a run, by who reaches it.

The pooler of clients shares their CPUs, which leaves the server its own. Clients that request pages
have their CPUs for themselves: a pooler that web servers reach shares the web servers'. One that
both reach has those of the server of clients, which are some of the web servers' too: no client of
either kind runs there. Its backends are beside it.
"""

from pgperf.runner.cpu.placement import CpuPlacement

_REASONS = {
    (True, False): "those of the clients: only clients reach it",
    (False, True): "those of the web servers: only web servers reach it",
    (True, True): (
        "those of the server: web servers reach it as well as clients, and it works for both where no client runs"
    ),
}


class PoolerCpus:
    """Who reaches each pooler, as far as it was seen. Who reached it once counts from then on."""

    def __init__(self) -> None:
        self._by_clients: dict[int, set[str]] = {}  # pid -> routes
        self._by_web: dict[int, set[str]] = {}

    def reached(self, pid: int, route: str, by_web_servers: bool) -> None:
        """A variant over that route reaches the pooler, by its clients or by web servers."""
        (self._by_web if by_web_servers else self._by_clients).setdefault(pid, set()).add(route)

    @property
    def known(self) -> set[int]:
        return {*self._by_clients, *self._by_web}

    def is_beside_server(self, pid: int | None) -> bool:
        """Has it the server's CPUs, and not the clients'?"""
        return pid in self._by_web

    def is_shared(self, pid: int | None) -> bool:
        """Do both reach it?"""
        return pid in self._by_web and pid in self._by_clients

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
        cpus = ", ".join(map(str, sorted(self.of(pid, placed) or ())))
        return f"{cpus}; {_REASONS[pid in self._by_clients, pid in self._by_web]}"
