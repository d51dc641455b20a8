"""How long a cancel takes to reach all load hosts: each part measured by a clock of the test's own.

The owner sees the request between rounds or while it waits, and deletes the rows of its hosts. A host
sees that its row is gone when it next gives a sign of life.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.conf import Settings
from pgperf.core import protocol
from pgperf.core.exceptions import RunCancelled
from pgperf.load import rows
from pgperf.models import Run
from pgperf.runner import client_process, host_slices, load_hosts, timed_slice
from pgperf.runner.client_process import look_up, while_waiting
from pgperf.runner.cpu.accounting import BlockTotals
from pgperf.runner.load_hosts import HostedCohort, HostedGroup, Turn, scheduled
from pgperf.runner.slice_window import Recorded
from pgperf.runs import state
from pgperf.worker import load_share, recorder
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.load_share import RunIsOver, _Share
from pgperf.worker.recorder import Recorder
from tests.core.builders import variant

EVERY_S = Settings().HEARTBEAT_SECONDS
#: The longest time in which owner and host look after nothing.
OWNER_WAITS_S = max(client_process.POLL_S, load_hosts._NAP_S + load_hosts._LOOK_S)
HOST_WAITS_S = max(OWNER_WAITS_S, load_share._ARMED_NS / 1e9)
OWNER_SEES_S, HOST_SEES_S = EVERY_S + OWNER_WAITS_S, EVERY_S + HOST_WAITS_S
#: What passes between two slices, beside the waiting.
BETWEEN_S = 0.1
SECOND = 1_000_000_000


def test_by_the_default_intervals_a_cancel_reaches_all_hosts_in_time() -> None:
    """15 s are promised. What is left is for queries, and for the kernel to end the clients."""
    assert OWNER_SEES_S + HOST_SEES_S <= 13.5


class Clock:
    """Time passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now_ns = 10**15

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (recorder, load_hosts, load_share, timed_slice):
        monkeypatch.setattr(module, "time", found)
    return found


rounds = st.lists(st.floats(0.05, 20.0), min_size=60, max_size=60)


@given(rounds, st.floats(0.0, 60.0), st.booleans())
def test_the_owner_sees_it_however_long_rounds_are(
    lengths: list[float], asked_s: float, tells_more: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(recorder, "time", clock)
        patch.setattr(state, "heartbeat", lambda *_words: None)
        own = Recorder(Run(pk=1), None, EVERY_S, retry_s=20.0)
        asked_at = clock.monotonic() + asked_s
        patch.setattr(state, "is_cancelling", lambda _run: clock.monotonic() >= asked_at)
        seen_s = _until_seen(own, clock, lengths, tells_more) - asked_at
    assert 0 <= seen_s <= OWNER_SEES_S


def _until_seen(own: Recorder, clock: Clock, lengths: list[float], tells_more: bool) -> float:
    """When the owner saw the request, in rounds of those lengths."""
    for length in lengths * 30:
        left = length
        while left > 0:
            try:
                own.poll_cancel()
            except RunCancelled:
                return clock.monotonic()
            clock.sleep(min(OWNER_WAITS_S, left))
            left -= OWNER_WAITS_S
        own.progress(0.5, "a round has ended")
        if own.cancelled():
            return clock.monotonic()
        if tells_more:
            own.progress(0.5, "the next block begins")
    raise AssertionError("nobody saw it")


WINDOWS_S = pytest.mark.parametrize("window_s", [0.01, 0.3, 0.49, 0.51, 1.4, 5.0])


class Looks:
    """The longest time between two looks."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._last_s, self.longest_s = clock, clock.monotonic(), 0.0

    def __call__(self) -> None:
        now_s = self._clock.monotonic()
        self.longest_s, self._last_s = max(self.longest_s, now_s - self._last_s), now_s


def requests(window_s: float, most: int = 40) -> list[Turn]:
    group = HostedGroup(variant(hosts=1), "app", cohort=HostedCohort(None))  # type: ignore[arg-type]
    request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=SECOND // 100, window_ns=round(window_s * 1e9))
    return [Turn(group, request, at) for at in range(most)]


@WINDOWS_S
def test_the_owner_looks_while_slices_are_under_way(clock: Clock, window_s: float) -> None:
    looks = Looks(clock)
    with while_waiting(looks):
        load_hosts._accounts(scheduled(requests(window_s), clock.monotonic_ns() + 4 * SECOND // 10), None)
    looks()
    assert looks.longest_s <= OWNER_WAITS_S + BETWEEN_S


class Clients:
    """Those of a load host: they look when they are armed, while they work, and answer in time."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.variant, self.totals = clock, variant(hosts=1), BlockTotals()

    def processes(self) -> None: ...

    def begin(self, _request: protocol.Slice) -> None:
        look_up()

    def collect(self, request: protocol.Slice) -> Recorded:
        ends_ns = request.start_ns + request.lead_in_ns + request.window_ns
        look_up()
        while (left_s := (ends_ns - self._clock.now_ns) / 1e9) > 0:
            self._clock.sleep(min(client_process.POLL_S, left_s))
            look_up()
        return Recorded([], [], [])


@WINDOWS_S
@pytest.mark.parametrize("has_clients", [True, False])
def test_a_host_leaves_when_its_row_is_gone(
    clock: Clock, window_s: float, has_clients: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From whenever in its batch of slices."""
    share = _Share(1, "load@a", Lifeline(60))
    share.groups = {0: Clients(clock)} if has_clients else {}  # type: ignore[dict-item]
    monkeypatch.setattr(host_slices, "closed", lambda _group, _accounting: None)
    monkeypatch.setattr(timed_slice, "SliceAccounting", lambda _host, _processes: None)
    for gone_s in (0.1, 1.3, 4.9, 5.1, 9.7):
        gone_at, share.touched_s = clock.monotonic() + gone_s, 0.0
        monkeypatch.setattr(rows, "touch", _there_until(clock, gone_at))
        batch = scheduled(requests(window_s, most=2000), clock.monotonic_ns() + SECOND // 5)
        lines = [[0, protocol.encode(turn.request).decode()] for turn in batch]
        with while_waiting(share.look), pytest.raises(RunIsOver):
            share._slices(lines)
        assert 0 <= clock.monotonic() - gone_at <= HOST_SEES_S + BETWEEN_S


def _there_until(clock: Clock, gone_at: float) -> Callable[[int, str], bool]:
    return lambda _row_id, _worker: clock.monotonic() < gone_at
