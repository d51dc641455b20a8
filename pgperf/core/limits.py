"""The limits and defaults of the numbers of a benchmark. Standard library only.

The model, its form, imported files, the command line, a run and all help texts use them.
"""

from dataclasses import dataclass
from typing import Generic, TypeGuard, TypeVar

N = TypeVar("N", int, float)

#: The range of a slice's length if a pilot sets it, ms.
PILOT_MIN_MS, PILOT_MAX_MS = 50, 5000
#: How long the server runs a statement of a guarded session, s.
STATEMENT_TIMEOUT_S = 30
#: How long an HTTP request may take, from the start of connecting to the last byte of the body, s.
REQUEST_DEADLINE_S = 10


@dataclass(frozen=True)
class Limit(Generic[N]):
    """One number: `low` to `high` inclusive, and 0 if `zero_means` is set, which says what 0 does.

    It is whole unless `decimals` allows some. `quick` is the maximum in a quick run (the minimum
    with `quick_is_least`), None if it keeps the benchmark's number. A list with several numbers
    keeps them: the run compares them.

    `usual`: what the option of a command means without a number; None: it needs one.
    """

    name: str
    meaning: str
    low: N
    high: N
    default: N
    unit: str = ""
    zero_means: str = ""
    quick: N | None = None
    quick_is_least: bool = False
    decimals: int = 0
    usual: N | None = None

    def allows(self, value: object) -> TypeGuard[N]:
        if type(value) is float and self.decimals:
            return self._covers(value) and round(value, self.decimals) == value
        return type(value) is int and self._covers(value)

    def _covers(self, value: float) -> bool:
        return self.low <= value <= self.high or bool(value == 0 and self.zero_means)

    def in_quick_run(self, value: N) -> N:
        """The number that a quick run has in place of the benchmark's `value`. 0 keeps its meaning."""
        if self.quick is None or (value == 0 and self.zero_means):
            return value
        return max(self.quick, value) if self.quick_is_least else min(self.quick, value)

    @property
    def bounds(self) -> str:
        """The allowed numbers, for example "10 to 5000 ms, or 0: no slice"."""
        numbers = " ".join(filter(None, (f"{self.low:g} to {self.high:g}", self.unit)))
        return f"{numbers}, or 0: {self.zero_means}" if self.zero_means else numbers

    @property
    def remedy(self) -> str:
        kind = "number with at most 1 decimal" if self.decimals == 1 else "whole number"
        return f"Give a {kind}, {self.bounds}."

    @property
    def help_text(self) -> str:
        return f"{self.meaning}: {self.bounds}."

    @property
    def option_help(self) -> str:
        """The same for the option of a command."""
        return f"{self.meaning[0].lower()}{self.meaning[1:]}: {self.bounds}"


#: The fewest blocks after which a run may stop early. Ranks of fewer give no 95 % interval.
LEAST_BLOCKS = 6

BLOCKS = Limit("blocks", "Number of blocks, 6 or more for an interval", 1, 100, default=6, quick=7)
ROUNDS = Limit("rounds", "Rounds per block", 1, 200, default=5, quick=7)
SLICE_MS = Limit(
    "slice_ms",
    "Length of a timed slice",
    10,
    PILOT_MAX_MS,
    default=0,
    unit="ms",
    zero_means=f"pgperf chooses it from a short trial run ({PILOT_MIN_MS} to {PILOT_MAX_MS} ms)",
)
DIAGNOSTIC_MS = Limit(
    "diagnostic_ms",
    "Length of the diagnostic slice that each variant runs after the timed rounds, while pgperf"
    " samples the server's waits",
    50,
    10_000,
    default=1000,
    unit="ms",
    zero_means="no diagnostic slices",
    quick=250,
)
PRECISION = Limit(
    "precision",
    "Target precision in ±%: the run stops early when the 95 % confidence intervals of its main comparisons"
    " are within this range",
    0.1,
    50.0,
    default=2.0,
    unit="%",
    zero_means="no early stop",
    quick=5.0,
    quick_is_least=True,
    decimals=1,
)
BUDGET_S = Limit(
    "budget_s",
    "Time budget, which ends a run after as many blocks as fit",
    10,
    86_400,
    default=0,
    unit="s",
    zero_means="the predicted time of its blocks",
    quick=60,
)
#: Each number in the list of clients. PGPERF['MAX_CLIENTS'] lowers `high`.
CLIENTS = Limit(
    "clients", "Clients at the same time, at most PGPERF['MAX_CLIENTS']", 1, 1024, default=1, quick=5
)
WORKERS = Limit(
    "workers", "Threads or tasks in each client process, where a layer can have several", 1, 64, default=1
)
#: Each number in the list of rates, operations/s.
RATE_LOW, RATE_HIGH = 0.1, 1_000_000.0
LATENCY_LIMIT_MS = Limit(
    "latency_limit_ms",
    "Latency limit of an open loop: operations that would begin later than this after their intended"
    " start are skipped, and those that end later are counted as late",
    0.1,
    60_000.0,
    default=0.0,
    unit="ms",
    zero_means="none is skipped",
    decimals=1,
)
RATE_SEARCH_MS = Limit(
    "rate_search_ms",
    "Search for the highest rate at which the 99th percentile of the latency stays under this time, beside"
    " each closed loop",
    0.1,
    1000.0,
    default=0.0,
    unit="ms (10 is usual)",
    zero_means="no search",
    decimals=1,
    usual=10.0,
)

#: Load hosts that make a run's load together; 0: its own worker makes it.
LOAD_HOSTS_HIGH = 64

#: Workloads of one benchmark.
MOST_WORKLOADS = 12
#: Names of routes in a benchmark; a check of each costs more than the name.
MOST_ROUTES = 100

#: Fields of a benchmark that hold one number.
BY_NAME = {
    limit.name: limit
    for limit in (
        PRECISION,
        BUDGET_S,
        BLOCKS,
        ROUNDS,
        SLICE_MS,
        DIAGNOSTIC_MS,
        WORKERS,
        LATENCY_LIMIT_MS,
        RATE_SEARCH_MS,
    )
}

#: Constants that no benchmark changes: (full run, quick run).
LEAD_IN_MS, QUICK_LEAD_IN_MS = 50, 20
COLD_BLOCKS, QUICK_COLD_BLOCKS = 6, 1
WARM_UP_MS, WARM_UP_OPS = 500, 300
