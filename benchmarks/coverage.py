"""Coverage of the intervals, by simulated comparisons of a variant with itself.

    python -m benchmarks.coverage [--quick] [--trials 10000]

The program draws log ratios of paired slices around a known centre, with 2 % of noise in each slice
and a bias that is constant within a block. Four rules compute an interval from them; `chosen` is
the rule that pgperf uses. A cell shows the share of trials whose interval contains the centre, and
the mean half-width. The bar: at nominally 95 %, `chosen` covers in at least 94 % of the trials,
less the sampling error of their number. It applies to two blocks or more, and to one block without
a bias. `--quick`: 1,000 trials.

A second table judges the figures that a run shows: whole runs of four layers over two routes are
summarised as real ones are, and the fitted ratios, differences and times are set against the values
that the program drew them from. The bar applies to each column. It takes a tenth of the trials.

A third table does the same for two runs of the same benchmark, compared by blocks: by their times,
and by their times over libpq in the same run. Between the runs the speed of the machine changes,
and so may that of one layer. The bar applies to times if the machine's speed stays the same, and to
times over libpq if no layer's speed changes.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.machine_noise import Slots
from benchmarks.options import ScriptParser, run_script
from pgperf.analysis import student_t
from pgperf.analysis.fit import Fit
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann, signed_rank_interval
from pgperf.analysis.run_comparison import unpaired
from pgperf.analysis.samples import BLOCKS, interval, sample_of, standard_error
from pgperf.analysis.variant_comparisons import VariantComparison, pairs, variant_comparisons
from pgperf.core.records import Definition, SliceRecord, Variant, VariantBlock, WorkloadDefinition

NOISE = 0.02
BIASES = (0.0, 0.01, 0.02)
SHAPES = ((6, 1), (6, 2), (6, 5), (8, 4), (3, 10), (1, 20))
BAR = 0.94
SEED = 20
SLOT_S = 0.07  # from one slice to the next


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


LAYER_US = {"libpq": 60.0, "psycopg": 70.0, "django_cursor": 90.0, "django_orm": 210.0}
ROUTE_TIMES = {"socket": 1.0, "pgbouncer": 1.3}
DEFINITION = Definition(
    "coverage", (WorkloadDefinition("one", "SELECT 1"),), tuple(LAYER_US), tuple(ROUTE_TIMES)
)
VARIANTS = [
    Variant(
        workload="one",
        layer=layer,
        mode="simple",
        route=route,
        clients=1,
        connect="persistent",
        placement="apart",
    )
    for route in ROUTE_TIMES
    for layer in LAYER_US
]
TRUE_US = {of: LAYER_US[of.layer] * ROUTE_TIMES[of.route] for of in VARIANTS}


@dataclass(frozen=True)
class WholeRun:
    """A run of all variants. The machine's speed varies by 10 % from block to block.

    `route` and `libpq` are standard deviations between blocks, of the second route and of libpq;
    `bias` that of each process. `tails`: noise and biases have Student's distribution of 2 degrees
    of freedom. `present`: the share of blocks that each variant has. `shared`: the scatter of slices
    of 50 ms on a machine whose speed consecutive slices share (`benchmarks.machine_noise`).
    """

    title: str
    blocks: int = 6
    route: float = 0.0
    libpq: float = 0.0
    tails: bool = False
    present: float = 1.0
    bias: float = 0.01
    rounds: int = 2
    shared: float = 0.0

    def draw(self, rng: np.random.Generator) -> list[VariantBlock]:
        return [block for number in range(self.blocks) for block in self._block(rng, number)]

    def _block(self, rng: np.random.Generator, number: int) -> list[VariantBlock]:
        machine, route = rng.normal(0, 0.1), self._normal(rng, 1)[0] * self.route
        shared, found = self._shared(rng), []
        for at, of in enumerate(VARIANTS):
            own = self.libpq if of.layer == "libpq" else self.bias
            level = machine + route * (of.route != "socket") + own * self._normal(rng, 1)[0]
            logs = math.log(TRUE_US[of]) + level + NOISE * self._normal(rng, self.rounds) + shared[:, at]
            slices = tuple(_slice(float(us), round_) for round_, us in enumerate(np.exp(logs)))
            found.append(VariantBlock(variant=of, cohort=0, block=number, slices=slices))
        return [block for block in found if rng.random() < self.present]

    def _shared(self, rng: np.random.Generator) -> np.ndarray:
        """The machine's part in each slice, by round and variant, whose order is random."""
        shape = self.rounds, len(VARIANTS)
        if not self.shared:
            return np.zeros(shape)
        client, _server = Slots(math.prod(shape), SLOT_S, 0.05).processors(rng, 1)
        return self.shared * rng.permuted(client.reshape(shape), axis=1)

    def _normal(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.standard_t(2, count) if self.tails else rng.normal(0, 1, count)


WHOLE_RUNS = [
    WholeRun("normal noise"),
    WholeRun("heavy tails", tails=True),
    WholeRun("a route that varies by 10 %", route=0.1),
    WholeRun("a route that varies by 10 %, heavy tails", route=0.1, tails=True),
    WholeRun("libpq varies by 10 %", libpq=0.1),
    WholeRun("a quarter of the blocks missing", blocks=8, present=0.75),
    WholeRun("a quarter missing, a route that varies", blocks=8, present=0.75, route=0.1),
    WholeRun("three blocks", blocks=3),
    WholeRun("twelve blocks", blocks=12, route=0.1),
    WholeRun("slices share 20 % of noise", shared=0.2, rounds=7),
]
JUDGED = ("ratio of layers", "difference of layers", "ratio of routes", "time")


def _slice(us: float, at: int) -> SliceRecord:
    ops = max(1, round(50_000 / us))
    return SliceRecord(
        round=at, position=at, ops=ops, rows=ops, lead_in_ops=0, window_ns=50_000_000, us_per_op=us,
        ops_per_s=1e6 / us, user_ns=0, sys_ns=0,
    )  # fmt: skip


def simulate_figures(scenario: WholeRun, trials: int) -> dict[str, Cell]:
    """Coverage of the figures that are shown, for comparisons of several blocks."""
    rng = np.random.default_rng(SEED)
    errors: dict[str, list[Estimate]] = {name: [] for name in JUDGED}
    for _ in range(trials):
        measured = Measurements(scenario.draw(rng))
        asked = pairs(DEFINITION, VARIANTS, "psycopg")
        fit = Fit.of(measured, asked)
        for each in variant_comparisons(fit, asked):
            if each.sample == BLOCKS:
                _judge(errors, each)
        for of in fit.logs:
            if len(measured.log_centres(of, fit.measure)) > 1:
                errors["time"].append(_error(TRUE_US[of], *_ends(fit.level(of))))
    return {name: _cell(found) for name, found in errors.items()}


def _judge(errors: dict[str, list[Estimate]], found: VariantComparison) -> None:
    own, base = TRUE_US[found.variant], TRUE_US[found.baseline]
    ratio = _error(own / base, found.ratio, found.low, found.high)
    if found.variant.route != found.baseline.route:
        errors["ratio of routes"].append(ratio)
        return
    errors["ratio of layers"].append(ratio)
    step = _error(own - base, found.delta_us, found.delta_low_us, found.delta_high_us)
    errors["difference of layers"].append(step)


def _ends(found: Estimate) -> tuple[float, float | None, float | None]:
    return found.centre, found.low, found.high


def _error(true: float, centre: float, low: float | None, high: float | None) -> Estimate:
    """Relative to the true value, so that the true error is 0."""
    low, high = (None if end is None else end / true - 1 for end in (low, high))
    return Estimate(centre / true - 1, low, high, 0, 0.95)


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
            estimates.append(unpaired((tuple(other),), (tuple(one),))(0.95))
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
    held += _figures(max(1, trials // 10))
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


def _figures(trials: int) -> list[bool]:
    """Print the table of the figures that are shown; which of them hold the bar."""
    error = 1.96 * math.sqrt(0.95 * 0.05 / trials)
    print("\n| run | " + " | ".join(JUDGED) + " |\n" + "|---" * (1 + len(JUDGED)) + "|")
    held = []
    for scenario in WHOLE_RUNS:
        cells = simulate_figures(scenario, trials)
        print(f"| {scenario.title} | " + " | ".join(map(str, cells.values())) + " |", flush=True)
        held += [cell.coverage >= BAR - error for cell in cells.values()]
    print(f"\n{trials} runs: shares ± {in_percent(error, 1)} at most")
    return held


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
    parser = ScriptParser(__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    return parser.options()


if __name__ == "__main__":
    run_script(main)
