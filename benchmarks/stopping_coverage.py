"""Coverage of the intervals of runs that stop when they know enough, by simulation.

    python -m benchmarks.stopping_coverage [--quick] [--trials 8000]

A run draws one log ratio per block around 0 and looks at its precision after fixed numbers of
blocks. It ends at the first look whose half-width is at most the target, or when its time is used
up. A cell shows the share of runs whose last interval contains 0, and the mean number of blocks.
The rows differ in the blocks that the budget allows and in the scatter of blocks, `target` in
standard deviations: at 9 every run ends at the first look, at 0.1 none stops early. `widened` is
the rule that pgperf uses; `plain` has the same looks without wider intervals.

The bar: for normal scatter and for scatter with heavy tails (Student's t with 4 degrees of
freedom), `widened` covers in 94 to 96 % of the runs, less or more the sampling error. Uniform
scatter, which has no tails at all, is shown without a bar. `--quick`: 1,000 trials.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.options import ScriptParser, run_script
from pgperf.analysis import stopping
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.samples import BLOCKS, Sample, interval

LOW, HIGH = 0.94, 0.96
SEED = 14
MOST = (6, 7, 10, 20, 48)
TARGETS = (9.0, 1.5, 1.2, 1.0, 0.85, 0.75, 0.65, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.1)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

#: Scatter of blocks with variance 1; those with a bar first.
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(4, size=shape) / math.sqrt(2),
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), size=shape),
}
BARRED = ("normal", "heavy tails")


@dataclass(frozen=True)
class Cell:
    """The share of runs whose interval contains the true value, and their mean number of blocks."""

    coverage: float
    blocks: float

    def __str__(self) -> str:
        return f"{in_percent(self.coverage, 1)} ({self.blocks:.0f})"


class Runs:
    """Simulated runs of up to `most` blocks, with their plain intervals after each look."""

    def __init__(self, draw: Draw, most: int, trials: int) -> None:
        self._looks = [blocks for blocks in stopping.WIDENING if blocks < most] + [most]
        values = draw(np.random.default_rng(SEED), (trials, most))
        self._found = {
            blocks: [_ends(interval(Sample(BLOCKS, row[:blocks], blocks))) for row in values]
            for blocks in self._looks
        }

    def coverage(self, target: float, widening: Callable[[int], float]) -> Cell:
        """Of runs that end at this half-width, each interval wider by the factor of its blocks."""
        ended = [self._end(at, target, widening) for at in range(len(self._found[self._looks[0]]))]
        covered = sum(low <= 0 <= high for low, high, _blocks in ended)
        return Cell(covered / len(ended), sum(blocks for _low, _high, blocks in ended) / len(ended))

    def _end(self, at: int, target: float, widening: Callable[[int], float]) -> tuple[float, float, int]:
        for blocks in self._looks:
            centre, low, high = self._found[blocks][at]
            factor = widening(blocks)
            low, high = centre - factor * (centre - low), centre + factor * (high - centre)
            if (high - low) / 2 <= target:
                break
        return low, high, blocks


def _ends(found: Estimate) -> tuple[float, float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.centre, found.low, found.high


def holds(cells: Iterable[Cell], trials: int) -> bool:
    error = sampling_error(trials)
    return all(LOW - error <= cell.coverage <= HIGH + error for cell in cells)


def sampling_error(trials: int) -> float:
    """Three standard errors: the bar applies to many cells."""
    return 3 * math.sqrt(LOW * (1 - LOW) / trials)


def main() -> int:
    options = _options()
    trials = 1_000 if options.quick else options.trials
    barred: list[Cell] = []
    print("| scatter | most blocks | target | widened | plain |\n" + "|---" * 5 + "|")
    for (shape, draw), most in product(SHAPES.items(), MOST):
        runs = Runs(draw, most, trials)
        for target in TARGETS:
            widened, plain = (
                runs.coverage(target, stopping.factor),
                runs.coverage(target, lambda _blocks: 1.0),
            )
            print(f"| {shape} | {most} | {target:g} | {widened} | {plain} |", flush=True)
            barred += [widened] if shape in BARRED else []
    print(f"\n{trials} trials, seed {SEED}: shares ± {in_percent(sampling_error(trials), 1)}")
    held = holds(barred, trials)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--trials", type=int, default=8_000)
    return parser.options()


if __name__ == "__main__":
    run_script(main)
