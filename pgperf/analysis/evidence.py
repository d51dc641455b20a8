"""The sentences that give a verdict's evidence, from its stored numbers. Pure."""

from collections.abc import Callable, Iterator

from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.verdict import Basis, Capacity, Verdict, VerdictNumbers

Sentence = Callable[[Verdict], str]

#: Smaller shares of the response time are not in the sentence.
_LEAST = 0.01
_PART_TITLES = {
    "client": "client", "pooler": "pooler", "server": "server", "run_queue": "run queue",
    "pool_queue": "queue for the pool", "server_lock": "locks", "server_io": "I/O", "server_wait": "other server waits",
    "latency": "waiting", "waiting": "waiting", "unseen": "not seen",
}  # fmt: skip
_CPUS = {
    "pooler": "the pooler's one CPU",
    "clients": "the clients' CPUs",
    "server": "the server's CPUs",
    "host": "the host's CPUs",
}


def of_part(title: str, part: str) -> Sentence:
    """ "client CPU: 165 of 211 µs; server 21 µs, waiting 25 µs": the part, then the others by size."""
    return lambda verdict: _split(verdict.numbers, title, part)


def of_cpu(title: str, role: str) -> Sentence:
    """As `of_part`, after whose CPUs are used up if that decided."""

    def sentence(verdict: Verdict) -> str:
        found, split = verdict.finding, _split(verdict.numbers, title, role)
        if found.basis != Basis.SATURATED:
            return split
        return f"{verdict.numbers.clients} clients, {_CPUS[found.where]} {in_percent(found.share or 0.0)} busy; {split}"

    return sentence


def of_pool_queue(title: str) -> Sentence:
    def sentence(verdict: Verdict) -> str:
        split = _split(verdict.numbers, title, "pool_queue")
        exhausted = verdict.finding.basis == Basis.NO_FREE_CONNECTION
        return f"no server connection free; {split}" if exhausted else split

    return sentence


def of_disturbance(verdict: Verdict) -> str:
    found, split = verdict.finding, _all_parts(verdict.numbers)
    if found.basis == Basis.STEAL:
        stolen = (
            f"the hypervisor took {in_percent(found.share or 0.0)} of the {found.where}'s CPU time (steal)"
        )
        return "; ".join(filter(None, (stolen, split)))
    busy = f"other processes kept {found.cpus or 0.0:.1f} of the {found.where}'s CPUs busy"
    return "; ".join(filter(None, (f"{_queued(found.share)}, while {busy}", split)))


def of_unknown(verdict: Verdict) -> str:
    found = verdict.finding
    before = {Basis.RUN_QUEUE: _queued(found.share), Basis.IN_TURN: "no resource is used up"}.get(found.basis)
    missing = f"not known: {', '.join(found.missing)}" if found.missing else ""
    return "; ".join(filter(None, (before, missing, _all_parts(verdict.numbers))))


def of_capacity(capacity: Capacity) -> str:
    """Why the run does not show how much the server could do; "" where nothing is withheld."""
    if not capacity.withheld:
        return ""
    busy = {"clients": "the clients' CPUs were", "host": "the load host's CPUs were"}[capacity.busy]
    return f"{busy} {in_percent(capacity.share or 0.0)} busy"


def in_us(value: float) -> str:
    """A time in µs with as many digits as it is worth."""
    return f"{value:,.{0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2}f}"


def in_percent(share: float, decimals: int = 0) -> str:
    """A share of 1: 0.934 as "93 %"."""
    return f"{share * 100:.{decimals}f} %"


def _queued(share: float | None) -> str:
    return f"{in_percent(share or 0.0)} of the time in the run queue"


def _split(numbers: VerdictNumbers, title: str, part: str) -> str:
    """The part with its share of the response time, then the others by size."""
    if numbers.response_us is None:
        return title
    parts, least = dict(_known(numbers.parts_us)), _LEAST * numbers.response_us
    said = f"{title}: {in_us(parts.pop(part, 0.0))} of {in_us(numbers.response_us)} µs"
    queued = numbers.queue_us[part] or 0.0 if part in ROLES else 0.0
    if part in ROLES and queued >= least:
        parts["run_queue"] = parts.get("run_queue", queued) - queued
        said += f" and {in_us(queued)} µs in the queue for it"
    return "; ".join(filter(None, (said, _listed(parts, least))))


def _all_parts(numbers: VerdictNumbers) -> str:
    if numbers.response_us is None:
        return ""
    response = f"{in_us(numbers.response_us)} µs"
    rest = _listed(dict(_known(numbers.parts_us)), _LEAST * numbers.response_us)
    return f"of {response}: {rest}" if rest else response


def _known(parts: Known) -> Iterator[tuple[str, float]]:
    return ((name, us) for name, us in parts.items() if us)


def _listed(parts: dict[str, float], least: float) -> str:
    """The parts that are large enough, the largest first."""
    shown = sorted(
        ((us, name) for name, us in parts.items() if us and us >= least), key=lambda each: -each[0]
    )
    return ", ".join(f"{_PART_TITLES[name]} {in_us(us)} µs" for us, name in shown)
