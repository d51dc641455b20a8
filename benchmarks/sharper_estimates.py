"""Narrower intervals from the same minutes: estimators and windows, tried on the same noise.

    python -m benchmarks.sharper_estimates [--quick] [--runs 200]
    python -m benchmarks.sharper_estimates --slices RAW.csv

The script simulates runs of `orm-overhead` (five layers on three routes, in the order of real
rounds) with the noise of `benchmarks.machine_noise`, and applies every estimator to the same
slices. A cell has the coverage of nominally 95 % intervals over blocks, and the median half-width
as a multiple of that of pgperf's own estimator. `--slices` does the same, without coverage, with
the slices of a real run (`pgperf export RUN --raw`).

The last line names the estimators that pass. Such a one covers in 94 to 96 % of the cases in every
scenario, within the sampling error, and has no bias; it is at most 1.02 times as wide on a quiet
machine, and narrower on noisy ones. A second table has other windows in the same total time, with
pgperf's estimator. `--quick`: 50 runs.

The script has no bar of its own and exits 0. It compares candidates for a decision, and one that
passes shows no fault of pgperf. `benchmarks.coverage` has the bar for the estimator that is used.
"""

import argparse
import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.coverage import DEFINITION
from benchmarks.machine_noise import Slots
from benchmarks.options import ScriptParser, run_script
from pgperf.analysis import student_t
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import _null_cdf
from pgperf.core.records import Plan
from pgperf.runner.plan import make_plan, round_order

SEED = 14
LOW, HIGH, QUIET = 0.94, 0.96, 1.02
LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
ROUTES = ("socket", "tcp", "pgbouncer")
#: Client's share of each layer's time, and the scatter of its slices on the noisy machine.
CLIENT_SHARE = (0.3, 0.35, 0.4, 0.5, 0.7)
SCATTER = (0.14, 0.15, 0.17, 0.2, 0.26)
#: Between two slices, beside lead-in and window.
OVERHEAD_S = 0.0025
_ORDERS = 60
_CLIP = 2.5  # residuals count with at most so many of their standard deviations
_ITERATIONS = 4


@dataclass(frozen=True)
class Slices:
    """Logarithms of times per operation by (block of any run, round, variant), with the slot in the
    block that each slice had, and an outside signal of each slice. `blocks`: of a run.
    """

    logs: np.ndarray
    slots: np.ndarray
    signal: np.ndarray
    blocks: int
    slot_s: float

    @property
    def count(self) -> int:
        return self.logs.shape[1] * self.logs.shape[2]

    def in_time(self, values: np.ndarray) -> np.ndarray:
        """The values of each block in the order of time."""
        found = np.empty((len(values), self.count))
        np.put_along_axis(found, self._flat_slots, values.reshape(len(values), -1), axis=1)
        return found

    def by_variant(self, in_time: np.ndarray) -> np.ndarray:
        return np.take_along_axis(in_time, self._flat_slots, axis=1).reshape(self.logs.shape)

    @property
    def _flat_slots(self) -> np.ndarray:
        return self.slots.reshape(len(self.slots), -1)


@dataclass(frozen=True)
class Scenario:
    """A machine. `follows`: the share of the noise that follows the measured correlation; the rest
    is independent. `scatter`: of slices, relative to the noisy machine.

    `spikes`: share of slices that something else prolongs, by half on average. `drift`: of the
    machine's speed over a block, and of a step at a random moment. `bias`: of each process.
    """

    title: str
    follows: float = 1.0
    scatter: float = 1.0
    tails: bool = False
    spikes: float = 0.0
    drift: float = 0.0
    bias: float = 0.005
    blocks: int = 7
    rounds: int = 7
    window_s: float = 0.05
    lead_in_s: float = 0.02

    @property
    def slot_s(self) -> float:
        return self.window_s + self.lead_in_s + OVERHEAD_S

    def draw(self, rng: np.random.Generator, runs: int) -> Slices:
        plan, blocks = _plan(), runs * self.blocks
        variants = plan.variants
        slots = _slots(rng, plan, blocks, self.rounds)
        count = self.rounds * len(variants)
        client, server = Slots(count, self.slot_s, self.window_s).processors(rng, blocks)
        empty = np.zeros(slots.shape)
        slices = Slices(empty, slots, empty, self.blocks, self.slot_s)
        layers = [LAYERS.index(of.layer) for of in variants]
        share, scatter = np.array(CLIENT_SHARE)[layers], self.scatter * np.array(SCATTER)[layers]
        mixed = share * slices.by_variant(client) + (1 - share) * slices.by_variant(server)
        mixed /= np.sqrt(share**2 + (1 - share) ** 2 + 0.8 * share * (1 - share))
        alone = rng.standard_t(3, slots.shape) / math.sqrt(3) if self.tails else rng.normal(size=slots.shape)
        noise = math.sqrt(self.follows) * mixed + math.sqrt(1 - self.follows) * alone
        hit = (rng.random(slots.shape) < self.spikes) * rng.exponential(0.5, slots.shape)
        seen = hit * (rng.random(slots.shape) < 0.7)
        bias = rng.normal(0, self.bias, (blocks, 1, len(variants)))
        logs = scatter * noise + hit + bias + slices.by_variant(self._drift(rng, blocks, count))
        return replace(slices, logs=logs, signal=seen)

    def _drift(self, rng: np.random.Generator, blocks: int, count: int) -> np.ndarray:
        at = np.arange(count) / count
        slope, step = self.drift * rng.normal(size=(2, blocks, 1))
        return slope * at + step * (at > rng.random((blocks, 1)))


