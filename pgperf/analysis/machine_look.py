"""A short look at a machine before a run, and what disturbs there. Pure.

`pgperf.runner.machine_look` makes it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from pgperf.analysis.disturbances import OTHER_CPUS
from pgperf.analysis.grade import Source
from pgperf.analysis.predicted_precision import pair_scatter

#: From this share of the host's CPU time on, steal makes a moment bad.
STEAL = 0.05
#: From this delay on (µs, 90th percentile), the wake-up of a sleeping process does.
WAKE_UP_US = 1000.0
#: From this scatter on of two slices of the same work in a row, the CPUs' changing speed does.
SCATTER = 0.10


@dataclass(frozen=True)
class Program:
    """A program of others, and how many CPUs it used."""

    name: str
    cpus: float


@dataclass(frozen=True, kw_only=True)
class MachineLook:
    """What a machine did for `seconds`, while a fixed piece of work ran in short slices.

    `steal`: share of the host's CPU time that the hypervisor took; `others`: by CPU of a run, the
    share of it that other processes used; None is not known. `wake_up_us`: delay with which a
    sleeping process ran, median and 90th percentile. `slices_us`: time of an operation of the fixed
    work in each slice; one slice begins every `step_s`.
    """

    seconds: float
    steal: float | None
    others: Mapping[int, float | None]
    programs: tuple[Program, ...]
    wake_up_us: tuple[float, float]
    slices_us: tuple[float, ...]
    step_s: float

    @property
    def scatter(self) -> float | None:
        """The standard deviation of the log ratio of two slices in a row; None from too few."""
        return pair_scatter(self.slices_us)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self | None:
        """None for what another version stored, and for nothing."""
        if stored.keys() != {each.name for each in fields(cls)}:
            return None
        read: dict[str, Any] = {
            "others": {int(cpu): share for cpu, share in stored["others"].items()},
            "programs": tuple(Program(**each) for each in stored["programs"]),
            "wake_up_us": tuple(stored["wake_up_us"]),
            "slices_us": tuple(stored["slices_us"]),
        }
        return cls(**{**stored, **read})


@dataclass(frozen=True)
class Trouble:
    """What makes the moment bad: steal (`share` of the host's CPU time), other processes (`share` of
    the CPU `cpu`), late wake-ups (`us`), or a changing speed (`share`: the scatter of equal work).
    """

    source: str
    share: float | None = None
    cpu: int | None = None
    us: float | None = None


WAKE_UP, SPEED = "wake_up", "speed"


def troubles(look: MachineLook) -> tuple[Trouble, ...]:
    """What a run would suffer from now; none in a good moment."""
    return tuple(_troubles(look))


def _troubles(look: MachineLook) -> Iterator[Trouble]:
    used = {cpu: share for cpu, share in look.others.items() if share is not None and share >= OTHER_CPUS}
    for cpu in sorted(used, key=lambda each: -used[each]):
        yield Trouble(Source.RUN_QUEUE, used[cpu], cpu)
    if look.steal is not None and look.steal >= STEAL:
        yield Trouble(Source.STEAL, look.steal)
    if look.wake_up_us[1] >= WAKE_UP_US:
        yield Trouble(WAKE_UP, us=look.wake_up_us[1])
    if (scatter := look.scatter) is not None and scatter >= SCATTER:
        yield Trouble(SPEED, scatter)
