"""The agent's side, on the database's host: carries out a run's orders until the run is over.

It samples only the processes that an order names, and only after it has verified them: PostgreSQL
backends that began when the server says they did, the server's own processes, a pooler that listens
on an address of this host.
"""

import logging
import platform
import time
from functools import partial
from typing import Any

from pgperf.agent import clock, rows
from pgperf.conf import get_settings
from pgperf.runner.cpu import top
from pgperf.runner.cpu.host import Host
from pgperf.runner.processes import pooler_process
from pgperf.runner.processes.backends import Sessions
from pgperf.runner.remote.counters import run_column
from pgperf.runner.remote.sampler import Sampler, meters
from pgperf.runner.remote.server import Address, RemotePooler, WatchRequest
from pgperf.runs.db_retry import retry_while_down

logger = logging.getLogger(__name__)

#: Seconds between two queries for an order: while the agent is idle, and at most while it samples.
#: Then each query disturbs a slice, so the agent waits a tenth of the time that has passed.
IDLE_S, _BUSY_S = 0.1, 1.0
_BUSY_SHARE = 0.1
#: Share of STALE_SECONDS for which it retries while the site's database is down.
_RETRY_SHARE = 2 / 3


def serve(row_id: int, agent: str, refusal: str = "") -> None:
    """Serve the run of that row until it is over.

    Without effect if another agent has the row, or if it was deleted.
    """
    if rows.claim(row_id, agent, refusal) and not refusal:
        logger.info("pgperf agent: watching for row %s", row_id)
        _Service(row_id, agent).run()


def pause_s(since_s: float | None) -> float:
    """Seconds until the next poll for an order, `since_s` after the last one; None while nothing is
    sampled.
    """
    return IDLE_S if since_s is None else min(_BUSY_S, max(IDLE_S, since_s * _BUSY_SHARE))


class _Service:
    """One run's orders."""

    def __init__(self, row_id: int, agent: str) -> None:
        self._row_id, self._agent = row_id, agent
        self._done = 0
        self._ordered_s = 0.0
        self._sampler: Sampler | None = None
        self._began_s = 0.0
        self._pids: list[int] = []

    def run(self) -> None:
        """Returns when the run is over or silent; the reading ends with it, whatever happens."""
        try:
            while found := self._retry(partial(rows.poll, self._row_id, self._agent)):
                number, order = found
                if number > self._done:
                    self._carry_out(number, order)
                else:
                    since_s = time.monotonic() - self._ordered_s
                    time.sleep(pause_s(since_s if self._sampler else None))
        finally:
            self._stop()

    def _carry_out(self, number: int, order: Any) -> None:
        self._ordered_s, self._done = time.monotonic(), number
        try:
            request = _request(order)
        except ValueError as error:
            logger.warning("pgperf agent: row %s: %s", self._row_id, error)
            self._retry(partial(rows.refuse, self._row_id, self._agent, f"the order is not valid: {error}"))
            return
        data, readings = self._watch(request) if request else self._hand_over()
        data["clock"] = self._retry(partial(clock.offset, self._row_id)).to_json()
        answer = partial(rows.answer, self._row_id, self._agent, number, data, readings)
        self._retry(answer)

    def _watch(self, order: WatchRequest) -> tuple[dict[str, Any], bytes]:
        """Begin to read; what was found."""
        self._stop()
        sessions = Sessions.of(order.sessions)
        there = _poolers(order, sessions)
        backends = {*order.backends, *(pid for pooler in there.values() for pid in pooler.backends)}
        pooler_pids = {pooler.pid for pooler in there.values()}
        chosen = meters(sessions, backends, pooler_pids)
        self._sampler, self._began_s = Sampler(chosen), time.monotonic()
        self._sampler.start()
        here = {name for meter in chosen for name in meter.names}
        self._pids = [pid for pid in (*backends, *pooler_pids) if run_column(pid) in here]
        return {
            "missing": [pid for pid in order.backends if run_column(pid) not in here],
            "poolers": [[*address, pooler.pid, pooler.backends] for address, pooler in there.items()],
            "host": {"kernel": platform.release(), "processors": Host.here().cpus},
        }, b""

    def _hand_over(self) -> tuple[dict[str, Any], bytes]:
        """Stop reading; all that was read."""
        sampler, seconds = self._sampler, time.monotonic() - self._began_s
        if sampler is None:
            return {}, b""
        self._sampler = None
        readings = sampler.stop()
        snapshot = top.TopSnapshot.take({}).processes
        processes = [
            [pid, snapshot[pid].name, snapshot[pid].rss_bytes] for pid in self._pids if pid in snapshot
        ]
        return {"share": sampler.cost_s / seconds, "processes": processes}, readings.pack()

    def _stop(self) -> None:
        if self._sampler:
            self._sampler.stop()
            self._sampler = None

    def _retry(self, step: Any) -> Any:
        seconds = get_settings().STALE_SECONDS * _RETRY_SHARE
        return retry_while_down(step, seconds, f"the agent's row {self._row_id}")


def _request(order: Any) -> WatchRequest | None:
    """The request to watch; None for the order to hand over. Raises ValueError for anything else."""
    if isinstance(order, dict) and "watch" in order:
        return WatchRequest.from_json(order["watch"])
    if isinstance(order, dict) and "hand_over" in order:
        return None
    raise ValueError("an order is to watch or to hand over")


def _poolers(order: WatchRequest, sessions: Sessions) -> dict[Address, RemotePooler]:
    """Of the addresses of poolers those that are this host's, with who listens there and what it is
    connected to.
    """
    own = [(host, port) for host, port in order.poolers if pooler_process.is_own(host, from_elsewhere=True)]
    found = {(host, port): pooler_process.process(port) for host, port in own}
    return {address: RemotePooler(pid, sessions.from_process(pid)) for address, pid in found.items() if pid}
