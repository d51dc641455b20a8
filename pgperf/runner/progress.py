"""How much of a run is done, by the time that its slices take."""

from bisect import bisect
from collections.abc import Callable
from itertools import accumulate

from pgperf.core.records import Plan
from pgperf.runner import preflight


class Progress:
    """The share of a run that is done, by the time that slices take.

    A round of a cohort counts with its predicted length, and with its measured length as soon as
    one is over: the prediction cannot know how long a query takes.

    `slices_s`: the time that all slices have taken so far. `diagnoses`: can there be diagnostic
    slices? `total` and `diagnostic` are the numbers of slices.
    """

    def __init__(self, plan: Plan, slices_s: Callable[[], float], *, diagnoses: bool) -> None:
        definition = plan.definition
        self._blocks, self._rounds = definition.blocks, definition.rounds
        self._round_s = [preflight.round_s(definition, cohort) for cohort in plan.cohorts]
        self._sizes = [len(cohort.variants) for cohort in plan.cohorts]
        self.total = self._blocks * self._rounds * sum(self._sizes)
        self._diagnostic_s = preflight.diagnostic_s(definition)
        self.diagnostic = sum(self._sizes) if definition.diagnostic_ms and diagnoses else 0
        self._slices_s, self._spent_s = slices_s, 0.0
        self._done, self._share = 0, 0.0

    def share(self, done: int, diagnosed: int) -> float:
        """0 to 1, never less than before. `done` timed slices, whole rounds, and `diagnosed` ones."""
        if done > self._done:
            self._learn(done)
        done_s = self._seconds(done) + diagnosed * self._diagnostic_s
        total_s = self._seconds(self.total) + self.diagnostic * self._diagnostic_s
        self._share = max(self._share, done_s / total_s)
        return self._share

    def _learn(self, done: int) -> None:
        """Take the length of the last round for that of all rounds of its cohort."""
        within = (done - 1) % (self._rounds * sum(self._sizes))
        cohort = bisect(list(accumulate(self._rounds * size for size in self._sizes)), within)
        spent_s = self._slices_s()
        rounds = (done - self._done) / self._sizes[cohort]
        self._round_s[cohort] = (spent_s - self._spent_s) / rounds
        self._done, self._spent_s = done, spent_s

    def _seconds(self, slices: int) -> float:
        """The time of the run's first slices."""
        blocks, rest = divmod(slices, self._rounds * sum(self._sizes))
        seconds = blocks * self._rounds * sum(self._round_s)
        for size, round_s in zip(self._sizes, self._round_s, strict=True):
            own = min(rest, self._rounds * size)
            seconds += own / size * round_s
            rest -= own
        return seconds
