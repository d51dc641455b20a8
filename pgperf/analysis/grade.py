"""How undisturbed a measurement was: a grade with the disturbances behind it, as records. Pure.

`pgperf.analysis.disturbances` finds them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class Source(StrEnum):
    STEAL = "steal"
    RUN_QUEUE = "run_queue"
    THROTTLING = "throttling"  # by the CPU quota of a control group
    CLOCK = "clock"  # whose reads take long


class GradeWord(StrEnum):
    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"
    UNKNOWN = "unknown"


#: What other processes and the hypervisor take. A quota and the clock are the host's own.
_OTHERS = (Source.STEAL, Source.RUN_QUEUE)


@dataclass(frozen=True)
class Disturbance:
    """`us` is the most that it added to one operation, µs; None is not known.

    `where` is a host, or the role that was throttled.

    `share`: of the host's CPU time that was stolen, or of the response time that passed in run
    queues. `cpus` are those that other processes used, None if not known; `programs` are the
    busiest of them.
    """

    source: str
    where: str
    us: float | None
    share: float | None
    cpus: float | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grade:
    """How undisturbed a measurement was, the largest disturbance first.

    `share` is the most that all of them together have of the response time; None is not known.
    """

    word: str = GradeWord.UNKNOWN
    share: float | None = None
    disturbances: tuple[Disturbance, ...] = ()

    @property
    def others(self) -> float | None:
        """The most that other processes and the hypervisor have of the response time."""
        own = [each for each in self.disturbances if each.source not in _OTHERS and each.us and each.share]
        if self.share is None or not own:
            return self.share
        response = (own[0].us or 0.0) / (own[0].share or 1.0)
        return min(1.0, self.others_us / response)

    @property
    def others_us(self) -> float:
        """The most that other processes and the hypervisor added to one operation, µs."""
        return sum(each.us or 0.0 for each in self.disturbances if each.source in _OTHERS)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self:
        if not stored:
            return cls()
        found = (
            Disturbance(**{**each, "programs": tuple(each["programs"])}) for each in stored["disturbances"]
        )
        return cls(stored["word"], stored["share"], tuple(found))
