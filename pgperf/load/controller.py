"""The owner's side of the load hosts: asks for them, orders, and puts their answers on its clock."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import Error

from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.exceptions import (
    BrokerUnreachable,
    ClientFailed,
    LoadHostFailed,
    LoadHostLate,
    OrdersLost,
)
from pgperf.core.records import Definition, LeftOut
from pgperf.load import answers, rows
from pgperf.models import Run
from pgperf.runner.client_group import SLICE_GRACE_S
from pgperf.runner.client_process import look_up
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.host_slices import HostSlice
from pgperf.runner.load_accounts import HostBlock
from pgperf.runner.load_hosts import HostStart, percentile
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runner.slice_length import WINDOW_MAX_NS
from pgperf.runner.slice_window import Recorded
from pgperf.runs import broker, database_clock, state
from pgperf.runs.db_retry import drop_broken_connection, is_outage, retry_while_down
from pgperf.runs.order_rows import Answer

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: A host comes within that time, tells what it knows, and ends its clients after the slices that are
#: under way. To prepare itself, and to start and warm up its clients, may take longer (`_at_work_s`).
COME_S, _TELL_S, _END_S = 30.0, 120.0, 300.0
#: Seconds between two tries to send a message while the broker is away.
_SEND_AGAIN_S = 1.0
_ON_WAIT_S = 0.05
#: A host's clock is good enough for windows that are so many times longer than its error.
_WINDOWS = 100
#: An error that is good for the shortest windows, and how long it is sought: before there is a window,
#: and for the windows of an order.
_GOOD_ERROR_NS, _IMPROVE_S, _SETTLE_S = 500_000, 2.0, 10.0
#: Because errors scatter, the windows that are proposed are longer by this factor, and errors that are
#: smaller by it are sought for so long.
_RESERVE, _RESERVE_S = 2, 0.5
#: A clock that was laid beside ours longer ago is laid again: two may drift apart by 50 µs/s.
_FRESH_S = 5.0
#: Share of STALE_SECONDS for which it retries while the site's database is down.
_RETRY_SHARE = 2 / 3
#: The slices of several hosts whose skew is remembered.
_SKEWS = 10_000
#: The order to tell the time alone.
_CLOCK = {"clock": True}


def retry(step: Callable[[], T]) -> T:
    """While the site's database restarts, for as long as a run does."""
    return retry_while_down(step, get_settings().STALE_SECONDS * _RETRY_SHARE, "orders to load hosts")


def _at_work_s() -> float:
    """As long as a run may: how many statements a host captures and how slowly its clients start, the
    owner cannot know. One that is silent, or whose client is late, ends the wait by itself.
    """
    return float(max(_END_S, get_settings().MAX_RUN_SECONDS))


@dataclass
class _Host:
    """A load host of this run. `clock` is from its clock to ours, as measured at `clock_s` (by
    time.monotonic()) or later. `unsent`: why it has no message.
    """

    name: str
    row_id: int
    queue: str
    unsent: str = ""
    number: int = 0  # of its last order
    clock: ClockOffset = field(default_factory=lambda: ClockOffset(0, 0))
    clock_s: float = 0.0
    facts: answers.HostFacts = field(default_factory=lambda: answers.HostFacts("", "", 0))
    worker: str = ""
    worst_error_ns: int = 0
    was_unsure: bool = False  # was its clock not known well enough for the last order?
    places: Set[int] = frozenset()  # of the variants whose clients it has started

    def is_known(self, error_ns: int) -> bool:
        """Is its clock known that well, now?"""
        return self.clock.error_ns <= error_ns and _is_fresh(self.clock_s)

    def keep_better(self, clock: ClockOffset, clock_s: float) -> None:
        """Go back to what was measured before, if that is fresh and the better of the two."""
        if clock.error_ns < self.clock.error_ns and _is_fresh(clock_s):
            self.clock, self.clock_s = clock, clock_s

    def described(self) -> dict[str, Any]:
        facts = {"kernel": self.facts.kernel, "processors": self.facts.processors}
        return {"worker": self.worker, **facts, "network_mbit": self.facts.network_mbit}

    def clock_facts(self) -> dict[str, float]:
        return {"offset_ms": self.clock.ns / 1e6, "error_us": self.worst_error_ns / 1e3}


