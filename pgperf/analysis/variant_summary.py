"""A variant of a run, summarised: the record that all logic reads, made once from the stored row.
Pure.

The fields are those of the model `VariantResult`. None is not known, never 0.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pgperf.analysis.cpu_account import ROLES, CpuAccount, CpuPerOperation, Known
from pgperf.analysis.diagnostics import Diagnostics
from pgperf.analysis.http_requests import HttpRequests
from pgperf.analysis.open_loop import OpenLoop
from pgperf.analysis.scheduler_states import interpreter_us, process_busy, thread_us, time_parts
from pgperf.analysis.top import Top
from pgperf.analysis.verdict import Verdict
from pgperf.core.client_environment import DEFAULT
from pgperf.core.layers import is_async

COLD_PHASES = ("startup", "connect", "first", "second", "next_ten", "other_query_first", "other_query_second")
_PARTS = ("cpu_account", "top", "diagnostics", "verdict", "http", "open_loop")


@dataclass(frozen=True)
class VariantSummary:
    """`us_per_op` with its 95 % interval; latencies and cold phases in µs by name.

    Of an open loop, `latency_us` is from the intended start of each operation, and `us_per_op` from
    the real one.
    """

    label: str = ""
    workload: str = ""
    layer: str = ""
    mode: str = ""
    route: str = ""
    clients: int = 1
    placement: str = ""
    connect: str = ""
    control: int = 0
    named: bool = False  # does the label name the workload?
    workers: int = 1  # threads or tasks in each client process
    environment: str = DEFAULT
    rate: float | None = None  # operations/s of its clients together; None: closed loop
    schedule: str = ""  # of the rate; "" in a closed loop
    hosts: int = 0  # load hosts of its clients; 0: the run's own worker
    slices: int = 0
    ops: int = 0
    rows: int = 0
    errors: int = 0
    ops_per_s: float | None = None
    rows_per_s: float | None = None
    us_per_op: float | None = None
    us_per_op_low: float | None = None
    us_per_op_high: float | None = None
    latency_us: Known = field(default_factory=dict)
    phases_us: dict[str, Known] = field(default_factory=dict)  # connect, operate, close
    cold_us: Known = field(default_factory=dict)
    cpu_us_per_op: CpuPerOperation = field(default_factory=CpuPerOperation)
    cpu_account: CpuAccount | None = None
    top: Top | None = None
    diagnostics: Diagnostics | None = None
    verdict: Verdict | None = None
    http: HttpRequests | None = None  # None for a layer that makes no HTTP requests
    open_loop: OpenLoop | None = None  # None for a closed loop

    @property
    def connections(self) -> int:
        """How many connections run operations at the same time."""
        return self.clients * self.workers

    @property
    def has_outcome(self) -> bool:
        """May it be compared? Not where too many of its requests failed."""
        return self.http is None or self.http.has_outcome

    @property
    def process_busy(self) -> float | None:
        """The share of the time that one worker of each client process was at work on its CPU. Where
        the workers share one thread for all of an operation: that it was taken, at least.
        """
        if self.workers > 1 and is_async(self.layer):
            under_way = self._under_way
            return None if under_way is None else under_way / self.workers
        return process_busy(self.ops_per_s, self.cpu_us_per_op.client, self.clients)

    @property
    def _under_way(self) -> float | None:
        """The operations that each client process has under way at a time: in a closed loop one for
        each worker, at a rate by Little's law.
        """
        if not self.schedule:
            return float(self.workers)
        if self.ops_per_s is None or self.us_per_op is None:
            return None
        return min(float(self.workers), self.ops_per_s * self.us_per_op / 1e6 / self.clients)

    def time_parts(self) -> dict[str, float | None]:
        """The parts of one operation's time in µs, as `scheduler_states.PARTS` names them."""
        waited = self.run_queue_us()
        queue = self._interpreter_us(waited["client"])
        return time_parts(self.us_per_op, self._cpu_us(), waited, queue)

    def run_queue_us(self) -> Known:
        """The parts of one operation's time that its processes spent in run queues, µs by role.

        No more than CPU time leaves of the operation: a process that still waits for a CPU when its
        answer has arrived does not prolong it.
        """
        waited = self._scaled(self.cpu_account.wait_us_per_op if self.cpu_account else dict.fromkeys(ROLES))
        if self.us_per_op is None:
            return waited
        left = max(0.0, self.us_per_op - sum(us or 0.0 for us in self._cpu_us().values()))
        known = sum(us or 0.0 for us in waited.values())
        fits = min(1.0, left / known) if known else 1.0
        return {role: None if us is None else us * fits for role, us in waited.items()}

    def _cpu_us(self) -> Known:
        return self._scaled({role: self.cpu_us_per_op.of(role) for role in ROLES})

    def _scaled(self, means: Known) -> dict[str, float | None]:
        """Means over all operations, which long ones raise, as parts of `us_per_op`, which they hardly
        change.
        """
        return {role: None if us is None else us / self.mean_ratio for role, us in means.items()}

    @property
    def mean_ratio(self) -> float:
        """The mean time of all operations over `us_per_op`; 1 where one of them is not known."""
        mean_us = self.cpu_account.mean_us_per_op if self.cpu_account else None
        return mean_us / self.us_per_op if self.us_per_op and mean_us else 1.0

    def _interpreter_us(self, queued_us: float | None) -> float | None:
        """The most that an operation waited for the interpreter, or for the one thread of an
        asynchronous layer, which an operation has until its queries have ended.
        """
        if is_async(self.layer):
            return thread_us(self.us_per_op, self._under_way, self.workers)
        own = self._cpu_us()["client"]
        held = None if own is None else own + (queued_us or 0.0)
        busy = process_busy(self.ops_per_s, None if held is None else held * self.mean_ratio, self.clients)
        return interpreter_us(busy, held, self.workers)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """From the fields of a stored row; those that it lacks are not known."""
        plain = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        records = {
            "cpu_us_per_op": CpuPerOperation.from_json(stored.get("cpu_us_per_op") or {}),
            "cpu_account": CpuAccount.from_json(stored.get("cpu_account")),
            "top": Top.from_json(stored.get("top")),
            "diagnostics": Diagnostics.from_json(stored.get("diagnostics")),
            "verdict": Verdict.from_json(stored.get("verdict")),
            "http": HttpRequests.from_json(stored.get("http")),
            "open_loop": OpenLoop.from_json(stored.get("open_loop")),
        }
        return cls(**{**plain, **records})

    def to_json(self) -> dict[str, Any]:
        """The fields of a row, as plain JSON: {} for a part that was not measured."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return asdict(self) | {name: part.to_json() if part else {} for name, part in parts.items()}
