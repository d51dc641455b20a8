"""Do the intervals cover what they say? Simulates comparisons of a thing with itself and counts.

    python -m benchmarks.coverage [--quick] [--trials 10000]

Log ratios of paired slices are drawn around a known centre: 2 % of noise in each, and a bias that each block's
processes keep for as long as they live. Four rules make an interval of them; `chosen` is pgperf's own. A cell shows
the share of trials whose interval has the centre, and its mean half-width. The bar: at nominally 95 %, `chosen` covers
in at least 94 % of the trials, give or take what their number leaves open, wherever it claims to: with two blocks or
more, or with one whose processes have no bias. `--quick`: 1,000 trials.

A second table does the same for two runs of one thing, compared block by block: by their times, and by their times
over the libpq of the same run. Between the runs the machine changes speed, and a layer may move by itself. Times
claim to cover only where the machine stays as it was, times over libpq wherever no layer moves.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from pgperf.analysis import student_t
from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann, signed_rank_interval
from pgperf.analysis.run_comparison import unpaired
from pgperf.analysis.samples import interval, sample_of, standard_error

NOISE = 0.02
BIASES = (0.0, 0.01, 0.02)
SHAPES = ((6, 1), (6, 2), (6, 5), (8, 4), (3, 10), (1, 20))
BAR = 0.94
SEED = 20


@dataclass(frozen=True)
class Scenario:
    """`stray`: the share of slices with five times the noise."""

    blocks: int
    rounds: int
    bias: float
    stray: float = 0.0

    @property
    def claimed(self) -> bool:
        return self.blocks > 1 or not self.bias

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Log ratios around 0, one row per block."""
        shape = (self.blocks, self.rounds)
        noise = rng.normal(0, NOISE, shape) * np.where(rng.random(shape) < self.stray, 5, 1)
        return noise + rng.normal(0, self.bias, (self.blocks, 1))


@dataclass(frozen=True)
class Cell:
    """Share of trials whose interval has the truth, and the mean half-width; NaN where there is no interval."""

    coverage: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.coverage:.1%} ± {self.half_width:.1%}" if self.coverage >= 0 else "none"


def chosen(data: np.ndarray) -> Estimate:
    return interval(sample_of(list(data)))


def pooled(data: np.ndarray) -> Estimate:
    """All rounds as one sample."""
    return signed_rank_interval(data.ravel())


def tested(data: np.ndarray) -> Estimate:
    """All rounds as one sample unless the mean square between blocks exceeds the one within."""
    blocks, rounds = data.shape
    if blocks == 1 or rounds == 1:
        return chosen(data)
    between = rounds * np.var(data.mean(axis=1), ddof=1)
    within = np.mean(np.var(data, axis=1, ddof=1))
    return chosen(data) if between > within else pooled(data)


def students(data: np.ndarray) -> Estimate:
    """Student's interval of the centres of blocks; of the rounds where there is one block."""
    values = sample_of(list(data)).values
    centre = hodges_lehmann(values)
    reach = student_t.quantile(0.95, len(values) - 1) * standard_error(values)
    return Estimate(centre, centre - reach, centre + reach, len(values), 0.95)


RULES: dict[str, Callable[[np.ndarray], Estimate]] = {
    "chosen": chosen,
    "rounds pooled": pooled,
    "pooled unless F > 1": tested,
    "Student of blocks": students,
}


@dataclass(frozen=True)
class TwoRuns:
    """How far the speed of the machine, and that of one layer alone, move from run to run: standard deviations.

    Within a run, the machine's speed moves by `DRIFT` from block to block, and each block's processes have `BIAS`.
    """

    blocks: tuple[int, int]
    machine: float
    own: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """By blocks, of each run: the log times of a layer, and those over libpq, all around 0."""
        times, over = [], []
        for count in self.blocks:
            machine = rng.normal(0, self.machine) + rng.normal(0, DRIFT, count)
            libpq, layer = rng.normal(0, BIAS, count), rng.normal(rng.normal(0, self.own), BIAS, count)
            times.append(machine + layer)
            over.append(layer - libpq)
        return times, over


DRIFT, BIAS = 0.03, 0.01
RUNS = [
    TwoRuns(blocks, machine, own)
    for blocks in ((10, 10), (7, 7), (7, 10), (3, 10))
    for machine, own in ((0.0, 0.0), (0.02, 0.0), (0.1, 0.0), (0.02, 0.005))
]


def simulate_runs(scenario: TwoRuns, trials: int) -> tuple[Cell, Cell]:
    """Coverage of the difference between two runs of the same, by their times and by their times over libpq."""
    rng = np.random.default_rng(SEED)
    found: tuple[list[Estimate], list[Estimate]] = ([], [])
    for _ in range(trials):
        for estimates, (one, other) in zip(found, scenario.draw(rng), strict=True):
            estimates.append(unpaired((tuple(other),), (tuple(one),), 0.95))
    return _cell(found[0]), _cell(found[1])


def simulate(
    scenario: Scenario, trials: int, rules: dict[str, Callable[[np.ndarray], Estimate]]
) -> dict[str, Cell]:
    """Every rule on the same `trials` draws."""
    rng = np.random.default_rng(SEED)
    found: dict[str, list[Estimate]] = {name: [] for name in rules}
    for _ in range(trials):
        data = scenario.draw(rng)
        for name, rule in rules.items():
            found[name].append(rule(data))
    return {name: _cell(estimates) for name, estimates in found.items()}


def _cell(estimates: list[Estimate]) -> Cell:
    bounds = [(e.low, e.high) for e in estimates if e.low is not None and e.high is not None]
    if not bounds:
        return Cell(math.nan, math.nan)
    covered = sum(low <= 0 <= high for low, high in bounds)
    return Cell(covered / len(bounds), sum(high - low for low, high in bounds) / 2 / len(bounds))


def main() -> int:
    options = _options()
    trials = 1_000 if options.quick else options.trials
    error = 1.96 * math.sqrt(0.95 * 0.05 / trials)
    held = []
    print(
        "| blocks x rounds | bias | strays | " + " | ".join(RULES) + " |\n" + "|---" * (3 + len(RULES)) + "|"
    )
    for (blocks, rounds), stray, bias in product(SHAPES, (0.0, 0.1), BIASES):
        scenario = Scenario(blocks, rounds, bias, stray)
        cells = simulate(scenario, trials, RULES)
        print(_row(scenario, cells), flush=True)
        held.append(not scenario.claimed or cells["chosen"].coverage >= BAR - error)
    print("\n| blocks | machine moves | layer moves | times | times over libpq |\n" + "|---" * 5 + "|")
    for runs in RUNS:
        times, over = simulate_runs(runs, trials)
        print(
            f"| {runs.blocks[0]}, {runs.blocks[1]} | {runs.machine:.0%} | {runs.own:.1%} | {times} | {over} |"
        )
        held.append(bool(runs.machine) or times.coverage >= BAR - error)
        held.append(bool(runs.own) or over.coverage >= BAR - error)
    print(f"\n{trials} trials: shares ± {error:.1%}")
    print("verdict: " + ("the bar holds" if all(held) else "the bar does NOT hold"))
    return 0 if all(held) else 1


def _row(scenario: Scenario, cells: dict[str, Cell]) -> str:
    shape = f"{scenario.blocks} x {scenario.rounds}"
    return (
        " | ".join([f"| {shape} | {scenario.bias:.0%} | {scenario.stray:.0%}", *map(str, cells.values())])
        + " |"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trials", type=int, default=10_000)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
