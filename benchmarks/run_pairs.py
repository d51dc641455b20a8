"""Pairs of runs: does a run beside load tell the same steps as one on the quiet machine?

    python -m benchmarks.run_pairs [--quick] [--pairs 20] [--rivals 4] [--seed 1] [--out FILE]

Each pair is two runs of `orm-overhead --quick`, one of them beside processes that spin. The seed
says which comes first. For each rung of the ladders, the step of one run is set against that of the
other: what the rung adds to the one below, in µs per operation. The lowest rung is its own step.

The intervals are those of `pgperf compare` (pgperf.analysis.step_changes): Welch's, of one value per
block and run, around the difference of the steps that the runs' pages show. A block's value is the
rung's distance from libpq less that of the rung below, as the run keeps them in its `levels`.

The bar, for a campaign of 20 pairs or more: for each rung, in at least 17 of 20 pairs the 95 %
interval of the difference contains 0. A pair of which a run failed, or was refused because its blocks
could not fit, counts as one that does not. Intervals that are exactly right let one rung pass in 98 of
100 campaigns, and 15 independent rungs in 79. Fewer pairs are shown but not judged. The scatter
between the runs is reported apart: the standard deviation of each step over the quiet runs, and over
the loaded ones. `--out` keeps one JSON object a line for each pair. `--quick`: one pair of two layers
on one route, beside one such process, in which a difference of half of the step is nothing.
"""

import argparse
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Self

from benchmarks import json_lines
from benchmarks.example_site import ROOT, manage, try_benchmark
from benchmarks.options import ScriptParser, run_script
from benchmarks.promised_time import refused_s, took_s
from benchmarks.spinners import spinning
from example.stack.stack import Stack
from pgperf.analysis.ladder import Ladder
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.run_comparison import Level
from pgperf.analysis.step_changes import Added, difference, steps

CAMPAIGN, RIVALS = 20, 4
SHARE = 17 / 20
QUICK_TOLERANCE = 0.5
SIDES = ("quiet", "loaded")
_SHORT = ("--layers=libpq,django_orm", "--routes=socket", "--budget-s=15")


@dataclass(frozen=True)
class Step:
    """What a rung adds, µs: the one that the run's page shows, and one value per block. `widening`:
    the factor on half-widths of a run that may stop early.
    """

    us: float
    by_block: Sequence[float]
    widening: float = 1.0

    @property
    def added(self) -> Added:
        return Added(self.us, (tuple(self.by_block),), self.widening)


@dataclass(frozen=True)
class Ran:
    """One run: its steps by rung, or why it was refused or failed."""

    seconds: float
    refused: str = ""
    steps: dict[str, Step] = field(default_factory=dict)
    failed: str = ""

    @classmethod
    def of(cls, run: dict[str, Any]) -> Self:
        if run["run"]["status"] == "done":
            return cls(took_s(run), steps=steps_of(run))
        why = "failed" if refused_s(run) is None else "refused"
        return cls(took_s(run), **{why: run["run"]["error"]})

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "steps": {label: Step(**step) for label, step in data["steps"].items()}})


@dataclass(frozen=True)
class Pair:
    """A run on the quiet machine, and one beside load."""

    seed: int
    quiet: Ran
    loaded: Ran

    @classmethod
    def from_json(cls, line: json_lines.Line) -> Self:
        return cls(line["seed"], *(Ran.from_json(line[side]) for side in SIDES))

    def why(self, side: str, word: str) -> str:
        """Why the run of that side was `refused` or `failed`; "" if it was not."""
        found: str = getattr(getattr(self, side), word)
        return found

    def has(self, rung: str) -> bool:
        """Was it measured in both runs?"""
        return rung in self.quiet.steps and rung in self.loaded.steps

    def difference(self, rung: str) -> Estimate:
        """The loaded run's step less that of the quiet one, with Welch's interval."""
        return difference(self.quiet.steps[rung].added, self.loaded.steps[rung].added)

    def agrees(self, rung: str, tolerance: float = 0.0) -> bool:
        """Does the interval contain 0, or a difference of at most that share of the step?"""
        found = self.difference(rung) if self.has(rung) else None
        if not found or found.low is None or found.high is None:
            return False
        nothing = tolerance * abs(self.quiet.steps[rung].us)
        return found.low <= nothing and -nothing <= found.high


def main() -> int:
    options = _options()
    pairs = _campaign(options)
    print("\n".join(lines(pairs)))
    if not options.quick and len(pairs) < CAMPAIGN:
        print(f"verdict: not judged: {len(pairs)} pairs of a campaign of {CAMPAIGN}")
        return 1
    held = holds(pairs, QUICK_TOLERANCE if options.quick else 0.0)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def holds(pairs: Sequence[Pair], tolerance: float = 0.0) -> bool:
    rungs = rungs_of(pairs)
    return bool(rungs) and all(
        sum(pair.agrees(rung, tolerance) for pair in pairs) >= SHARE * len(pairs) for rung in rungs
    )


