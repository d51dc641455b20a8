"""A verdict as it is stored: its word, the numbers behind it, and what a test of it found. Pure.

The sentences about it are made from these records when they are shown: see
`pgperf.analysis.verdict_kinds`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from pgperf.analysis.consistency_checks import Checks
from pgperf.analysis.cpu_account import Known
from pgperf.analysis.grade import Grade
from pgperf.analysis.number_text import in_percent

Json = Mapping[str, Any]

#: How certain a verdict is: likely until a test confirms it or withdraws it.
LIKELY, CONFIRMED, WITHDRAWN = "likely", "confirmed", "withdrawn"
UNDECIDED = "undecided"  # the outcome of a test that leaves the verdict likely


class Basis(StrEnum):
    """What a rule decided by. Where several rules find something, the first of these decides."""

    FAILED_REQUESTS = "failed_requests"  # no slice is without one, so nothing was measured
    INPUTS = "inputs"  # a figure is missing that every rule needs
    SATURATED = "saturated"
    INTERPRETER = "interpreter"  # the CPU that the workers of one process share is used up
    WEB_WORKERS = "web_workers"  # each process of the web servers is busy with a request
    NETWORK = "network"  # the network of a load host carries as much as it can
    STEAL = "steal"
    RUN_QUEUE = "run_queue"
    NO_FREE_CONNECTION = "no_free_connection"
    RATE_HELD = "rate_held"  # the clients of an open loop wait for their schedule
    LARGEST = "largest"  # the largest part of the response time
    IN_TURN = "in_turn"  # several clients wait for each other; the reason is not known
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Finding:
    """What a rule found. `where` is a host or the side whose CPUs are busy.

    `share` is of the time of that host, of its CPUs or of the response time; `cpus` are those that
    other processes used; `missing` names figures without which no other verdict can be given,
    `grant` the SQL that would make them known ("" where none would). `per_s`: operations per second of
    an open loop.
    """

    basis: Basis = Basis.LARGEST
    where: str = ""
    share: float | None = None
    cpus: float | None = None
    missing: tuple[str, ...] = ()
    grant: str = ""
    per_s: float | None = None

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        known = {name: stored[name] for name in ("where", "share", "cpus")}
        return cls(
            Basis(stored["basis"]),
            **known,
            missing=tuple(stored["missing"]),
            grant=stored.get("grant", ""),
            per_s=stored.get("per_s"),
        )


@dataclass(frozen=True)
class HostUse:
    """CPUs that other processes used, and the share of a host's CPU time that was stolen."""

    other_cpus: float | None = None
    steal: float | None = None


@dataclass(frozen=True)
class VerdictNumbers:
    """The numbers behind a verdict: times in µs per operation, utilisations by side.

    None is not known.
    """

    clients: int = 1  # connections at the same time
    workers: int = 1  # of them, in each client process
    response_us: float | None = None
    parts_us: Known = field(default_factory=dict)  # of the time breakdown
    shares: Known = field(default_factory=dict)  # each part's share in the sum of all parts
    queue_us: Known = field(default_factory=dict)  # in run queues, by role
    utilisation: Known = field(default_factory=dict)
    pooler_busy: float | None = None
    web_workers: int | None = None  # processes of the web servers
    run_queue: float | None = None  # share of the response time in run queues
    load_host: HostUse = HostUse()
    server_host: HostUse | None = None  # where that is another host

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        far = stored["server_host"]
        hosts = {"load_host": HostUse(**stored["load_host"]), "server_host": HostUse(**far) if far else None}
        return cls(**{**stored, **hosts})

    @property
    def server_side(self) -> float | None:
        """Utilisation of the CPUs that the server may use: its own, or those that all share. Where web
        servers have more than PostgreSQL, of the busier ones.
        """
        own = [self.utilisation[side] for side in ("server", "database") if side in self.utilisation]
        known = [used for used in own if used is not None]
        return max(known, default=None) if own else self.utilisation.get("host")


@dataclass(frozen=True)
class Lead:
    """How much longer the part of the time that a verdict names is than the next one, µs per
    operation, with its 95 % interval over blocks (None: too few blocks).
    """

    part: str
    runner_up: str
    us: float
    low: float | None = None
    high: float | None = None

    @property
    def has_interval(self) -> bool:
        return self.low is not None

    @property
    def is_open(self) -> bool:
        """Whether the other part may be the longer one, by the interval. Without one the longest part
        stays the word, because it was the longest in all that was measured.
        """
        return self.low is not None and self.low <= 0