SCENARIOS = (
    Scenario("quiet, independent", follows=0.0, scatter=0.06),
    Scenario("quiet, correlated", scatter=0.06),
    Scenario("noisy, independent", follows=0.0),
    Scenario("noisy, correlated", bias=0.0),
    Scenario("noisy, processes differ by 2 %", bias=0.02),
    Scenario("noisy, heavy tails", follows=0.6, tails=True),
    Scenario("noisy, 6 % of slices disturbed", spikes=0.06),
    Scenario("noisy, drift and steps of 20 %", drift=0.2),
    Scenario("noisy, 6 blocks of 3 rounds", blocks=6, rounds=3),
)
NOISY = SCENARIOS[3]
#: Windows and lead-ins in ms, with the rounds that take about as long.
WINDOWS = ((50, 20, 7), (100, 20, 4), (25, 20, 11), (25, 10, 14), (12, 10, 21), (12, 5, 26))


def _plan() -> Plan:
    return make_plan(replace(DEFINITION, layers=LAYERS, routes=ROUTES))


def _slots(rng: np.random.Generator, plan: Plan, blocks: int, rounds: int) -> np.ndarray:
    """The slot of each variant in the rounds of each block, from a stock of real orders."""
    orders = np.array([np.argsort(round_order(plan, 0, 0, number)) for number in range(_ORDERS)])
    size = len(plan.variants)
    return orders[rng.integers(_ORDERS, size=(blocks, rounds))] + size * np.arange(rounds)[:, None]


def _pairs() -> list[tuple[int, int]]:
    """Adjacent rungs, layers over the lowest, and routes over the first."""
    places = [range(at * len(LAYERS), (at + 1) * len(LAYERS)) for at in range(len(ROUTES))]
    rungs = [(own[at], own[at - 1]) for own in places for at in range(1, len(LAYERS))]
    bases = [(own[at], own[0]) for own in places for at in range(2, len(LAYERS))]
    routes = [(each, base) for own in places[1:] for each, base in zip(own, places[0], strict=True)]
    return rungs + bases + routes


PAIRS = np.array(_pairs()).T


def centres(values: np.ndarray) -> np.ndarray:
    """The Hodges-Lehmann estimate along axis 1."""
    first, second = np.triu_indices(values.shape[1])
    return np.median((values[:, first] + values[:, second]) / 2, axis=1)


def _differences(values: np.ndarray) -> np.ndarray:
    return values[:, :, PAIRS[0]] - values[:, :, PAIRS[1]]


def today(slices: Slices) -> np.ndarray:
    """The centre of the rounds' log ratios, by block and pair."""
    return centres(_differences(slices.logs))


def nearest(slices: Slices) -> np.ndarray:
    """Each slice of the variant over its baseline's at the same time, drawn between those before and
    after.
    """
    found = []
    for one, other in PAIRS.T:
        at, base, slots = slices.slots[:, :, one], slices.logs[:, :, other], slices.slots[:, :, other]
        before = np.where(slots < at, 0, -1)
        rounds = np.arange(at.shape[1]) + before
        low, high = np.clip(rounds, 0, at.shape[1] - 1), np.clip(rounds + 1, 0, at.shape[1] - 1)
        left, right = (np.take_along_axis(slots, each, axis=1) for each in (low, high))
        part = np.clip((at - left) / np.maximum(right - left, 1), 0, 1)
        lower, upper = (np.take_along_axis(base, each, axis=1) for each in (low, high))
        found.append(centres(slices.logs[:, :, one] - lower - part * (upper - lower)))
    return np.array(found).T


