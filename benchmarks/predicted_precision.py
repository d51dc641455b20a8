"""Predicted and reached precision: does a look at the machine say what a run's time will buy?

    python -m benchmarks.predicted_precision [--quick] [--runs 30] [--seed 1] [--out FILE]

Each run is one of `orm-overhead --quick`, right after a look at the machine. The seed of a run
chooses its target (none: the time ends it; ±5 %; ±2 %) and how many rivals use the CPUs from
before the look to the end of the run; runs of one load come in threes. The rivals calculate in
bursts of up to 20 ms, half of the time. A run that was refused because its blocks could not fit has
no precision. `--out` keeps one JSON object a line for each seed, and seeds that the file has are not
run again. Those of `--quick` are no part of a campaign. A line also has what a better prediction can
be tried on: blocks and rounds, the slices of the look, and the half-widths of all ratios.

The bar: in nine of ten runs, reached over predicted half-width lies within 0.67 to 1.5. A run that
has no prediction or reaches no precision counts as outside. Fewer than 30 runs are shown but not
judged. `--quick`: two runs of two layers on one route, in which one may be outside.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

from benchmarks import json_lines
from benchmarks.example_site import ROOT, manage, try_benchmark
from benchmarks.options import ScriptParser, run_script
from benchmarks.promised_time import refused_s
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.core.records import ENDING, PREDICTED, Ending, Prediction

LOW, HIGH = 0.67, 1.5
SHARE, QUICK_SHARE = 0.9, 0.5
CAMPAIGN = 30
LOADS = (0, 2, 6)
TARGETS = (0.0, 5.0, 2.0)
BUDGET_S = 60
_SHORT = ("--layers=libpq,django_orm", "--routes=socket", "--budget-s=15")
#: Prints the slices of a look.
_LOOK = """
import json
from pgperf.worker.machine_look import look_and_keep
look = look_and_keep()
print(json.dumps({"look_us": look.slices_us, "look_step_s": look.step_s}))
"""
_RIVAL = """
import os, random, sys, time
while os.getppid() == int(sys.argv[1]):
    end = time.perf_counter() + (length := random.uniform(0.001, 0.020))
    while time.perf_counter() < end: pass
    time.sleep(length)
"""


#: What a line has without a look.
NO_LOOK: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Case:
    """The conditions of one run: rivals on the CPUs, and the target in ±%, 0 for none."""

    seed: int
    rivals: int
    target: float

    @classmethod
    def of(cls, seed: int) -> "Case":
        """Nine seeds in a row have each load with each target, in random order of the targets."""
        targets = random.Random(f"targets {(seed - 1) // 3}").sample(TARGETS, len(TARGETS))
        return cls(seed, LOADS[(seed - 1) // 3 % len(LOADS)], targets[(seed - 1) % 3])


@dataclass(frozen=True)
class Reached:
    """What one run was predicted to reach, and what it reached: half-widths, None if not known.

    `rounds` are the pairs of slices in a block, in the mean. `look_us` are the slices of the look, one
    begun every `look_step_s`; `half_widths` those of all ratios. Older lines lack the fields from
    `predicted_blocks` on.
    """

    seed: int
    rivals: int
    target: float
    predicted: float | None
    predicted_s: float | None
    reached: float | None
    seconds: float | None
    predicted_blocks: int | None = None
    predicted_rounds: int | None = None
    blocks: int | None = None
    rounds: float | None = None
    look_us: Sequence[float] = ()
    look_step_s: float | None = None
    half_widths: Sequence[float] = ()

    @property
    def ratio(self) -> float:
        """Reached over predicted; infinite where one is not known, or the run was refused."""
        return self.reached / self.predicted if self.reached and self.predicted else math.inf

    @property
    def is_inside(self) -> bool:
        return LOW <= self.ratio <= HIGH

    @classmethod
    def of(cls, case: Case, run: dict[str, Any], look: Mapping[str, Any] = NO_LOOK) -> "Reached":
        """Exits where the run failed for another reason than its time."""
        if run["run"]["status"] != "done" and refused_s(run) is None:
            raise SystemExit(f"verdict: cannot measure: {run['run']['error']}")
        environment = run["run"]["environment"] or {}
        prediction = Prediction.from_json(environment.get(PREDICTED))
        ending = Ending.from_json(environment.get(ENDING))
        return cls(
            case.seed,
            case.rivals,
            case.target,
            predicted=prediction.precision if prediction else None,
            predicted_s=prediction.seconds if prediction else None,
            reached=ending.precision if ending else None,
            seconds=ending.seconds if ending else None,
            predicted_blocks=prediction.blocks if prediction else None,
            predicted_rounds=prediction.rounds if prediction else None,
            blocks=ending.blocks if ending else None,
            rounds=_rounds(run, ending.blocks) if ending else None,
            half_widths=_half_widths(run),
            **look,
        )


def _rounds(run: dict[str, Any], blocks: int) -> float | None:
    pairs = max((each["pairs"] for each in run.get("comparisons") or ()), default=None)
    return pairs / blocks if pairs and blocks else None


def _half_widths(run: dict[str, Any]) -> tuple[float, ...]:
    """Of log ratios, in the order of the run's comparisons; without those that have no interval."""
    rows = run.get("comparisons") or ()
    return tuple(math.log(row["high"] / row["low"]) / 2 for row in rows if row.get("low") and row.get("high"))