@dataclass(frozen=True)
class Capacity:
    """Whether the run shows how much the server could do. None is not known.

    It does not (`withheld`) where the clients' CPUs, the one CPU of a client process with workers, or
    those of the clients' machine were used up, or of several load hosts the CPUs or the network of
    one: `busy` says which, `share` how much of them, and `where` the name of that load host.
    """

    withheld: bool | None = None
    busy: str = ""  # "clients", "interpreter", "one_host", "network", "host" or ""
    share: float | None = None
    where: str = ""

    @property
    def why(self) -> str:
        """Why the run does not show how much the server could do; "" where nothing is withheld."""
        if not self.withheld:
            return ""
        return f"{_BUSY[self.busy].format(self.where)} {in_percent(self.share or 0.0)} busy"


_BUSY = {
    "clients": "the clients' CPUs were",
    "interpreter": "the client's GIL or event loop was",
    "host": "the CPUs of the clients' machine were",
    "one_host": "the CPUs of load host {} were",
    "network": "the network of load host {} was",
}


@dataclass(frozen=True)
class MeasuredChange:
    """What a test of a verdict measured: `own` is the variant again, `changed` the one beside it.
    µs.
    """

    own_us: float | None = None
    changed_us: float | None = None
    own_part_us: float | None = None  # the part of the time that the verdict is about
    changed_part_us: float | None = None
    growth: float | None = None  # throughput of the changed variant over the own one's
    server_busy: float | None = None  # utilisation of the server's CPUs in the changed variant
    changed_word: str = ""
    added_us: float | None = None  # round trip time that was added
    holds_rate: bool = False  # the changed variant did all that its rate asks for
    own_processes: int | None = None  # of the web server that serves the variant
    changed_processes: int | None = None


@dataclass(frozen=True)
class Confirmation:
    """What a test of a verdict found. `again` is the verdict on the variant measured again, where
    it differs.

    `numbers` is None where the test measured nothing that tells. `blocks`: those of a test whose time
    was up before it had enough of them, else None.
    """

    intervention: str
    outcome: str
    again: "Verdict | None" = None
    numbers: MeasuredChange | None = None
    run: int | None = None
    blocks: int | None = None

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        again, numbers = stored["again"], stored["numbers"]
        return cls(
            stored["intervention"],
            stored["outcome"],
            Verdict.from_json(again),
            MeasuredChange(**numbers) if numbers else None,
            stored["run"],
            stored.get("blocks"),
        )


@dataclass(frozen=True)
class Verdict:
    """The bottleneck of a variant. `certainty` is None for words that name none."""

    word: str
    certainty: str | None = None
    finding: Finding = Finding()
    numbers: VerdictNumbers = VerdictNumbers()
    checks: Checks = field(default_factory=Checks)
    capacity: Capacity = Capacity()
    grade: Grade = field(default_factory=Grade)  # how undisturbed the measurement was
    lead: Lead | None = None  # of the longest part, where that decided
    intervention: str = ""  # the intervention that would test it
    confirmation: Confirmation | None = None

    @classmethod
    def from_json(cls, stored: Json | None) -> "Verdict | None":
        """None for a variant without a verdict."""
        if not stored:
            return None
        tested = stored["confirmation"]
        return cls(
            word=stored["word"],
            certainty=stored["certainty"],
            finding=Finding.from_json(stored["finding"]),
            numbers=VerdictNumbers.from_json(stored["numbers"]),
            checks=Checks.from_json(stored["checks"]),
            capacity=Capacity(**stored["capacity"]),
            grade=Grade.from_json(stored.get("grade")),
            lead=Lead(**stored["lead"]) if stored.get("lead") else None,
            intervention=stored["intervention"],
            confirmation=Confirmation.from_json(tested) if tested else None,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_json)

    @property
    def is_open(self) -> bool:
        """Whether a test of it exists and none has been run."""
        return self.certainty == LIKELY and bool(self.intervention)


def _json(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """A record as JSON has it: with lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields}