def rungs_of(pairs: Sequence[Pair]) -> list[str]:
    """Those of the runs that were measured."""
    return [*dict.fromkeys(rung for pair in pairs for ran in (pair.quiet, pair.loaded) for rung in ran.steps)]


def steps_of(run: dict[str, Any]) -> dict[str, Step]:
    """The steps of all ladders, and of the layers beside them, by the labels of the rungs."""
    ladders = map(Ladder.from_json, run["ladders"])
    found = steps(map(Level.from_json, run["levels"]), ladders)
    return {step.level.variant.label: _kept(step.added) for step in found}


def _kept(added: Added) -> Step:
    (by_block,) = added.by_block  # all rungs are in one cohort
    return Step(added.us, by_block, added.widening)


def lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """A Markdown table with a row for each rung, and the runs that were refused or failed."""
    heads = ("rung", "intervals with 0", "difference, median (half-width)")
    sides = ("mean step, quiet", "standard deviation", "mean step, loaded", "standard deviation")
    yield "| " + " | ".join((*heads, *sides)) + " |"
    yield "|---" * 7 + "|"
    for rung in rungs_of(pairs):
        agree = f"{sum(pair.agrees(rung) for pair in pairs)} of {len(pairs)}"
        scatters = (scatter([getattr(pair, side) for pair in pairs], rung) for side in SIDES)
        yield "| " + " | ".join((rung, agree, _differences(pairs, rung), *scatters)) + " |"
    for word in ("refused", "failed"):
        found = [(pair.seed, why) for pair in pairs for side in SIDES if (why := pair.why(side, word))]
        yield f"{word}: {len(found)} of {2 * len(pairs)} runs"
        yield from (f"  seed {seed}: {why}" for seed, why in found)


def scatter(runs: Sequence[Ran], rung: str) -> str:
    """Two cells: the mean of the step over these runs, and the standard deviation between them."""
    us = [run.steps[rung].us for run in runs if rung in run.steps]
    if len(us) < 2:
        return f"{us[0]:.2f} µs | one run" if us else "not measured | "
    mean, deviation = statistics.mean(us), statistics.stdev(us)
    return f"{mean:.2f} µs | {deviation:.2f} µs ({in_percent(deviation / abs(mean), 1)})"


def _differences(pairs: Sequence[Pair], rung: str) -> str:
    found = [pair.difference(rung) for pair in pairs if pair.has(rung)]
    reaches = [reach for each in found if (reach := each.half_width()) is not None]
    if not reaches:
        return "unknown"
    middle = statistics.median(each.centre for each in found)
    return f"{middle:+.2f} µs (± {statistics.median(reaches):.2f} µs)"


def _campaign(options: argparse.Namespace) -> list[Pair]:
    """The pairs of these seeds, of which those that the file lacks are measured."""
    conditions = json_lines.conditions(options, "quick", "rivals")
    units = [{**conditions, "seed": options.seed + at} for at in range(options.pairs)]
    return [Pair.from_json(line) for line in json_lines.resumed(options.out, units, partial(_all, options))]


def _all(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    words = ("orm-overhead", "--quick", *(_SHORT if options.quick else ()))
    with Stack(ROOT / ".stack" / "run-pairs", keep=False) as stack:
        manage(stack.env, "set_up_site")
        for unit in units:
            rivals, sides = {"quiet": 0, "loaded": options.rivals}, order(unit["seed"])
            ran = {side: asdict(_ran(stack.env, words, rivals[side])) for side in sides}
            yield {"first": sides[0], **ran}


def order(seed: int) -> list[str]:
    """The sides as they come. Two seeds that follow each other, from 1, have both orders."""
    first = random.Random(f"order {(seed - 1) // 2}").sample(SIDES, 2)
    return first if seed % 2 else first[::-1]


def _ran(stack_env: dict[str, str], words: Sequence[str], rivals: int) -> Ran:
    with spinning(rivals):
        return Ran.of(try_benchmark(stack_env, *words))


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--pairs", "pairs, each with a seed of its own", full=CAMPAIGN, quick=1)
    parser.add_rivals(RIVALS)
    parser.add_seed()
    parser.add_out()
    options = parser.options()
    options.rivals = min(options.rivals, 1) if options.quick else options.rivals  # or its time is too short
    return options


if __name__ == "__main__":
    run_script(main)
