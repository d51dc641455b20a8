"""The looks of a run at its precision, after numbers of blocks that are fixed beforehand."""

from collections.abc import Iterable
from dataclasses import replace

from pgperf.analysis import stopping
from pgperf.core.records import Definition, VariantBlock


class Looks:
    """Keeps the slices of a run and says when they are enough.

    `precision`: that of the last look, 0.016 for ±1.6 %; None before the first, or if it is not
    known.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._blocks: list[VariantBlock] = []
        self.precision: float | None = None
        self._seen = 0  # of the slices' blocks, by the last look

    def add(self, results: Iterable[VariantBlock]) -> None:
        """Keep one cohort's block, without its histograms."""
        if not self._definition.is_fixed:
            self._blocks += [replace(each, histogram=b"", phases={}) for each in results]

    def enough(self, blocks: int) -> bool:
        """Is the target precision reached after that many whole blocks? Only a look can tell."""
        if not (self._definition.stops_early and stopping.is_look(blocks)):
            return False
        self._look()
        return self.precision is not None and self.precision <= self._definition.precision / 100

    def of_all(self) -> float | None:
        """The precision of all results, also of those that came after the last look, such as a cohort
        of a block in which the time was up.
        """
        if self._seen != len(self._blocks):
            self._look()
        return self.precision

    def _look(self) -> None:
        self.precision = stopping.reached(self._definition, self._blocks)
        self._seen = len(self._blocks)