def weighted(slices: Slices) -> np.ndarray:
    """Rounds count the less, the more an outside signal says of all of their slices."""
    weight = 1 / (1 + 10 * slices.signal.mean(axis=2))
    first, second = np.triu_indices(weight.shape[1])
    differences = _differences(slices.logs)
    averages = (differences[:, first] + differences[:, second]) / 2
    order = np.argsort(averages, axis=1)
    parts = np.take_along_axis((weight[:, first] * weight[:, second])[:, :, None], order, axis=1)
    sums = np.cumsum(parts, axis=1)
    middle = np.argmax(sums >= sums[:, -1:] / 2, axis=1)[:, None]
    return np.take_along_axis(np.take_along_axis(averages, order, axis=1), middle, axis=1)[:, 0]


def gls(share: float) -> Callable[[Slices], np.ndarray]:
    """Generalised least squares by block: `share` of the variance follows the measured kernel.

    Each slice is set against what all others of its block predict for its time.
    """
    return lambda slices: centres(_differences(adjusted(slices, _kriging(slices, share))))


def neighbours(tau_s: float, less: float) -> Callable[[Slices], np.ndarray]:
    """Without the mean residual of the neighbours in time, shrunk as if `less` more had been 0."""
    return lambda slices: centres(_differences(adjusted(slices, _local(slices, tau_s, less))))


def judged(slices: Slices) -> np.ndarray:
    """Of today's and generalised least squares, the one whose rounds scatter less in all blocks of
    the run.
    """
    shape = (-1, slices.blocks, len(PAIRS.T))
    candidates = [slices.logs, *(adjusted(slices, _kriging(slices, share)) for share in (0.4, 0.8))]
    found, scatter = [], []
    for logs in candidates:
        differences = _differences(logs)
        found.append(centres(differences).reshape(shape))
        rest = np.abs(differences - np.median(differences, axis=1, keepdims=True))
        scatter.append(np.median(rest.reshape(len(found[0]), -1), axis=1))
    best = np.argmin(scatter, axis=0)
    return np.choose(best[:, None, None], found).reshape(-1, len(PAIRS.T))


ESTIMATORS: dict[str, Callable[[Slices], np.ndarray]] = {
    "today": today,
    "nearest in time": nearest,
    "neighbours, 0.1 s": neighbours(0.1, 1.0),
    "neighbours, 0.4 s": neighbours(0.4, 1.0),
    "GLS, 0.4": gls(0.4),
    "GLS, 0.8": gls(0.8),
    "GLS where steadier": judged,
    "rounds weighted": weighted,
}


def adjusted(slices: Slices, weights: np.ndarray) -> np.ndarray:
    """The logarithms less the machine's speed that the other slices of the block tell.

    `weights`: of each slice's neighbours, by slot. Residuals are of robust centres and are limited,
    so a spike moves its neighbours little. A slice's own residual has no weight, and the order is
    random, so this adds no bias.
    """
    own = np.median(slices.logs - np.median(slices.logs, axis=2, keepdims=True), axis=1, keepdims=True)
    for _ in range(_ITERATIONS):
        residuals = slices.in_time(slices.logs - own)
        residuals -= np.median(residuals, axis=1, keepdims=True)
        limit = _CLIP * 1.4826 * np.median(np.abs(residuals), axis=1, keepdims=True)
        speed = np.clip(residuals, -limit, limit) @ weights.T
        found = slices.logs - slices.by_variant(speed)
        own = centres(found)[:, None]
    return found


def _kriging(slices: Slices, share: float) -> np.ndarray:
    """What all other slices predict for each: I - A / diag(A) by row, A the inverse covariance."""
    kernel = Slots(slices.count, slices.slot_s, 0.05).correlations()
    identity = np.eye(slices.count)
    inverse = np.linalg.inv(share * kernel + (1 - share) * identity)
    return identity - inverse / np.diag(inverse)[:, None]


def _local(slices: Slices, tau_s: float, less: float) -> np.ndarray:
    slots = np.arange(slices.count)
    weights = np.exp(-np.abs(np.subtract.outer(slots, slots)) * slices.slot_s / tau_s)
    np.fill_diagonal(weights, 0)
    return weights / (weights.sum(axis=1, keepdims=True) + less)


