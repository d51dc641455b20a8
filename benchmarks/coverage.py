"""Coverage of the intervals, by simulated comparisons of a variant with itself.

    python -m benchmarks.coverage [--quick] [--trials 10000]

The program draws log ratios of paired slices around a known centre, with 2 % of noise in each slice
and a bias that is constant within a block. Four rules compute an interval from them; `chosen` is
the rule that pgperf uses. A cell shows the share of trials whose interval contains the centre, and
the mean half-width. The bar: at nominally 95 %, `chosen` covers in at least 94 % of the trials,
less the sampling error of their number. It applies to two blocks or more, and to one block without
a bias. `--quick`: 1,000 trials.

A second table does the same for two runs of the same benchmark, compared by blocks: by their times,
and by their times over libpq in the same run. Between the runs the speed of the machine changes,
and so may that of one layer. The bar applies to times if the machine's speed stays the same, and to
times over libpq if no layer's speed changes.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from pgperf.analysis import student_t
from pgperf.analysis.number_text import in_percent
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
    """One simulated comparison. `stray` is the share of slices with five times the noise."""

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
    """Share of trials whose interval contains the true value, and the mean half-width.

    Both are NaN without an interval.
    """

    coverage: float
    half_width: float

    def __str__(self) -> str:
        return (
            f"{in_percent(self.coverage, 1)} ± {in_percent(self.half_width, 1)}"
            if self.coverage >= 0
            else "none"
        )


def chosen(data: np.ndarray) -> Estimate:
    return interval(sample_of(list(data)))


def pooled(data: np.ndarray) -> Estimate:
    """All rounds as one sample."""
    return signed_rank_interval(data.ravel())


def tested(data: np.ndarray) -> Estimate:
    """All rounds as one sample, unless the mean square between blocks exceeds that within blocks."""
    blocks, rounds = data.shape
    if blocks == 1 or rounds == 1:
        return chosen(data)
    between = rounds * np.var(data.mean(axis=1), ddof=1)
    within = np.mean(np.var(data, axis=1, ddof=1))
    return chosen(data) if between > within else pooled(data)


def students(data: np.ndarray) -> Estimate:
    """Student's interval of the blocks' centres, or of the rounds of a single block."""
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
    """Two runs: standard deviations of the machine's speed and of one layer's speed between runs.

    Within a run, the machine's speed varies by `DRIFT` between blocks, and each block has a `BIAS`.
    """

    blocks: tuple[int, int]
    machine: float
    own: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """For each run, by block: the log times of a layer and those over libpq, both centred on 0."""
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
    """Coverage of the difference between two runs, by times and by times over libpq."""
    rng = np.random.default_rng(SEED)
    found: tuple[list[Estimate], list[Estimate]] = ([], [])
    for _ in range(trials):
        for estimates, (one, other) in zip(found, scenario.draw(rng), strict=True):
            estimates.append(unpaired((tuple(other),), (tuple(one),), 0.95))
    return _cell(found[0]), _cell(found[1])


def simulate(
    scenario: Scenario, trials: int, rules: dict[str, Callable[[np.ndarray], Estimate]]
) -> dict[str, Cell]:
    """Apply every rule to the same `trials` draws."""
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
    print("\n| blocks | machine varies | layer varies | times | times over libpq |\n" + "|---" * 5 + "|")
    for runs in RUNS:
        times, over = simulate_runs(runs, trials)
        print(
            f"| {runs.blocks[0]}, {runs.blocks[1]} | {in_percent(runs.machine)} | {in_percent(runs.own, 1)}"
            f" | {times} | {over} |"
        )
        held.append(bool(runs.machine) or times.coverage >= BAR - error)
        held.append(bool(runs.own) or over.coverage >= BAR - error)
    print(f"\n{trials} trials: shares ± {in_percent(error, 1)}")
    print("verdict: " + ("the bar holds" if all(held) else "the bar does NOT hold"))
    return 0 if all(held) else 1


def _row(scenario: Scenario, cells: dict[str, Cell]) -> str:
    shape = f"{scenario.blocks} x {scenario.rounds}"
    return (
        " | ".join(
            [
                f"| {shape} | {in_percent(scenario.bias)} | {in_percent(scenario.stray)}",
                *map(str, cells.values()),
            ]
        )
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
