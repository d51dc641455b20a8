"""The cost of a clock read, by made-up clocks and by this machine's."""

import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from pgperf.runner.cpu import clock


def ticking(step_ns: int, pauses: dict[int, int] | None = None) -> Callable[[], int]:
    """A clock on which each read takes `step_ns`, and some of them longer."""

    def values() -> Iterator[int]:
        now_ns = 0
        for number in count():
            now_ns += step_ns + (pauses or {}).get(number, 0)
            yield now_ns

    found = values()
    return lambda: next(found)


@pytest.mark.parametrize("step_ns", [1, 40, 1_200, 100_000])
def test_it_is_the_time_of_one_read(step_ns: int) -> None:
    assert clock.read_ns(ticking(step_ns)) == step_ns


def test_a_pause_is_no_cost_of_the_clock() -> None:
    assert clock.read_ns(ticking(40, {7: 9_000_000, 150: 5_000_000})) == 40


def test_this_machine_reads_its_clock() -> None:
    assert 0 < clock.read_ns(time.monotonic_ns) < 1e6


@pytest.mark.parametrize(("cost_ns", "told"), [(clock.SLOW_NS - 1, None), (clock.SLOW_NS, clock.SLOW_NS)])
def test_a_quick_clock_is_not_told(
    cost_ns: float, told: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "read_ns", lambda read: cost_ns)
    clock.slow_read_ns.cache_clear()
    try:
        assert clock.slow_read_ns() == told
    finally:
        clock.slow_read_ns.cache_clear()
