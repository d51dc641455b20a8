"""The looks of a run at its precision, after numbers of blocks that are fixed beforehand."""

from collections.abc import Iterable
from dataclasses import replace

from pgperf.analysis import stopping
from pgperf.core.records import Definition, VariantBlock


class Looks:
    """Keeps the slices of a run and says when they are enough.

    `precision`: that of the last look, 0.016 for ±1.6 %; None before the first, or if it is not
    known. `at`: the number of blocks then.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._blocks: list[VariantBlock] = []
        self.precision: float | None = None
        self.at = 0

    def add(self, results: Iterable[VariantBlock]) -> None:
        """Keep one cohort's block, without its histograms."""
        if not self._definition.is_fixed:
            self._blocks += [replace(each, histogram=b"", phases={}) for each in results]

    def enough(self, blocks: int) -> bool:
        """Is the target precision reached after that many whole blocks? Only a look can tell."""
        if not (self._definition.stops_early and stopping.is_look(blocks)):
            return False
        self.look(blocks)
        return self.precision is not None and self.precision <= self._definition.precision / 100

    def look(self, blocks: int) -> None:
        """Read the precision, such as that of a run whose time is used up."""
        self.precision, self.at = stopping.reached(self._definition, self._blocks), blocks
