"""What counts of an open loop's slice, and each client's share of the rate."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgperf.analysis import latency
from pgperf.analysis.open_loop import open_loop
from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError
from pgperf.core.limits import RATE_HIGH
from pgperf.core.records import Route, VariantBlock, WorkloadDefinition
from pgperf.core.schedule import due_in
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.open_loop import share
from pgperf.runner.plan import make_plan, sharing
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.slice_length import WINDOW_MAX_NS, length_s, scheduled
from pgperf.runner.slice_window import Recorded, SliceWindow
from tests.runner.builders import definition
from tests.runner.test_run import Watcher, run

MS = 1_000_000
START = 1000 * MS
#: 100 operations/s: one is due every 10 ms, five of them in the lead-in and ten in the window.
REQUEST = protocol.Slice(
    seq=1, start_ns=START, lead_in_ns=50 * MS, window_ns=100 * MS, rate=100.0, schedule="constant"
)


def reply(ran: Sequence[int], skipped: int = 0, backlog: int = 0) -> protocol.SliceReply:
    return protocol.SliceReply(
        seq=1, ops=len(ran) - skipped, rows=len(ran), lead_in_ops=0, first_ns=START, user_ns=0, sys_ns=0,
        capped=False, nbytes=16 * len(ran), phases=["lag"], skipped=skipped, backlog=backlog,
    )  # fmt: skip


def window(
    latencies_ms: Sequence[float], lags_ms: Sequence[float], request: protocol.Slice = REQUEST
) -> SliceWindow:
    """The slice of one client that took so many operations; a latency of 0 was skipped."""
    durations, lags = ((np.array(each) * MS).astype(np.uint64) for each in (latencies_ms, lags_ms))
    skipped = sum(not latency for latency in latencies_ms)
    found = reply(latencies_ms, skipped, len(due_in(request, 1000)) - len(latencies_ms))
    return SliceWindow.of(request, [found], [durations], [lags[None, :]])


def test_a_rate_that_is_held_counts_what_was_due_in_the_window() -> None:
    found = window([2.0] * 15, [0.5] * 15)
    assert (found.ops, found.length_ns, len(found.durations)) == (10, 100 * MS, 10)
    assert found.scheduled
    assert (found.scheduled.due, found.scheduled.late, found.scheduled.skipped) == (10, None, 0)
    assert {name: set(part) for name, part in found.by_phase().items()} == {
        "lag": {MS // 2}, "service": {3 * MS // 2},
    }  # fmt: skip
    assert found.us_per_op(1) == pytest.approx(1500.0)


def test_throughput_is_of_what_ended_in_the_window_and_latency_of_what_was_due() -> None:
    """Each operation ends 35 ms after it was due: three of the lead-in end in the window, and three
    that are due in it end after it.
    """
    found = window([35.0] * 15, [25.0] * 15)
    assert (found.ops, len(found.durations)) == (10, 10)
    late = window([35.0] * 12 + [95.0] * 3, [25.0] * 15)
    assert (late.ops, len(late.durations), int(late.durations.max())) == (10, 10, 95 * MS)


def test_a_stall_raises_the_latency_of_all_that_were_due_during_it() -> None:
    """The server stops for 60 ms in the window: seven operations begin late, and each counts."""
    stalled = [max(0.0, 60.0 - 10.0 * k) for k in range(10)]
    found = window([1.0] * 5 + [1.0 + lag for lag in stalled], [0.0] * 5 + stalled)
    assert sorted(found.durations.tolist(), reverse=True)[:7] == [k * 10 * MS + MS for k in range(6, -1, -1)]
    assert found.us_per_op(1) == pytest.approx(1000.0)


def test_skipped_and_late_operations_and_the_backlog_are_counted() -> None:
    request = REQUEST._replace(latency_limit_ns=20 * MS)
    latencies = [1.0] * 5 + [1.0, 1.0, 21.0, 25.0, 0.0, 0.0, 1.0, 1.0]
    found = window(latencies, [0.0] * 9 + [22.0, 30.0, 0.0, 0.0], request)
    assert found.scheduled
    assert (found.scheduled.due, found.scheduled.late) == (10, 2)
    assert (found.scheduled.skipped, found.scheduled.backlog) == (2, 2)
    assert len(found.durations) == 6


def test_nothing_that_was_due_in_the_window_has_no_time_per_operation() -> None:
    found = window([200.0] * 5, [150.0] * 5)
    assert (len(found.durations), found.us_per_op(1)) == (0, 0.0)
    assert found.scheduled
    assert found.scheduled.due == 10


def test_what_is_left_of_the_lead_in_is_no_backlog_of_the_window() -> None:
    """Three of the five in the lead-in were taken, and ten were due in the window."""
    found = window([200.0] * 3, [150.0] * 3)
    assert found.scheduled
    assert (found.scheduled.due, found.scheduled.backlog) == (10, 10)


def test_more_operations_than_were_due_are_refused() -> None:
    with pytest.raises(ProtocolError, match="16 operations, of which 15 were due"):
        window([1.0] * 16, [0.0] * 16)


@settings(max_examples=30, deadline=None)
@given(rate=st.floats(10.0, 5000.0), clients=st.integers(1, 9))
def test_the_constant_schedules_of_all_clients_interleave_to_the_rate(rate: float, clients: int) -> None:
    request = REQUEST._replace(rate=rate, lead_in_ns=0, window_ns=500 * MS)
    starts = sorted(
        due for client in range(clients) for due in due_in(share(request, client, clients), 10_000)
    )
    assert abs(len(starts) - rate / 2) <= clients
    assert all(abs(due - at * 1e9 / rate) <= clients for at, due in enumerate(starts))


def test_each_client_has_exponential_gaps_of_its_own() -> None:
    request = REQUEST._replace(schedule="exponential", seed=5, window_ns=1000 * MS)
    parts = [due_in(share(request, client, 4), 1000) for client in range(4)]
    assert len({tuple(part) for part in parts}) == 4
    assert share(request, 3, 4).offset_ns == 0


def test_a_closed_loop_is_shared_unchanged() -> None:
    request = REQUEST._replace(rate=0.0)
    assert share(request, 2, 4) == request


def test_closed_and_open_loops_stand_in_one_run_and_share_their_processes() -> None:
    what = definition(layers=("libpq", "psycopg"), clients=(4,), rates=(None, 100.0, 2000.0))
    plan = make_plan(what)
    found = [variant for variant in plan.variants if not variant.control]
    assert [variant.rate for variant in found] == [None, None, 100.0, 100.0, 2000.0, 2000.0]
    assert [variant.schedule for variant in found] == ["", "", *["exponential"] * 4]
    assert found[2].label == "libpq · here · 4 clients · 100/s exponential"
    owners = sharing(found)
    assert [len(members) for members in owners.values()] == [3, 3]


def test_a_tool_has_no_rate() -> None:
    plan = make_plan(definition(layers=("libpq", "pgbench"), rates=(None, 100.0)))
    assert {variant.rate for variant in plan.variants if variant.layer == "pgbench"} == {None}
    assert [(left.layer, left.loop) for left in plan.skipped] == [("pgbench", "open")]
    assert "pgbench, open loop" in plan.skipped[0].name


@pytest.mark.parametrize(("rate", "window_ms"), [(10_000.0, 500), (100.0, 1000), (1.0, WINDOW_MAX_NS // MS)])
def test_a_window_holds_a_hundred_operations_as_far_as_it_may(rate: float, window_ms: int) -> None:
    variant = make_plan(definition(rates=(rate,))).variants[0]
    request = scheduled(protocol.Slice(seq=1, lead_in_ns=MS, window_ns=50 * MS), variant)
    assert (request.rate, request.window_ns) == (rate, window_ms * MS)
    assert request.lead_in_ns == window_ms * MS // 4
    assert length_s(protocol.Slice(seq=1, window_ns=50 * MS), 0.0, variant) >= 1.25 * window_ms / 1000


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("slice_ms", [50, 5000])
def test_the_schedule_of_a_slice_is_no_longer_than_a_client_can_record(clients: int, slice_ms: int) -> None:
    """Else operations that are due after the last recorded one would not count as due."""
    variant = make_plan(definition(rates=(RATE_HIGH,), clients=(clients,))).variants[0]
    request = scheduled(protocol.Slice(seq=1, lead_in_ns=MS, window_ns=slice_ms * MS), variant)
    for client in range(clients):
        due = due_in(share(request, client, clients), protocol.MAX_PHASED_SAMPLES + 1)
        assert len(due) <= protocol.MAX_PHASED_SAMPLES
    assert request.window_ns >= 190 * MS


def test_a_run_holds_a_low_rate_and_says_what_became_of_a_high_one() -> None:
    """An operation takes 2 ms: one client has room for 50/s, and none for 2,500/s, of which it reaches
    none that is due in the window.
    """
    watcher = Watcher()
    what = definition(rates=(None, 50.0, 2500.0), schedule="constant", nominal_us={"fake": 2000.0})
    run(what, watcher)
    by_rate = {block.variant.rate: block for block in watcher.blocks if not block.variant.control}
    (closed,), (low,), (high,) = (by_rate[rate].slices for rate in (None, 50.0, 2500.0))
    assert (closed.due, closed.lag_ns, closed.backlog) == (None, None, None)
    assert low.window_ns == 2000 * MS
    assert low.due == 100
    assert high.due == 1250
    assert high.backlog
    assert high.backlog <= high.due
    for record in (low, high):
        assert record.us_per_op >= 2000
        assert record.rows == record.ops
        assert (record.late, record.skipped) == (None, 0)
    held = {rate: open_loop(block.variant, block.slices) for rate, block in by_rate.items()}
    assert held[None] is None
    assert held[2500.0]
    assert not held[2500.0].is_held
    assert set(by_rate[2500.0].phases) == {"lag", "service"}


def test_a_latency_limit_skips_what_would_begin_too_late() -> None:
    """It skips as fast as it can count, so it keeps up however slow the machine is, but for one
    operation that is under way.
    """
    watcher = Watcher()
    run(definition(rates=(1000.0,), latency_limit_ms=20.0, nominal_us={"fake": 5000.0}), watcher)
    records = watcher.blocks[0].slices
    assert sum(record.skipped or 0 for record in records) > 0
    assert all(record.late is not None for record in records)
    assert watcher.blocks[0].phases["lag"].max_ns <= 20 * MS


def test_clients_share_a_rate() -> None:
    watcher = Watcher()
    run(definition(clients=(3,), rates=(200.0,), schedule="constant", nominal_us={"fake": 100.0}), watcher)
    assert watcher.blocks[0].slices[0].due == 100


#: A backend is stopped for so long, at so many operations per second.
STALL_MS, RATE = 200, 200.0
#: Operations that take longer have waited: without a stall, one takes a tenth of a millisecond.
WAITED_MS = 100
#: Those that are due while the backend is stopped, but for its last `WAITED_MS`.
WOULD_WAIT = int(RATE * (STALL_MS - WAITED_MS) / 1000)
#: Until both stalls of a run are punctual: a busy machine needs many.
PATIENCE_S = 300.0


class Stall(NamedTuple):
    """How long a backend was stopped, how much later than it should have been, and how late the
    operation began that met it, in an open loop.
    """

    stopped_ms: float
    late_ms: float
    lag_ms: float = 0.0

    @property
    def is_punctual(self) -> bool:
        """Before the next operation is due."""
        return max(self.late_ms, self.stopped_ms - STALL_MS, self.lag_ms) < 1000 / RATE


def stop_for_a_moment(pid: int, at_ns: int, rate: float | None, stalls: dict[float | None, Stall]) -> None:
    """Stop the process then, and let it go on after `STALL_MS`."""
    time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
    begin_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(STALL_MS / 1000)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    end_ns = time.monotonic_ns()
    stalls[rate] = Stall((end_ns - begin_ns) / MS, (begin_ns - at_ns) / MS)


def lag_ms(found: Recorded) -> float:
    """How late the operation of one client began that took longest itself; 0 in a closed loop."""
    (took_ns,), (phases,), (reply,) = found.durations, found.phases, found.replies
    if protocol.LAG not in reply.phases:
        return 0.0
    lags_ns = phases[reply.phases.index(protocol.LAG)]
    return float(lags_ns[np.argmax(took_ns - lags_ns)]) / MS


def waited(block: VariantBlock) -> int:
    """How many operations took longer than `WAITED_MS`."""
    cells = latency.merge([block.histogram]).get_recorded_iterator()
    return sum(
        each.count_added_in_this_iter_step for each in cells if each.value_iterated_to > WAITED_MS * MS
    )


class Stalling(NamedTuple):
    """A run in which the backend was stopped once in each loop, and for how long in the open one."""

    closed: VariantBlock
    opened: VariantBlock
    stopped_ms: float


#: Runs with a stall at that time after a window has opened.
Stalls = Callable[[int], Stalling]


@pytest.fixture
def stalls(routes: dict[str, Route], c_client: Path, monkeypatch: pytest.MonkeyPatch) -> Stalls:
    """The same client in both loops, and 140 operations due in the 700 ms of the open one's window.

    The run is repeated until the machine was in time to stop the backend, to let it go on, and with
    the operation that met the stall.
    """
    collect, found = ClientGroup.collect, dict[float | None, Stall]()

    def stalling(self: ClientGroup, request: protocol.Slice) -> Recorded:
        if self.variant.control or request.window_ns < 500 * MS:
            return collect(self, request)
        opens = (request.start_ns or time.monotonic_ns()) + request.lead_in_ns
        (ready,) = self.ready
        stop = threading.Thread(
            target=stop_for_a_moment,
            args=(ready.backend_pid, opens + after_ms[0] * MS, self.variant.rate, found),
        )
        stop.start()
        try:
            recorded = collect(self, request)
        finally:
            stop.join()
        found[self.variant.rate] = found[self.variant.rate]._replace(lag_ms=lag_ms(recorded))
        return recorded

    def run_with_stall() -> Stalling:
        found.clear()
        watcher = Watcher()
        execute(make_plan(what), routes, RunSettings(str(c_client.parent), "stalled"), watcher)
        blocks = {block.variant.rate: block for block in watcher.blocks if not block.variant.control}
        assert found.keys() == {None, RATE}
        assert blocks[RATE].slices[0].due == 140
        return Stalling(blocks[None], blocks[RATE], found[RATE].stopped_ms)

    def punctual(ms: int) -> Stalling:
        after_ms.append(ms)
        deadline = time.monotonic() + PATIENCE_S
        latest = run_with_stall()
        while not all(stall.is_punctual for stall in found.values()):
            assert time.monotonic() < deadline, f"no run had punctual stalls in {PATIENCE_S} s: {found}"
            latest = run_with_stall()
        return latest

    after_ms = list[int]()
    monkeypatch.setattr(ClientGroup, "collect", stalling)
    what = definition(
        workloads=(WorkloadDefinition("one", "SELECT 1"),), layers=("libpq",), routes=("socket",),
        rates=(None, RATE), schedule="constant", slice_ms=700, nominal_us={"libpq": 100.0},
    )  # fmt: skip
    return punctual


def test_a_stopped_backend_delays_all_that_were_due_and_one_operation_of_a_closed_loop(
    stalls: Stalls,
) -> None:
    """20 operations are due in the first 100 of the 200 ms. A closed loop sends none of them, and
    shows the stall in its maximum only.
    """
    closed, opened, stopped_ms = stalls(100)
    assert waited(closed) == 1
    longest_ms = stopped_ms + WAITED_MS  # of a machine that is slow to let it go on
    assert WOULD_WAIT - 1 <= waited(opened) <= RATE * longest_ms / 1000 + 1

    by_client, by_schedule = (latency.summary_us([block]) for block in (closed, opened))
    assert by_client["max"] > STALL_MS * 900
    assert by_client["p95"] < WAITED_MS * 1000
    assert by_schedule["min"] < WAITED_MS * 1000
    assert by_schedule["p90"] > WAITED_MS * 1000  # 20 of 140 waited so long
    assert by_schedule["max"] > STALL_MS * 900


def test_a_backend_that_is_stopped_when_the_window_closes_delays_all_that_were_due(stalls: Stalls) -> None:
    """It stops 150 ms before the end. The operation that meets it is timed to its own end; those that
    are due behind it have not begun, and the first nine have waited for 100 ms and more.
    """
    opened = stalls(700 - 150).opened
    assert opened.slices[0].backlog in range(28, 31)
    assert waited(opened) in range(9, 12)
    assert latency.summary_us([opened])["p95"] > (WAITED_MS - 10) * 1000
