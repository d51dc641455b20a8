"""Precision by slice length: the same number of slices of 50, 100 and 200 ms.

    python -m benchmarks.slice_length [--passes 2] [--idle awake|system] [--quick]

The script runs one route of `orm-overhead` with windows of 50, 100 and 200 ms, in random order
within each pass. It prints the geometric mean of the half-widths of all intervals, and its value
for equal measuring time (half-widths shrink with the square root of the number of slices). The bar:
for equal measuring time, the half-width of the shortest window is no wider than that of the
longest. `--quick`: 50 and 200 ms, two rungs, one pass.
"""

import argparse
import math
import random
import statistics
from collections import defaultdict
from typing import Any

from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent

_WINDOWS_MS = (50, 100, 200)
Runs = dict[int, list[dict[str, Any]]]


def main() -> int:
    options = _options()
    with Stack(ROOT / ".stack" / "slice-length", keep=False) as stack:
        manage(stack.env, "set_up_site")
        runs = _measure(stack.env, options)
    scatter = {window: _scatter(found) for window, found in sorted(runs.items())}
    per_time = {window: _per_time(scatter[window], runs[window]) for window in scatter}
    shortest, longest = min(scatter), max(scatter)
    print(f"{'window, ms':>10} {'half-width':>11} {'for equal time':>15}")
    for window in scatter:
        equal = per_time[window] / per_time[shortest] * scatter[shortest]
        print(f"{window:>10} {in_percent(scatter[window], 2):>11} {in_percent(equal, 2):>15}")
    holds = per_time[shortest] <= per_time[longest]
    print("\nverdict: " + ("the bar holds" if holds else "the bar does NOT hold"))
    return 0 if holds else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--idle", choices=("awake", "system"), default="awake")
    return parser.options()


def _measure(stack_env: dict[str, str], options: argparse.Namespace) -> Runs:
    windows = (min(_WINDOWS_MS), max(_WINDOWS_MS)) if options.quick else _WINDOWS_MS
    words = ["--routes=socket", f"--idle={options.idle}"]
    words += ["--layers=libpq,django_orm", "--blocks=6", "--rounds=2"] if options.quick else []
    runs: Runs = defaultdict(list)
    for _ in range(1 if options.quick else options.passes):
        for window in random.sample(windows, len(windows)):
            run = run_benchmark(
                stack_env, "orm-overhead", "--quick", "--precision=0", f"--slice-ms={window}", *words
            )
            runs[window].append(run)
    return runs


def _scatter(runs: list[dict[str, Any]]) -> float:
    widths = [(c["high"] - c["low"]) / 2 for run in runs for c in run["comparisons"]]
    return statistics.geometric_mean(widths)


def _per_time(scatter: float, runs: list[dict[str, Any]]) -> float:
    """Half-width times the square root of the measuring time, lead-ins included; smaller is better."""
    return scatter * math.sqrt(statistics.mean(run["timings"]["slices_s"] for run in runs))


if __name__ == "__main__":
    run_script(main)
