"""Coverage of the intervals of runs that stop when they know enough, by simulation.

    python -m benchmarks.stopping_coverage [--quick] [--trials 8000]

A run has 1, 3 or 8 comparisons with one reference. It draws one log ratio per block and comparison
around 0. As the comparisons share the reference, which scatters as much as each other variant, their
log ratios have a correlation of 1/2. The run looks at its precision after fixed numbers of blocks,
and ends at the first look where the widest half-width is at most the target, or when its time is
used up. A cell shows the share of its last intervals that contain 0, with its standard error, and
the mean number of blocks. The error is that of independent runs: the intervals of one run are not
independent.

The rows differ in the comparisons, in the blocks that the budget allows and in the scatter of blocks,
`target` in standard deviations: at 9 every run ends at the first look, at 0.1 none stops early.
`widened` is the rule that pgperf uses; `plain` has the same looks without wider intervals.

The bar: for normal scatter and for scatter with heavy tails (Student's t with 4 degrees of freedom),
`widened` covers in 94 to 96 % with each number of comparisons, less or more the sampling error that
one comparison has. Uniform scatter, which has no tails at all, is shown without a bar. `--quick`:
1,000 trials.
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

COMPARISONS = (1, 3, 8)
LOW, HIGH = 0.94, 0.96
SEED = 14
MOST = (6, 7, 10, 20, 48)
TARGETS = (9.0, 1.5, 1.2, 1.0, 0.85, 0.75, 0.65, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.1)
#: Standard normal values by run, block and comparison become values of another scatter.
Shape = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _heavy(rng: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    """Student's t with 4 degrees of freedom: a wild block is wild for all of its comparisons."""
    return normal * np.sqrt(2 / rng.chisquare(4, size=(*normal.shape[:2], 1)))


def _uniform(_rng: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    return math.sqrt(3) * np.vectorize(math.erf)(normal / math.sqrt(2))


#: Scatter of blocks with variance 1; those with a bar first.
SHAPES: dict[str, Shape] = {"normal": lambda _rng, normal: normal, "heavy tails": _heavy, "uniform": _uniform}
BARRED = ("normal", "heavy tails")


@dataclass(frozen=True)
class Cell:
    """The share of intervals that contain the true value, its standard error over runs, and the mean
    number of blocks of a run.
    """

    coverage: float
    error: float
    blocks: float

    def __str__(self) -> str:
        return f"{in_percent(self.coverage, 1)} ± {in_percent(self.error, 2)} ({self.blocks:.0f})"


class Runs:
    """Simulated runs of up to `most` blocks, with the plain intervals of all their comparisons after
    each look. A run with fewer comparisons has the first of them.
    """

    def __init__(self, shape: Shape, most: int, trials: int) -> None:
        looks = [blocks for blocks in stopping.WIDENING if blocks < most] + [most]
        values = log_ratios(shape, (trials, most, COMPARISONS[-1]))
        self._trials = trials
        self._found = {blocks: _intervals(values[:, :blocks]) for blocks in looks}

    def coverage(self, target: float, widening: Callable[[int], float], comparisons: int = 1) -> Cell:
        """Of runs that end where the widest of so many comparisons has this half-width, each interval
        wider by the factor of its blocks.
        """
        covering, ended = np.empty(self._trials), np.empty(self._trials)
        going = np.full(self._trials, fill_value=True)
        for blocks, found in self._found.items():
            low, high = _widened(found[..., :comparisons], widening(blocks))
            covering[going] = ((low <= 0) & (high >= 0)).mean(axis=1)[going]
            ended[going] = blocks
            going &= (high - low).max(axis=1) / 2 > target
        error = covering.std() / math.sqrt(self._trials)
        return Cell(float(covering.mean()), float(error), float(ended.mean()))


def log_ratios(shape: Shape, size: tuple[int, int, int]) -> np.ndarray:
    """By run, block and comparison: each variant against the reference of that block."""
    rng = np.random.default_rng(SEED)
    variants, reference = rng.normal(size=size), rng.normal(size=(*size[:2], 1))
    return shape(rng, (variants - reference) / math.sqrt(2))


def _intervals(values: np.ndarray) -> np.ndarray:
    """Centres, lows and highs by run and comparison."""
    found = [[_ends(interval(Sample(BLOCKS, blocks, len(blocks)))) for blocks in run.T] for run in values]
    return np.moveaxis(np.array(found), -1, 0)


def _widened(intervals: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    centre, low, high = intervals
    return centre - factor * (centre - low), centre + factor * (high - centre)


def _ends(found: Estimate) -> tuple[float, float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.centre, found.low, found.high


def holds(cells: Iterable[Cell], trials: int) -> bool:
    error = sampling_error(trials)
    return all(LOW - error <= cell.coverage <= HIGH + error for cell in cells)


def sampling_error(trials: int) -> float:
    """Three standard errors of one comparison: the bar applies to many cells. With several, a share is
    at least as exact.
    """
    return 3 * math.sqrt(LOW * (1 - LOW) / trials)


def main() -> int:
    options = _options()
    trials = 1_000 if options.quick else options.trials
    barred: list[Cell] = []
    print("| scatter | comparisons | most blocks | target | widened | plain |\n" + "|---" * 6 + "|")
    for (name, shape), most in product(SHAPES.items(), MOST):
        runs = Runs(shape, most, trials)
        for count, target in product(COMPARISONS, TARGETS):
            widened, plain = (runs.coverage(target, rule, count) for rule in (stopping.factor, _unchanged))
            print(f"| {name} | {count} | {most} | {target:g} | {widened} | {plain} |", flush=True)
            barred += [widened] if name in BARRED else []
    print(f"\n{trials} trials, seed {SEED}: the bar has room for {in_percent(sampling_error(trials), 1)}")
    held = holds(barred, trials)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def _unchanged(_blocks: int) -> float:
    return 1.0


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--trials", type=int, default=8_000)
    return parser.options()


if __name__ == "__main__":
    run_script(main)