class LoadHostController:
    """A run's load hosts; a `runner.load_hosts.LoadHosts`. Close it when the run is over."""

    def __init__(self, run: Run, definition: Definition) -> None:
        self._run, self._definition = run, definition
        self._hosts: list[_Host] = []
        self._lost: dict[str, str] = {}
        self._taken: set[str] = set()  # every host that was asked for, also one that did not come
        self._skews: deque[int] = deque(maxlen=_SKEWS)
        self._repeated = 0
        self._asked: list[tuple[int, protocol.Slice]] = []
        self._looked_s = self._sent_s = 0.0
        self.own_placement = CpuPlacement("scheduler")

    @property
    def names(self) -> list[str]:
        return [host.name for host in self._hosts]

    @property
    def machines(self) -> list[str]:
        return [host.facts.machine for host in self._hosts]

    @property
    def network_mbit(self) -> list[int | None]:
        return [host.facts.network_mbit for host in self._hosts]

    @property
    def own_machine(self) -> str:
        return state.this_machine()

    @property
    def least_window_ns(self) -> int:
        return _RESERVE * _WINDOWS * max(host.clock.error_ns for host in self._hosts)

    def begin(self, skipped: Sequence[LeftOut]) -> None:
        self._open()
        self._send()
        said = self._begun({"begin": {"skipped": [each.to_json() for each in skipped]}})
        for host, answer in zip(self._hosts, said, strict=True):
            with _naming(host):
                host.facts, host.worker = answers.begun(answer.data), answer.agent

    def _begun(self, order: dict[str, Any]) -> list[Answer]:
        """The answers of all hosts. The next free one takes the place of one that does not come or
        refuses, unless the run names its hosts.
        """
        for host in self._hosts:
            host.number = self._put(host, order)
        while True:
            try:
                return self._awaited(_at_work_s())
            except LoadHostFailed as failed:
                if not self._replaced(failed, order):
                    raise

    def _replaced(self, failed: LoadHostFailed, order: dict[str, Any]) -> bool:
        gone = next((host for host in self._hosts if host.name == failed.host), None)
        if gone is None or gone.unsent or self._definition.load_host_names:
            return False
        needed = len(self._hosts)
        self._hosts.remove(gone)
        self._close(gone)
        self._open_free(needed)
        if len(self._hosts) < needed:
            return False
        logger.warning("run %s takes another load host: %s", self._run.pk, failed)
        self._hosts[-1].number = self._put(self._hosts[-1], order)
        self._send()
        return True

    def start(self, cohort: int, block: int, cold: bool) -> list[HostStart]:
        of = len(self._hosts)
        shared = {"cohort": cohort, "block": block, "of": of}
        orders = [
            {"start": {**shared, "part": at, "cold": cold and at == 0, **self._cpus_on(host)}}
            for at, host in enumerate(self._hosts)
        ]
        found = []
        for host, answer in zip(self._hosts, self._started(orders, cold), strict=True):
            with _naming(host):
                found.append(started := answers.started(answer.data))
                host.places = started.ready.keys()
        self._exchange_clocks()  # those who waited for others told the time long ago
        self._improve_clocks(_GOOD_ERROR_NS, _IMPROVE_S)
        return found

    def _started(self, orders: Sequence[dict[str, Any]], cold: bool) -> list[Answer]:
        """While the first host measures cold phases, the others leave the server alone."""
        if not cold:
            return self._ordered(orders, _at_work_s())
        meanwhile = [_CLOCK] * (len(orders) - 1)
        first = self._ordered([orders[0], *meanwhile], _at_work_s())[:1]
        return first + (self._ordered([_CLOCK, *orders[1:]], _at_work_s())[1:] if meanwhile else [])

    def _cpus_on(self, host: _Host) -> dict[str, list[int] | None]:
        """The CPUs of its clients of a database, and of those that request pages, where others of the
        run are on the same machine; None: all.
        """
        here = host.facts.machine == self.own_machine
        sides = {"cpus": self.own_placement.sides(), "page_cpus": self.own_placement.sides(over_http=True)}
        return {name: sorted(side.clients) if here and side.clients else None for name, side in sides.items()}

    def settle(self, window_ns: int) -> None:
        if not window_ns:
            return
        self._improve_clocks(window_ns // _WINDOWS, _SETTLE_S)
        self._improve_clocks(window_ns // (_RESERVE * _WINDOWS), _RESERVE_S)
        for host in self._hosts:
            _check_known(host, host.clock, window_ns)

    def order(self, slices: Sequence[tuple[int, protocol.Slice]]) -> None:
        self._asked = list(slices)
        for host in self._hosts:
            host.number = self._put(host, {"slices": [[at, _line(each, host)] for at, each in slices]})

    def results(self, until_ns: int) -> list[list[HostSlice]]:
        seconds = max(0.0, (until_ns - time.monotonic_ns()) / 1e9) + 4 * SLICE_GRACE_S
        before = [host.clock for host in self._hosts]
        said = self._awaited(seconds)
        self.settle(self._shortest_window_ns)
        found, late = [], []
        for host, answer, clock in zip(self._hosts, said, self._clocks_since(before), strict=True):
            try:
                found.append(self._slices(host, answer, clock))
            except LoadHostLate:
                late.append(host.name)
        if late:
            self._repeated += 1
            raise LoadHostLate(f"load host {', '.join(late)}: the order came after its start", late[0])
        return found

    def _clocks_since(self, before: Sequence[ClockOffset]) -> list[ClockOffset]:
        """Each host's clock during the order that has ended, by what it was before.

        Raises LoadHostLate where one is not known well enough: errors scatter.
        """
        for host, first in zip(self._hosts, before, strict=True):
            self._check_drift(host, first)
        found = [ClockOffset.over(first, host.clock) for host, first in zip(self._hosts, before, strict=True)]
        unsure = [
            host.name for host, clock in zip(self._hosts, found, strict=True) if self._doubts(host, clock)
        ]
        if unsure:
            self._repeated += 1
            why = f"load host {', '.join(unsure)}: the clock was not known well enough"
            raise LoadHostLate(why, unsure[0], needs_time=False)
        for host, clock in zip(self._hosts, found, strict=True):
            host.worst_error_ns = max(host.worst_error_ns, clock.error_ns)
        return found

    def _doubts(self, host: _Host, clock: ClockOffset) -> bool:
        """Was the clock not known well enough for the last order? Raises LoadHostFailed if it was not
        for the one before either.
        """
        again, host.was_unsure = host.was_unsure, not _is_enough(clock, self._shortest_window_ns)
        if again:
            _check_known(host, clock, self._shortest_window_ns)
        return host.was_unsure

    def _slices(self, host: _Host, answer: Answer, clock: ClockOffset) -> list[HostSlice]:
        with _naming(host):
            found = answers.slices(answer.data, answer.readings, len(self._asked))
        return [_on_our_clock(each, clock) for each in found]

    def totals(self) -> list[HostBlock]:
        found = []
        for host, answer in zip(
            self._hosts, self._ordered([{"totals": True}] * len(self._hosts)), strict=True
        ):
            with _naming(host):
                found.append(answers.totals(answer.data, host.places))
        return found

    def end(self) -> None:
        self._ordered([{"end": True}] * len(self._hosts), _END_S)

    def go_on_without(self, host: str, why: str) -> bool:
        if not self._definition.may_lose_hosts or host not in self.names or len(self._hosts) == 1:
            return False
        (lost,) = (each for each in self._hosts if each.name == host)
        self._hosts.remove(lost)
        self._lost[host] = why
        self._close(lost)
        logger.warning("run %s goes on without a load host: %s", self._run.pk, why)
        return True

    def note_skew(self, skew_ns: Sequence[int]) -> None:
        self._skews.extend(skew_ns)

    def facts(self) -> dict[str, Any]:
        skew_ns = percentile(self._skews, 0.99)
        return {
            "hosts": {host.name: host.described() for host in self._hosts},
            "clocks": {host.name: host.clock_facts() for host in self._hosts},
            "start_skew_us": None if skew_ns is None else skew_ns / 1e3,
            "repeated": self._repeated,
            **({"lost": self._lost} if self._lost else {}),
        }

    def leave(self) -> None:
        """Let the hosts go.

        Safe at any time; what cannot be written now is cleared away by the next run.
        """
        while self._hosts:
            self._close(self._hosts.pop())

    close = leave

    def _close(self, host: _Host) -> None:
        try:
            rows.ROWS.close(host.row_id)
        except Error:
            drop_broken_connection()

    def _open(self) -> None:
        """A row for each host: those that the definition names, or the first that are free."""
        rows.ROWS.clear(self._run)
        needed, named = max(self._definition.load_hosts), self._definition.load_host_names
        if named:
            self._open_named(named[:needed])
        else:
            self._open_free(needed)
        if len(self._hosts) < needed:
            raise LoadHostFailed(
                ", ".join(self.names) or "none",
                f"{len(self._hosts)} of {needed} load hosts are free; start workers on queues"
                f" {broker.load_queue('NAME')}, or choose fewer load_hosts",
            )

    def _open_named(self, names: Sequence[str]) -> None:
        alive = state.live_load_hosts()
        for name in names:
            if name not in alive:
                queue = broker.load_queue(name)
                raise LoadHostFailed(name, f"it is not there: start a worker on queue {queue} on that host")
            if not self._take(name):
                raise LoadHostFailed(name, "it works for another run; wait for its end, or name another one")

    def _open_free(self, needed: int) -> None:
        for name in state.load_hosts_to_ask():
            if len(self._hosts) < needed and name not in self._taken:
                self._take(name)

    def _take(self, name: str) -> bool:
        """False while the host works for another run."""
        queue = broker.load_queue(name)
        row_id = rows.open_for(self._run, name, queue)
        if row_id is not None:
            self._taken.add(name)
            self._hosts.append(_Host(name, row_id, queue, unsent="its message is not sent yet"))
        return row_id is not None

    def _send(self) -> None:
        """The messages that the hosts lack, up to the first that the broker does not take."""
        self._sent_s = time.monotonic()
        for host in self._hosts:
            if host.unsent:
                try:
                    broker.send_load(host.row_id, host.queue)
                except BrokerUnreachable as error:
                    host.unsent = str(error)
                    return
                host.unsent = ""

    def _send_again(self) -> None:
        if any(host.unsent for host in self._hosts) and time.monotonic() - self._sent_s >= _SEND_AGAIN_S:
            self._send()

    def _ordered(self, orders: Sequence[dict[str, Any]], seconds: float = _TELL_S) -> list[Answer]:
        """The answers to orders without slices. Of the time that they tell, and what is known for a
        few seconds, the better counts.
        """
        before = [(host.clock, host.clock_s) for host in self._hosts]
        for host, order in zip(self._hosts, orders, strict=True):
            host.number = self._put(host, order)
        said = self._awaited(seconds)
        for host, known in zip(self._hosts, before, strict=True):
            host.keep_better(*known)
        return said

    def _put(self, host: _Host, order: dict[str, Any]) -> int:
        with _naming(host):
            return retry(lambda: rows.ROWS.order(host.row_id, order))

    def _awaited(self, seconds: float) -> list[Answer]:
        """The answers of all hosts, which have their clocks in them."""
        begin = last_look_s = time.monotonic()
        found: dict[str, Answer] = {}
        while len(found) < len(self._hosts):
            look_s = time.monotonic()
            for host in self._hosts:
                if host.name not in found and (answer := self._answer(host)):
                    found[host.name], host.clock_s = answer, last_look_s
            last_look_s = look_s
            if len(found) < len(self._hosts):
                self._wait(begin, seconds, [host for host in self._hosts if host.name not in found])
        self._set_clocks(found)
        return [found[host.name] for host in self._hosts]

    def _answer(self, host: _Host) -> Answer | None:
        with _naming(host):
            answer = retry(lambda: rows.ROWS.answered(host.row_id, host.number))
        if answer and answer.refusal:
            raise LoadHostFailed(host.name, answer.refusal)
        return answer

    def _wait(self, begin: float, seconds: float, missing: Sequence[_Host]) -> None:
        """Raises LoadHostFailed for a host that is silent for too long."""
        passed = time.monotonic() - begin
        if passed > COME_S and (absent := [host for host in missing if not _came(host)]):
            why = absent[0].unsent or "is its worker busy, or of another version of pgperf?"
            raise LoadHostFailed(absent[0].name, f"it did not come within {COME_S:g} s: {why}")
        if passed > seconds:
            raise LoadHostFailed(
                missing[0].name, f"it did not answer within {seconds:.0f} s; see the log of its worker"
            )
        self._send_again()
        self.check_alive()
        look_up()
        time.sleep(_ON_WAIT_S)

    def check_alive(self) -> None:
        """Raises LoadHostFailed for a host that refuses or is silent. Asks every few seconds."""
        if time.monotonic() - self._looked_s < get_settings().HEARTBEAT_SECONDS:
            return
        self._looked_s = time.monotonic()
        try:
            found = rows.trouble([host.row_id for host in self._hosts])
        except Error as error:
            if not is_outage(error):
                raise
            drop_broken_connection(error)  # the heartbeat limits how long a run continues without an answer
            return
        if found:
            row_id, why = found
            raise LoadHostFailed(next(host.name for host in self._hosts if host.row_id == row_id), why)

    def _set_clocks(self, found: Mapping[str, Answer]) -> None:
        """Lay each host's clock beside ours, by way of the database's."""
        row = rows.ROWS.all().filter(pk=self._hosts[0].row_id)
        ours = retry(lambda: database_clock.offset(row))
        for host in self._hosts:
            with _naming(host):
                host.clock = answers.clock(found[host.name].data).then_back(ours)

    def _improve_clocks(self, error_ns: int, seconds: float) -> None:
        """Ask for the time again until every clock is known that well: on a busy machine few answers
        are quick.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until and not all(host.is_known(error_ns) for host in self._hosts):
            self._exchange_clocks()

    def _exchange_clocks(self) -> None:
        """Ask all hosts for the time; the best of the last few seconds counts, see `_ordered`."""
        self._ordered([_CLOCK] * len(self._hosts))

    @property
    def _shortest_window_ns(self) -> int:
        """Of the last order; 0 where no slice has a window."""
        return min((each.window_ns for _at, each in self._asked if each.window_ns), default=0)

    def _check_drift(self, host: _Host, first: ClockOffset) -> None:
        """Raises LoadHostFailed for a host whose clock surely moved too far during an order."""
        drift_ns, window_ns = ClockOffset.drift_ns(first, host.clock), self._shortest_window_ns
        if window_ns and drift_ns * _WINDOWS > window_ns:
            raise LoadHostFailed(
                host.name,
                f"its clock and the owner's drifted apart by {drift_ns / 1e6:.2f} ms during a round, and a window of"
                f" {window_ns / 1e6:.0f} ms allows {window_ns / _WINDOWS / 1e6:.2f} ms; start the run again when the"
                " clocks of both are set (chronyc tracking)",
            )


def _is_fresh(measured_s: float) -> bool:
    return time.monotonic() - measured_s <= _FRESH_S


def _is_enough(clock: ClockOffset, window_ns: int) -> bool:
    """Is it known well enough for such a window (0: there is none)?"""
    return not window_ns or clock.error_ns * _WINDOWS <= window_ns


def _check_known(host: _Host, clock: ClockOffset, window_ns: int) -> None:
    """Raises LoadHostFailed for a host whose clock is not known well enough for such a window."""
    if not _is_enough(clock, window_ns):
        raise LoadHostFailed(
            host.name,
            f"its clock is known to ±{clock.error_ns / 1e6:.2f} ms only, and a window of"
            f" {window_ns / 1e6:.0f} ms allows {window_ns / _WINDOWS / 1e6:.2f} ms; {_remedy(window_ns)}",
        )


def _remedy(window_ns: int) -> str:
    """What helps where the clocks are too uncertain for a window."""
    quicker = "a quicker way to the site's database"
    return f"choose a longer slice_ms or {quicker}" if window_ns < WINDOW_MAX_NS else f"it needs {quicker}"


def _came(host: _Host) -> bool:
    return bool(retry(lambda: rows.ROWS.taken_by(host.row_id)))


def _line(request: protocol.Slice, host: _Host) -> str:
    """The slice in the host's own time."""
    return protocol.encode(request._replace(start_ns=request.start_ns - host.clock.ns)).decode()


def _on_our_clock(found: HostSlice, clock: ClockOffset) -> HostSlice:
    replies = [
        reply._replace(
            first_ns=reply.first_ns + clock.ns,
            worker_first_ns=[first_ns + clock.ns for first_ns in reply.worker_first_ns],
        )
        for reply in found.recorded.replies
    ]
    return HostSlice(Recorded(replies, found.recorded.durations, found.recorded.phases), found.cpu)


@contextmanager
def _naming(host: _Host) -> Iterator[None]:
    """An unusable answer is the failure of the host that gave it."""
    try:
        yield
    except (OrdersLost, ClientFailed) as error:
        raise LoadHostFailed(host.name, str(error)) from error