def main() -> int:
    options = _options()
    units = [{"seed": seed} for seed in range(options.seed, options.seed + options.runs)]
    out = None if options.quick else options.out
    runs = [Reached(**line) for line in json_lines.resumed(out, units, partial(_all, options.quick))]
    print("\n".join(lines(runs)))
    if not options.quick and len(runs) < CAMPAIGN:
        print(f"verdict: not judged: {len(runs)} runs of a campaign of {CAMPAIGN}")
        return 1
    held = holds(runs, QUICK_SHARE if options.quick else SHARE)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def holds(runs: Sequence[Reached], share: float) -> bool:
    return bool(runs) and sum(run.is_inside for run in runs) >= share * len(runs)


def lines(runs: Sequence[Reached]) -> Iterator[str]:
    """A Markdown table of the runs, and the counts by load."""
    yield "| seed | rivals | target | predicted | reached | ratio |"
    yield "|---" * 6 + "|"
    for run in runs:
        yield (
            f"| {run.seed} | {run.rivals} | {f'±{run.target:g} %' if run.target else 'none'} "
            f"| {_width(run.predicted, run.predicted_s)} | {_width(run.reached, run.seconds)} | {run.ratio:.2f} |"
        )
    for rivals in LOADS:
        own = [run for run in runs if run.rivals == rivals]
        if own:
            inside = sum(run.is_inside for run in own)
            middle = median(run.ratio for run in own)
            yield f"{rivals} rivals: {inside} of {len(own)} within {LOW} to {HIGH}, median ratio {middle:.2f}"


def _width(precision: float | None, seconds: float | None) -> str:
    return "unknown" if precision is None else f"±{in_percent(precision, 1)} in {seconds or 0:.0f} s"


def _all(quick: bool, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    with Stack(ROOT / ".stack" / "predicted-precision", keep=False) as stack:
        manage(stack.env, "set_up_site")
        for unit in units:
            yield asdict(_measured(Case.of(unit["seed"]), stack.env, quick))


def _measured(case: Case, stack_env: dict[str, str], quick: bool) -> Reached:
    words = _SHORT if quick else (f"--budget-s={BUDGET_S}",)
    with _rivals(case.rivals):
        look = json.loads(manage(stack_env, "shell", "-c", _LOOK).splitlines()[-1])
        run = try_benchmark(stack_env, "orm-overhead", "--quick", f"--precision={case.target:g}", *words)
    return Reached.of(case, run, look)


@contextmanager
def _rivals(count: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", _RIVAL, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--runs", "runs, each with a seed of its own", full=CAMPAIGN, quick=2)
    parser.add_seed()
    parser.add_out()
    return parser.options()


if __name__ == "__main__":
    run_script(main)
