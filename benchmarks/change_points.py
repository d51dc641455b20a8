"""False alarms and delays of change points, on made-up series of runs.

    python -m benchmarks.change_points [--trials 2000] [--seed 1] [--quick] [--otava PYTHON]

Stable series of 100 runs are tested after every run, as pgperf tests them; any alarm in a series
counts. Then a step of 5 % at 2 % noise comes after 50 runs, and the runs until it is found are
counted. Noise is independent and normal, heavy-tailed (Student's t with 3 degrees of freedom, and
one run in twenty ten times as far off), or autoregressive with a correlation of 0.25, 0.5 or 0.7.

The bar: at most 1 % of the stable series alarm with independent or heavy-tailed noise, and 5 % with
a correlation of 0.5. 90 % of the steps are found within 8 runs with independent noise, and within 15
with a correlation of 0.5. The 95 % intervals of those found contain the step in 95 % of them. The
other figures have no bar. A share is of simulated series, so it fails only if its whole 95 % interval
is on the wrong side: the more trials, the sharper the bar.

`--otava` names the Python of an environment with apache-otava, which then tests the same series.
It needs a numpy of its own and 325 MB, so it is no dependency of pgperf:

    python -m venv otava && otava/bin/pip install apache-otava
"""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from benchmarks.options import ScriptParser, run_script
from pgperf.analysis.change_points import find

RUNS, BEFORE, LATEST = 100, 50, 25
LEVEL_US, NOISE, STEP = 100.0, 0.02, 0.05
Series = np.ndarray
Find = Callable[[Sequence[float]], bool]


def independent(random: np.random.Generator, n: int) -> Series:
    return random.standard_normal(n)


def student(random: np.random.Generator, n: int) -> Series:
    """Of 3 degrees of freedom, with a standard deviation of 1."""
    return random.standard_t(3, n) / math.sqrt(3)


def outliers(random: np.random.Generator, n: int) -> Series:
    return random.standard_normal(n) * np.where(random.random(n) < 0.05, 10.0, 1.0)


def autoregressive(random: np.random.Generator, n: int, correlation: float = 0.5) -> Series:
    noise = random.standard_normal(n)
    noise[1:] *= math.sqrt(1 - correlation**2)
    for at in range(1, n):
        noise[at] += correlation * noise[at - 1]
    return noise


@dataclass(frozen=True)
class Case:
    """A kind of noise. `alarms`: the share of stable series that may alarm, 1 for no bar; `within`:
    the runs within which 90 % of the steps must be found, 0 for no bar.
    """

    name: str
    noise: Callable[[np.random.Generator, int], Series]
    alarms: float
    within: int


CASES = (
    Case("independent", independent, 0.01, 8),
    Case("Student's t, 3 df", student, 0.01, 0),
    Case("1 in 20 far off", outliers, 0.01, 0),
    Case("AR(0.5)", autoregressive, 0.05, 15),
    Case("AR(0.25)", partial(autoregressive, correlation=0.25), 1.0, 0),
    Case("AR(0.7)", partial(autoregressive, correlation=0.7), 1.0, 0),
)


def stable(case: Case, seed: int, trials: int) -> Iterator[Series]:
    for random in map(np.random.default_rng, np.random.SeedSequence(seed).spawn(trials)):
        yield LEVEL_US * (1 + NOISE * case.noise(random, RUNS))


def stepped(case: Case, seed: int, trials: int) -> Iterator[Series]:
    for series in stable(case, seed + 1, trials):
        series = series[: BEFORE + LATEST]
        series[BEFORE:] += STEP * LEVEL_US
        yield series


@dataclass(frozen=True)
class Found:
    """The first change that is found in a series, after so many `runs`, and whether its interval
    contains the step.
    """

    runs: int
    covers: bool


def first(series: Series) -> Found | None:
    """None where none is ever found."""
    for n in range(1, len(series) + 1):
        if changes := find(series[:n].tolist()):
            return Found(n, changes[0].low <= STEP * LEVEL_US <= changes[0].high)
    return None


