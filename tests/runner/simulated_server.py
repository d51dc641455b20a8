"""A server of known capacity, without time passing: one queue, whose service times are independent."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pgperf.core.records import SliceRecord, Variant, VariantBlock
from pgperf.runner.rate_search import Searches
from pgperf.runner.slice_window import SliceWindow
from tests.analysis.synthetic import piece, variant

CLOSED = variant()
SEARCH = replace(CLOSED, schedule="exponential")


@dataclass
class Server:
    """It serves `per_s` operations per second; from block to block and from round to round its speed
    scatters by these standard deviations of the logarithm.
    """

    per_s: float
    rng: np.random.Generator
    block_scatter: float = 0.01
    round_scatter: float = 0.03
    window_s: float = 1.0

    def highest_load(self, limit_ms: float) -> float:
        """The load at which one operation in a hundred takes longer than the limit (M/M/1)."""
        return 1 - math.log(100) / (self.per_s * limit_ms / 1000)

    def latencies_ns(self, rate: float, speed: float) -> NDArray[np.uint64]:
        """Of the operations that were due in a window, after a lead-in of a quarter of it."""
        opens, closes = self.window_s / 4, self.window_s * 5 / 4
        due = np.cumsum(self.rng.exponential(1 / rate, int(rate * closes * 1.3) + 50))
        due = due[due < closes]
        served = np.cumsum(self.rng.exponential(1 / (self.per_s * speed), len(due)))
        begun = np.maximum.accumulate(due - np.concatenate([[0.0], served[:-1]]))
        latencies: NDArray[np.uint64] = ((served + begun - due)[due >= opens] * 1e9).astype(np.uint64)
        return latencies


def searched(
    server: Server,
    limit_ms: float,
    blocks: int = 6,
    rounds: int = 8,
    delay_ms: Callable[[], float] = lambda: 0.0,
) -> list[VariantBlock]:
    """A search beside its closed loop, as the runner does it. `delay_ms` is added to each latency of a
    slice.
    """
    searches, found = Searches(), []
    for block in range(blocks):
        searches.begin_block(SEARCH, 1 / server.per_s, limit_ms)
        own: dict[Variant, list[SliceRecord]] = {CLOSED: [], SEARCH: []}
        speed = math.exp(server.rng.normal(0.0, server.block_scatter))
        for round_ in range(rounds):
            now = speed * math.exp(server.rng.normal(0.0, server.round_scatter))
            window = SliceWindow(0, 0, np.zeros(0, np.uint64))
            closed = piece(1e6 / (server.per_s * now), round_)
            own[CLOSED].append(searches.learned(CLOSED, closed, window, None))
            rate = searches.next_rate(SEARCH)
            assert rate
            latencies = server.latencies_ns(rate, now) + np.uint64(delay_ms() * 1e6)
            window = replace(window, durations=latencies)
            record = piece(100.0, round_, due=len(latencies))
            own[SEARCH].append(searches.learned(SEARCH, record, window, rate))
        found += [
            VariantBlock(variant=of, cohort=0, block=block, slices=tuple(slices))
            for of, slices in own.items()
        ]
    return found
