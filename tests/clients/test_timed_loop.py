"""The timed loop, on a clock that only the operation moves."""

from array import array
from collections.abc import Callable

import pytest

from pgperf.clients import timed_loop
from pgperf.core.protocol import Slice

LASTS_NS = 100
BEGAN_NS = 1_000_000
ROOM = 64


class Clock:
    """Time passes in operations and in sleep only."""

    def __init__(self) -> None:
        self.now = BEGAN_NS

    def read(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(1, round(seconds * 1e9))

    def operation(self) -> int:
        self.now += LASTS_NS
        return 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timed_loop, "monotonic_ns", clock.read)
    monkeypatch.setattr(timed_loop, "sleep", clock.sleep)
    monkeypatch.setattr(timed_loop, "MAX_SAMPLES", ROOM)
    return clock


def run(clock: Clock, operation: Callable[[], int] | None = None, **fields: int) -> timed_loop.Timing:
    request = Slice(**{"seq": 1, "lead_in_ops": 0, "lead_in_ns": 0, **fields})
    return timed_loop.run_slice(operation or clock.operation, request, timed_loop.new_stamps())


def durations(measured: timed_loop.Timing) -> list[int]:
    return array("Q", measured.durations).tolist()


def test_the_operation_under_way_when_the_window_closes_is_recorded(clock: Clock) -> None:
    measured = run(clock, window_ns=250)
    assert (measured.ops, measured.rows, measured.first_ns) == (3, 6, BEGAN_NS)
    assert durations(measured) == [LASTS_NS] * 3


def test_a_window_closes_with_the_operation_that_ends_on_its_edge(clock: Clock) -> None:
    assert run(clock, window_ns=300).ops == 3


@pytest.mark.parametrize(("ops", "ns", "expected"), [(10, 250, 10), (2, 250, 3), (0, 0, 0), (0, 300, 3)])
def test_a_lead_in_reaches_both_minima_and_is_not_recorded(
    clock: Clock, ops: int, ns: int, expected: int
) -> None:
    measured = run(clock, lead_in_ops=ops, lead_in_ns=ns, count=1)
    assert (measured.lead_in_ops, measured.ops, measured.rows) == (expected, 1, 2)
    assert measured.first_ns == BEGAN_NS + expected * LASTS_NS


def test_durations_are_chained(clock: Clock) -> None:
    lasting = iter([5, 70, 1, 9])

    def operation() -> int:
        clock.now += next(lasting)
        return 0

    assert durations(run(clock, operation, count=4)) == [5, 70, 1, 9]


def test_an_armed_slice_starts_on_time_with_a_fixed_window(clock: Clock) -> None:
    start = BEGAN_NS + 5_000
    measured = run(clock, start_ns=start, lead_in_ns=250, window_ns=300)
    assert measured.first_ns == start + 300
    assert (measured.lead_in_ops, measured.ops) == (3, 3)


def test_a_lead_in_that_takes_too_long_shortens_an_armed_window(clock: Clock) -> None:
    measured = run(clock, start_ns=BEGAN_NS + 10, lead_in_ops=5, lead_in_ns=0, window_ns=620)
    assert (measured.lead_in_ops, measured.ops) == (5, 2)


@pytest.mark.parametrize("window", [0, 499, 500])
def test_an_armed_window_that_is_over_stays_empty(clock: Clock, window: int) -> None:
    measured = run(clock, start_ns=BEGAN_NS, lead_in_ops=5, window_ns=window)
    assert (measured.ops, measured.rows, measured.durations, measured.capped) == (0, 0, b"", False)


def test_a_start_in_the_past_starts_at_once(clock: Clock) -> None:
    assert run(clock, start_ns=BEGAN_NS - 10_000, count=2).first_ns == BEGAN_NS


@pytest.mark.parametrize(
    ("count", "ops", "capped"), [(ROOM - 1, 63, False), (ROOM, 64, False), (ROOM + 1, 64, True)]
)
def test_a_count_above_max_samples_is_capped(clock: Clock, count: int, ops: int, capped: bool) -> None:
    measured = run(clock, count=count)
    assert (measured.ops, measured.capped, len(measured.durations)) == (ops, capped, 8 * ops)


@pytest.mark.parametrize(
    ("window", "ops", "capped"), [(6300, 63, False), (6400, 64, False), (6401, 64, True)]
)
def test_a_window_with_more_than_max_samples_is_capped(
    clock: Clock, window: int, ops: int, capped: bool
) -> None:
    measured = run(clock, window_ns=window)
    assert (measured.ops, measured.capped) == (ops, capped)


def test_an_exception_of_an_operation_ends_the_slice(clock: Clock) -> None:
    def operation() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        run(clock, operation, count=1)


def test_the_stamps_have_space_for_max_samples() -> None:
    [stamps] = timed_loop.new_stamps()
    assert len(stamps) == 1 << 20


def test_a_slice_leaves_no_times_that_the_next_one_would_have_to_free(clock: Clock) -> None:
    stamps = timed_loop.new_stamps()
    request = Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, count=5)
    measured = timed_loop.run_slice(clock.operation, request, stamps)
    assert len(measured.durations) == 5 * 8
    assert not any(stamps[0])


def test_operations_run_in_order_and_their_rows_add_up() -> None:
    ran: list[int] = []

    def operation(number: int) -> Callable[[], int]:
        return lambda: ran.append(number) or number  # type: ignore[func-returns-value]

    assert timed_loop.in_order([operation(number) for number in (5, 0, 2)])() == 7
    assert ran == [5, 0, 2]


def test_in_order_returns_a_single_operation_unchanged(clock: Clock) -> None:
    operation = clock.operation
    assert timed_loop.in_order([operation]) is operation
