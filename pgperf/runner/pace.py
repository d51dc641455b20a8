"""How a run keeps its time budget: whether another block begins, and with how many rounds.

The first blocks of a run get as many rounds as leave time for six blocks. Each later block begins
only if the slowest so far would fit into the rest of the budget. A run of a fixed length has all
its blocks and rounds.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgperf.core.exceptions import BudgetTooShort, TimeIsUp
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Plan
from pgperf.runner import preflight, run_time
from pgperf.runner.client_process import also_while_waiting
from pgperf.runner.progress import Progress
from pgperf.runner.run_time import Step

#: The share of the budget after which even a block under way is given up.
_LATEST = 1.15
#: Before this one, the diagnostic slices of a run that will not reach its sixth block have to end: a
#: block that has begun is finished, too.
_DIAGNOSED = 1.1


class Pace:
    """The clock of a run with a time budget, whose `progress` knows how long its steps take.

    `after_s`: the predicted time of what follows the diagnostic slices. `most_s`: no run takes
    longer. Times in seconds.
    """

    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        after_s: float = 0.0,
        begin: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        most_s: float = math.inf,
    ) -> None:
        self._plan, self._progress, self._clock = plan, progress, clock
        self._after_s = after_s
        self._begin = clock() if begin is None else begin
        self._promised_s = min(run_time.promised_s(plan), most_s)
        self.budget_s = math.inf if plan.definition.is_fixed else self._promised_s
        self.planned_rounds = plan.definition.rounds
        self._least_blocks = min(LEAST_BLOCKS, plan.definition.most_blocks)
        self._slowest_s = 0.0
        self.blocks = 0
        self.diagnosed_block = plan.definition.diagnosed_block

    def passed_s(self) -> float:
        return self._clock() - self._begin

    def left_s(self) -> float:
        """The rest of the budget; infinite without one."""
        return max(0.0, self.budget_s - self.passed_s())

    def has_time_for_block(self) -> bool:
        """Does the next block fit: one of the first six with a round, a later one if it is as slow
        as the slowest so far?
        """
        if not self.blocks or math.isinf(self.budget_s):
            return True
        least_s = self._seconds(self._blocks_from(self.blocks, self.blocks + 1))
        return (least_s if self.blocks < self._least_blocks else self._slowest_s) <= self.left_s()

    def block_ended(self, took_s: float) -> None:
        """`took_s`: without what a run does once, such as its pilot."""
        self._slowest_s = max(self._slowest_s, took_s)
        self.blocks += 1

    def rounds(self, cohort: int, block: int) -> Iterator[int]:
        """The numbers of a block's rounds, the first at least. Fewer than were planned if they take
        so long that the rest of the six blocks could not have as many.

        Raises BudgetTooShort in the first block if six blocks cannot fit.
        """
        planned = self.affordable_rounds(cohort, block)
        if planned < 1 and block == 0:
            raise self.too_short(cohort)
        self.planned_rounds = max(1, planned)
        yield 0
        this, later = Counter({Step(cohort, run_time.ROUND): 1}), self._after(cohort, block)
        for round_ in range(1, self.planned_rounds):
            if self._seconds(this) + self._seconds(later, round_ + 1) > self.left_s():
                return
            yield round_

    def affordable_rounds(self, cohort: int, block: int) -> int:
        """The rounds of this block and the later ones of the first six that fit, at most as many as
        before; 0 if not even one does. Call it when the block's clients have warmed up.
        """
        if math.isinf(self.budget_s):
            return self.planned_rounds
        todo = self._after(cohort, block) + Counter({Step(cohort, run_time.ROUND): 1})
        rest_s = self._seconds(todo, rounds=0)
        round_s = self._seconds(todo) - rest_s
        return max(0, min(self.planned_rounds, int((self.left_s() - rest_s) / round_s)))

    def diagnoses(self, cohort: int, block: int) -> bool:
        """Does that block end with the diagnostic slices? Call it when the cohort's rounds are timed.

        Where no time would be left for them after another block, this one does, while its clients are
        there. The first cohort decides for all, so that each has them once.
        """
        if not cohort and block < self.diagnosed_block and self._is_last_to_diagnose(block):
            self.diagnosed_block = block
        return block == self.diagnosed_block

    def _is_last_to_diagnose(self, block: int) -> bool:
        """Is there time for the diagnostic slices now, but none for another block and them?"""
        definition = self._plan.definition
        if math.isinf(self.budget_s) or not definition.diagnostic_ms or definition.ends_after_blocks:
            return False  # a test of a verdict decides nothing before its sixth block
        todo, another = Counter[Step](), Counter[Step]()
        for cohort in range(len(self._plan.cohorts)):
            todo += self._diagnostic_slices(cohort)
            todo += self._timed(cohort, block) if cohort else Counter[Step]()
            another += self._timed(cohort, block + 1)
        now_s, later_s = self._seconds(todo), self._seconds(todo + another)
        return self.left_s() < later_s and self.passed_s() + now_s <= _DIAGNOSED * self.budget_s

    def has_time_to_repeat(self, cohort: int, block: int) -> bool:
        """Does another diagnostic slice of that cohort fit into the promised time, with all that must
        still follow in this block? Also a run of a fixed length has a promise.
        """
        todo = Counter({Step(cohort, run_time.DIAGNOSTIC): 1})
        for later in range(cohort + 1, len(self._plan.cohorts)):
            todo += self._steps(later, block)
        return self.passed_s() + self._seconds(todo, self.planned_rounds) <= self._promised_s

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While waiting for clients, raise TimeIsUp long after the budget: a client may hang."""
        if math.isinf(self.budget_s):
            yield
            return
        with also_while_waiting(self.check):
            yield

    def check(self) -> None:
        if self.passed_s() > _LATEST * self.budget_s:
            has, took = map(preflight.lasting, (self.budget_s, self.passed_s()))
            raise TimeIsUp(f"time budget: the run has {has} and took {took}")

    def _after(self, cohort: int, block: int) -> Counter[Step]:
        """The steps after the rounds of this block, up to the sixth block, a round in each."""
        todo = self._diagnostics(cohort, block)
        for later in range(cohort + 1, len(self._plan.cohorts)):
            todo += self._steps(later, block)
        return todo + self._blocks_from(block + 1, self._least_blocks)

    def _blocks_from(self, first: int, end: int) -> Counter[Step]:
        todo = Counter[Step]()
        for block in range(first, end):
            for cohort in range(len(self._plan.cohorts)):
                todo += self._steps(cohort, block)
        return todo

    def _steps(self, cohort: int, block: int) -> Counter[Step]:
        """The steps of one cohort's block, with one round."""
        return self._timed(cohort, block) + self._diagnostics(cohort, block)

    def _timed(self, cohort: int, block: int) -> Counter[Step]:
        """The same without diagnostic slices."""
        definition = self._plan.definition
        anew = run_time.restarted(definition, self._plan.cohorts[cohort])
        parts = [run_time.RESTART] if anew else []
        parts += [run_time.COLD_START if block < definition.cold_blocks else run_time.START]
        parts += [run_time.WARM_UP, run_time.ROUND, *([] if block else [run_time.PILOT])]
        return Counter(Step(cohort, part) for part in parts)

    def _diagnostics(self, cohort: int, block: int) -> Counter[Step]:
        if not self._plan.definition.diagnostic_ms or block != self.diagnosed_block:
            return Counter()
        return self._diagnostic_slices(cohort)

    def _diagnostic_slices(self, cohort: int) -> Counter[Step]:
        return Counter({Step(cohort, run_time.DIAGNOSTIC): len(self._plan.cohorts[cohort].diagnosed)})

    def _seconds(self, steps: Counter[Step], rounds: int = 1) -> float:
        """The expected time of these steps, with so many rounds for each."""
        diagnoses = any(step.part == run_time.DIAGNOSTIC for step in steps)
        expected_s = sum(
            times * (rounds if step.part == run_time.ROUND else 1) * self._progress.expected_s(step)
            for step, times in steps.items()
        )
        return expected_s + (self._after_s if diagnoses else 0.0)

    def first_block_too_long(self) -> BudgetTooShort:
        """The refusal of a run whose first block has not ended long after the budget: each of six
        takes as long.
        """
        return self._refusal(self._least_blocks * self.passed_s())

    def too_short(self, cohort: int) -> BudgetTooShort:
        """The refusal of a run that is about to time the first round of that cohort."""
        todo = self._after(cohort, 0) + Counter({Step(cohort, run_time.ROUND): 1})
        return self._refusal(self.passed_s() + self._seconds(todo))

    def _refusal(self, least_s: float) -> BudgetTooShort:
        chosen = not self._plan.definition.ends_after_blocks
        return preflight.too_short(least_s, self.budget_s, chosen=chosen)
