"""How much of a run is done and how long the rest takes, by the wall time of its steps."""

import time
from collections.abc import Callable, Mapping
from statistics import fmean

from pgperf.core import protocol
from pgperf.core.records import Plan, Variant
from pgperf.runner import run_time
from pgperf.runner.run_time import Step

#: Parts that are late for the same reasons.
_KIND = {run_time.COLD_START: run_time.START}


class Progress:
    """The share of a run that is done, and the time that is left.

    Each step counts with its predicted time at first. The pilot of a cohort corrects its rounds. A
    step that the run has done counts with the mean time that it took, and corrects the steps of its
    kind that are still to come: on a busy machine, clients of every cohort start late.

    `diagnoses`: can there be diagnostic slices? `diagnostic` is their number.
    """

    def __init__(self, plan: Plan, *, diagnoses: bool, clock: Callable[[], float] = time.monotonic) -> None:
        definition = plan.definition
        self._plan, self._clock = plan, clock
        variants = sum(len(cohort.diagnosed) for cohort in plan.cohorts)
        self.diagnostic = variants if definition.diagnostic_ms and diagnoses else 0
        self._left = run_time.steps(plan, diagnoses=diagnoses)
        self._predicted_s = {step: run_time.predicted_s(plan, step) for step in self._left}
        self._took_s: dict[Step, list[float]] = {}
        self._begin = self._last = clock()
        self._share = 0.0

    def ended(self, cohort: int, part: str) -> None:
        """A step of that cohort ended now; it began when the step before ended."""
        now, step = self._clock(), Step(cohort, part)
        self._took_s.setdefault(step, []).append(now - self._last)
        self._last = now
        self._left[step] -= 1

    def piloted(
        self, cohort: int, slices: Mapping[str, protocol.Slice], op_s: Mapping[Variant, float]
    ) -> None:
        """The cohort's pilot chose these slices, by workload, and found these times of operations."""
        definition = self._plan.definition
        self._predicted_s[Step(cohort, run_time.ROUND)] = run_time.round_s(definition, slices, op_s)
        known = [op_s[variant] for variant in self._plan.cohorts[cohort].diagnosed if variant in op_s]
        if known and (step := Step(cohort, run_time.DIAGNOSTIC)) in self._predicted_s:
            self._predicted_s[step] = fmean(run_time.diagnostic_s(definition, each) for each in known)

    def left_s(self) -> float:
        """The wall time of the steps that are left."""
        return sum(times * self.expected_s(step) for step, times in self._left.items() if times > 0)

    def share(self) -> float:
        """0 to 1, never less than before."""
        done_s, left_s = self._last - self._begin, self.left_s()
        self._share = max(self._share, done_s / (done_s + left_s) if left_s else 1.0)
        return self._share

    def expected_s(self, step: Step) -> float:
        """The wall time of a step, each time: what it took so far, else as predicted and as late as
        other steps of its kind were.
        """
        took_s = self._took_s.get(step)
        if took_s:
            return sum(took_s) / len(took_s)
        return self._predicted_s[step] * self._lateness(_kind(step))

    def _lateness(self, kind: str) -> float:
        """The time that steps of this kind took, over their prediction; 1 before the first."""
        done = [step for step in self._took_s if _kind(step) == kind]
        predicted_s = sum(self._predicted_s[step] for step in done)
        return sum(map(self.expected_s, done)) / predicted_s if predicted_s else 1.0


def _kind(step: Step) -> str:
    return _KIND.get(step.part, step.part)