@dataclass(frozen=True)
class Cell:
    """Of all pairs of all runs: coverage with its standard error (runs are independent), whether the
    mean error of any pair is too large to be chance, and the median half-width.
    """

    coverage: float
    coverage_se: float
    biased: bool
    half_width: float

    def sound(self) -> bool:
        slack = 2.5 * self.coverage_se
        return LOW - slack <= self.coverage <= HIGH + slack and not self.biased


def intervals(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the interpolated 95 % signed-rank interval along axis 1, of 6 to 100 values."""
    first, second = np.triu_indices(values.shape[1])
    averages = np.sort((values[:, first] + values[:, second]) / 2, axis=1)
    below = _null_cdf(values.shape[1])
    k = int(np.searchsorted(below, 0.025 * (1 + 1e-12), side="right"))
    step = (0.025 - below[k - 1]) / (below[k] - below[k - 1])
    low = averages[:, k - 1] + step * (averages[:, k] - averages[:, k - 1])
    return low, averages[:, -k] - step * (averages[:, -k] - averages[:, -k - 1])


def judge(values: np.ndarray, blocks: int) -> Cell:
    """`values`: by block and pair; the true value is 0."""
    by_run = values.reshape(-1, blocks, values.shape[1])
    low, high = intervals(by_run)
    hits = ((low <= 0) & (high >= 0)).mean(axis=1)
    return Cell(
        float(hits.mean()),
        float(hits.std()) / math.sqrt(len(by_run)),
        _is_biased(by_run.mean(axis=1)),
        float(np.median(high - low) / 2),
    )


def _is_biased(errors: np.ndarray) -> bool:
    """By run and pair. Chance alone makes this true in one table of twenty."""
    runs = len(errors)
    if runs < 2:
        return False
    far = student_t.quantile(1 - 0.05 / (errors.shape[1] * len(ESTIMATORS) * len(SCENARIOS)), runs - 1)
    standard_errors = errors.std(axis=0, ddof=1) / math.sqrt(runs)
    return bool((np.abs(errors.mean(axis=0)) > far * standard_errors).any())


def simulate(scenario: Scenario, runs: int) -> dict[str, Cell]:
    """Every estimator on the same runs."""
    slices = scenario.draw(np.random.default_rng(SEED), runs)
    return {name: judge(estimate(slices), scenario.blocks) for name, estimate in ESTIMATORS.items()}


def windows(runs: int) -> Iterator[tuple[Scenario, Cell]]:
    for window, lead_in, rounds in WINDOWS:
        tried = replace(NOISY, window_s=window / 1000, lead_in_s=lead_in / 1000, rounds=rounds)
        yield tried, judge(today(tried.draw(np.random.default_rng(SEED), runs)), tried.blocks)


def limit(scenario: Scenario) -> float:
    """The smallest standard error that any linear estimate can have over that of the rounds' mean log
    ratios, the median pair, where one processor makes all of the noise.
    """
    size = len(_plan().variants)
    slots = _slots(np.random.default_rng(SEED), _plan(), scenario.blocks, scenario.rounds)
    kernel = Slots(size * scenario.rounds, scenario.slot_s, scenario.window_s).correlations()
    first, second = PAIRS
    found = []
    for own in slots:
        covariance = kernel[np.ix_(own.ravel(), own.ravel())]
        design = np.tile(np.eye(size), (scenario.rounds, 1))
        best = np.linalg.inv(design.T @ np.linalg.solve(covariance, design))
        means = design.T @ covariance @ design / scenario.rounds**2
        found.append(np.sqrt(_variances(best, first, second) / _variances(means, first, second)))
    return float(np.median(found))


def _variances(covariance: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the differences of two estimates."""
    own = np.diag(covariance)
    return own[first] + own[second] - 2 * covariance[first, second]


def read(path: Path) -> Slices:
    """The complete rounds of a run of all layers and routes, from `pgperf export RUN --raw`."""
    variants = [(of.layer, of.route, str(of.control)) for of in _plan().variants]
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    shape = [1 + max(int(row[of]) for row in rows) for of in ("block", "round")]
    logs, signal, started = np.full((3, *shape, len(variants)), np.nan)
    for row in rows:
        at = (
            int(row["block"]),
            int(row["round"]),
            variants.index((row["layer"], row["route"], row["control"])),
        )
        logs[at], started[at] = math.log(float(row["us_per_op"])), float(row["started_ns"]) / 1e9
        signal[at] = float(row["steal_ns"] or 0) / float(row["elapsed_ns"])
    whole = ~np.isnan(logs).any(axis=(1, 2))
    logs, signal, started = logs[whole], signal[whole], started[whole]
    order = np.argsort(np.argsort(started.reshape(len(started), -1), axis=1), axis=1)
    slot_s = float(np.median(np.diff(np.sort(started.reshape(len(started), -1), axis=1), axis=1)))
    return Slices(logs, order.reshape(logs.shape), signal, len(logs), slot_s)


def explained(slices: Slices) -> float:
    """The scatter of blocks over what the scatter of their rounds explains, the median pair; both by
    absolute deviations from the median, which spikes hardly move.
    """
    differences = _differences(slices.logs)
    rounds = _deviation(differences).mean(axis=0) * math.sqrt(math.pi / 3 / differences.shape[1])
    return float(np.median(_deviation(centres(differences)[None])[0] / rounds))


def _deviation(values: np.ndarray) -> np.ndarray:
    """The median absolute deviation along axis 1."""
    return np.median(np.abs(values - np.median(values, axis=1, keepdims=True)), axis=1)


def main() -> int:
    options = _options()
    if options.slices:
        _show_real(read(options.slices))
        return 0
    print("| machine | " + " | ".join(ESTIMATORS) + " |\n" + "|---" * (1 + len(ESTIMATORS)) + "|")
    found = {}
    for scenario in SCENARIOS:
        found[scenario] = cells = simulate(scenario, options.runs)
        print(f"| {scenario.title} | " + " | ".join(_texts(cells)) + " |", flush=True)
    print(
        "\n| window, ms | lead-in, ms | rounds | s per block | coverage | median half-width |\n"
        + "|---" * 6
        + "|"
    )
    for tried, cell in windows(options.runs):
        length = tried.rounds * tried.slot_s * len(_plan().variants)
        print(
            f"| {1000 * tried.window_s:.0f} | {1000 * tried.lead_in_s:.0f} | {tried.rounds} | {length:.1f} "
            f"| {in_percent(cell.coverage, 1)} | {in_percent(cell.half_width, 2)} |",
            flush=True,
        )
    print(f"\n{options.runs} runs, seed {SEED}; coverage ± {in_percent(_worst(found), 1)} at most")
    print(f"noisy, correlated: no linear estimate can be less than {limit(NOISY):.2f} times as wide")
    print("passes: " + (", ".join(passing(found)) or "none"))
    return 0


def passing(found: dict[Scenario, dict[str, Cell]]) -> list[str]:
    """The estimators other than today's that hold the bar."""
    return [name for name in ESTIMATORS if name != "today" and _passes(name, found)]


def _passes(name: str, found: dict[Scenario, dict[str, Cell]]) -> bool:
    ratios = {of: cells[name].half_width / cells["today"].half_width for of, cells in found.items()}
    sound = all(cells[name].sound() for cells in found.values())
    quiet = all(ratio <= QUIET for of, ratio in ratios.items() if of.scatter < 1)
    return sound and quiet and all(ratio < 1 for of, ratio in ratios.items() if of.scatter == 1)


def _texts(cells: dict[str, Cell]) -> Iterator[str]:
    base = cells["today"].half_width
    for name, cell in cells.items():
        width = in_percent(base, 2) if name == "today" else f"{cell.half_width / base:.2f}"
        doubt = ", biased" if cell.biased else ""
        yield f"{in_percent(cell.coverage, 1)}, {width}{doubt}"


def _worst(found: dict[Scenario, dict[str, Cell]]) -> float:
    return 2 * max(cell.coverage_se for cells in found.values() for cell in cells.values())


def _show_real(slices: Slices) -> None:
    print("| estimator | median half-width | over today's |\n|---|---|---|")
    base = judge(today(slices), slices.blocks).half_width
    for name, estimate in ESTIMATORS.items():
        width = judge(estimate(slices), slices.blocks).half_width
        print(f"| {name} | {in_percent(width, 2)} | {width / base:.2f} |")
    print(f"\nblocks scatter {explained(slices):.2f} times as much as their rounds explain")


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--runs", "simulated runs of each scenario", full=200, quick=50)
    parser.add_argument("--slices", type=Path, help="the raw slices of a real run")
    return parser.options()


if __name__ == "__main__":
    run_script(main)
