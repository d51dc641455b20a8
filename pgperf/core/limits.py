"""The limits and defaults of the numbers of a benchmark. Standard library only.

The model, its form, imported files, the command line, a run and all help texts use them.
"""

from dataclasses import dataclass

#: The range of a slice's length if a pilot sets it, ms.
PILOT_MIN_MS, PILOT_MAX_MS = 50, 5000


@dataclass(frozen=True)
class Limit:
    """One whole number: `low` to `high` inclusive, and 0 if `zero_means` is set, which says what 0
    does.

    `quick` is the maximum in a quick run, None if it keeps the benchmark's number.
    """

    name: str
    meaning: str
    low: int
    high: int
    default: int
    unit: str = ""
    zero_means: str = ""
    quick: int | None = None

    def allows(self, value: object) -> bool:
        if type(value) is not int:
            return False
        return self.low <= value <= self.high or bool(value == 0 and self.zero_means)

    @property
    def bounds(self) -> str:
        """The allowed numbers, for example "10 to 5000 ms, or 0: no slice"."""
        numbers = " ".join(filter(None, (f"{self.low} to {self.high}", self.unit)))
        return f"{numbers}, or 0: {self.zero_means}" if self.zero_means else numbers

    @property
    def remedy(self) -> str:
        return f"Give a whole number, {self.bounds}."

    @property
    def help_text(self) -> str:
        return f"{self.meaning}: {self.bounds}."

    @property
    def option_help(self) -> str:
        """The same for the option of a command."""
        return f"{self.meaning[0].lower()}{self.meaning[1:]}: {self.bounds}"


BLOCKS = Limit("blocks", "Number of blocks, 6 or more for an interval", 1, 100, default=6, quick=7)
ROUNDS = Limit("rounds", "Rounds per block", 1, 200, default=5, quick=7)
SLICE_MS = Limit(
    "slice_ms",
    "Length of a timed slice",
    10,
    PILOT_MAX_MS,
    default=0,
    unit="ms",
    zero_means=f"a pilot sets it, {PILOT_MIN_MS} to {PILOT_MAX_MS} ms",
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
#: Each number in the list of clients. PGPERF['MAX_CLIENTS'] lowers `high`.
CLIENTS = Limit("clients", "Clients at the same time, at most PGPERF['MAX_CLIENTS']", 1, 1024, default=1)
WORKERS = Limit(
    "workers", "Threads or tasks in each client process, where a layer can have several", 1, 64, default=1
)

#: Workloads of one benchmark.
MOST_WORKLOADS = 12

#: Fields of a benchmark that hold one number.
BY_NAME = {limit.name: limit for limit in (BLOCKS, ROUNDS, SLICE_MS, DIAGNOSTIC_MS, WORKERS)}

#: Constants that no benchmark changes: (full run, quick run).
LEAD_IN_MS, QUICK_LEAD_IN_MS = 50, 20
COLD_BLOCKS, QUICK_COLD_BLOCKS = 6, 1
WARM_UP_MS, WARM_UP_OPS = 500, 300