@dataclass(frozen=True)
class Figures:
    """Counts of `trials` series: those that alarmed; the runs of the new level after which each step
    was found, None for never and for a false alarm before it; and how many of the found steps their
    intervals contain, None for a tool without intervals.
    """

    alarms: int
    delays: Sequence[int | None]
    covered: int | None = None

    @property
    def found(self) -> int:
        return sum(each is not None for each in self.delays)

    def found_within(self, runs: int) -> int:
        return sum(each is not None and each <= runs for each in self.delays)

    def holds(self, case: Case) -> bool:
        """Is no interval of the counts wholly on the wrong side of its bar?"""
        n = len(self.delays)
        quiet = wilson(self.alarms, n)[0] <= case.alarms
        if not (quiet and case.within):
            return quiet
        if wilson(self.found_within(case.within), n)[1] < 0.9:
            return False
        return self.covered is None or wilson(self.covered, self.found)[1] >= 0.95


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z = NormalDist().inv_cdf(0.975)
    share, square = count / n, z**2 / n
    middle, reach = share + square / 2, z * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return (middle - reach) / (1 + square), (middle + reach) / (1 + square)


def own(case: Case, seed: int, trials: int) -> Figures:
    alarms = sum(first(series) is not None for series in stable(case, seed, trials))
    steps = [first(series) for series in stepped(case, seed, trials)]
    found = [each if each and each.runs > BEFORE else None for each in steps]
    delays = [each.runs - BEFORE if each else None for each in found]
    return Figures(alarms, delays, sum(each.covers for each in found if each))


#: Reads series, one JSON list a line; answers the number of values after which each first has a
#: change point, null for never.
OTAVA = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from otava.series import Metric, Series
def found(values):
    times = list(range(len(values)))
    points = Series("s", None, times, {"m": Metric(1, 1.0)}, {"m": values}, {}).analyze().change_points
    return bool(points["m"])
for line in sys.stdin:
    values = json.loads(line)
    print(next((n for n in range(4, len(values) + 1) if found(values[:n])), "null"))
"""


def otava(python: str, case: Case, seed: int, trials: int) -> Figures:
    """What apache-otava finds with its defaults in the same series."""
    series = [*stable(case, seed, trials), *stepped(case, seed, trials)]
    lines = "\n".join(json.dumps(each.tolist()) for each in series)
    answer = subprocess.run(
        [python, "-c", OTAVA], input=lines, capture_output=True, text=True, check=True
    ).stdout
    found = [json.loads(line) for line in answer.splitlines()]
    delays = [n - BEFORE if n and n > BEFORE else None for n in found[trials:]]
    return Figures(sum(n is not None for n in found[:trials]), delays)


def main() -> int:
    options = _options()
    figures = {case: own(case, options.seed, options.trials) for case in CASES}
    print(
        f"{'':<8} {'noise':<18} {'alarms':>7} {'95 %':>14} {'within 8':>9} {'within 15':>10}"
        f" {'median delay':>13} {'covered':>8}"
    )
    for case, each in figures.items():
        _print("pgperf", case, each)
    if options.otava:
        for case in CASES:
            _print("otava", case, otava(options.otava, case, options.seed, min(options.trials, 200)))
    held = all(each.holds(case) for case, each in figures.items())
    print("\nverdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--trials", "series of each kind", full=2_000, quick=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--otava", metavar="PYTHON", help="a Python with apache-otava")
    return parser.options()


def _print(name: str, case: Case, found: Figures) -> None:
    n = len(found.delays)
    low, high = wilson(found.alarms, n)
    covered = "" if found.covered is None else f"{found.covered / max(1, found.found):.1%}"
    delays = sorted(math.inf if each is None else each for each in found.delays)
    print(
        f"{name:<8} {case.name:<18} {found.alarms / n:>7.1%} {f'{low:.1%} to {high:.1%}':>14}"
        f" {found.found_within(8) / n:>9.0%} {found.found_within(15) / n:>10.0%} {delays[n // 2]:>13g}"
        f" {covered:>8}"
    )


if __name__ == "__main__":
    run_script(main)
