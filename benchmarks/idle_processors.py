"""The cost of waking idle CPUs, and the precision gained by keeping them awake.

    python -m benchmarks.idle_processors [--pairs 3] [--quick]

The script runs `orm-overhead --quick` with CPUs kept awake and with the system's idle states, in
random order within each pair. It prints the time per operation of every variant under both, and the
geometric mean of the half-widths of all intervals. The bar: this mean is smaller with CPUs awake.
`--quick`: two pairs of short runs of two rungs on one route, under a minute.
"""

import argparse
import random
import statistics
from collections import defaultdict
from itertools import chain
from typing import Any

from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent

_SHORT = ("--layers=libpq,django_orm", "--routes=socket", "--blocks=6", "--rounds=1")
Runs = dict[str, list[dict[str, Any]]]


def main() -> int:
    options = _options()
    with Stack(ROOT / ".stack" / "idle-processors", keep=False) as stack:
        manage(stack.env, "set_up_site")
        runs = _measure(stack.env, 2 if options.quick else options.pairs, _SHORT if options.quick else ())
    _print_times(runs)
    awake, system = (_scatter(runs[idle]) for idle in ("awake", "system"))
    print(
        f"\nhalf-width of an interval, geometric mean: awake {in_percent(awake, 2)}, system {in_percent(system, 2)}\n"
    )
    print("verdict: " + ("the bar holds" if awake < system else "the bar does NOT hold"))
    return 0 if awake < system else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    return parser.options()


def _measure(stack_env: dict[str, str], pairs: int, extra: tuple[str, ...]) -> Runs:
    runs: Runs = defaultdict(list)
    for _ in range(pairs):
        for idle in random.sample(("awake", "system"), 2):
            run = run_benchmark(
                stack_env, "orm-overhead", "--quick", "--precision=0", f"--idle={idle}", *extra
            )
            if run["run"]["environment"]["idle"]["idle"] != idle:
                raise SystemExit(f"verdict: cannot measure: {run['run']['environment']['idle']['note']}")
            runs[idle].append(run)
    return runs


def _print_times(runs: Runs) -> None:
    print(f"{'µs per operation, median of the runs':<38} {'awake':>8} {'system':>8} {'waking':>8}")
    awake, system = (_times(runs[idle]) for idle in ("awake", "system"))
    for label, us in awake.items():
        print(f"{label:<38} {us:>8.1f} {system[label]:>8.1f} {system[label] - us:>8.1f}")


def _times(runs: list[dict[str, Any]]) -> dict[str, float]:
    steps: dict[str, list[float]] = defaultdict(list)
    for ladder in chain.from_iterable(run["ladders"] for run in runs):
        for step in ladder["steps"]:
            steps[step["label"]].append(step["us"])
    return {label: statistics.median(values) for label, values in steps.items()}


def _scatter(runs: list[dict[str, Any]]) -> float:
    comparisons = chain.from_iterable(run["comparisons"] for run in runs)
    return statistics.geometric_mean((c["high"] - c["low"]) / 2 for c in comparisons)


if __name__ == "__main__":
    run_script(main)
