"""The precision of two placements: clients and server on CPUs of their own, or all on one.

    python -m benchmarks.placements [--pairs 4] [--quick]

The script runs `orm-overhead --quick` with the placements `apart` and `together`, in random order
within each pair. It prints the time per operation of every variant and its ratio to libpq under
both, and the geometric mean of the half-widths of all intervals, pair by pair. The bar: over all
pairs, this mean is smaller with `together`. `--quick`: two pairs of short runs of two layers on one
route, under a minute.
"""

import argparse
import random
import statistics
from collections import defaultdict
from typing import Any

from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent

PLACEMENTS = ("apart", "together")
_SHORT = ("--layers=libpq,django_orm", "--routes=socket", "--blocks=6", "--rounds=1")
Runs = dict[str, list[dict[str, Any]]]


def main() -> int:
    options = _options()
    with Stack(ROOT / ".stack" / "placements", keep=False) as stack:
        manage(stack.env, "set_up_site")
        runs = _measure(stack.env, options)
    _print_times(runs)
    widths = {placement: [*map(half_width, runs[placement])] for placement in PLACEMENTS}
    print("\nhalf-width of an interval, geometric mean, run by run and over all")
    for placement, found in widths.items():
        each = " ".join(f"{in_percent(width, 1):>7}" for width in found)
        print(f"{placement:<10} {each}   {in_percent(statistics.geometric_mean(found), 1):>7}")
    apart, together = (statistics.geometric_mean(widths[placement]) for placement in PLACEMENTS)
    print("\nverdict: " + ("the bar holds" if together < apart else "the bar does NOT hold"))
    return 0 if together < apart else 1


def half_width(run: dict[str, Any]) -> float:
    """The geometric mean over the run's comparisons of the half-widths of the log ratios."""
    return statistics.geometric_mean((each["high"] / each["low"]) ** 0.5 - 1 for each in run["comparisons"])


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--pairs", "pairs of runs", full=4, quick=2)
    return parser.options()


def _measure(stack_env: dict[str, str], options: argparse.Namespace) -> Runs:
    words = ["orm-overhead", "--quick", "--precision=0", "--diagnostic-ms=0"]
    words += _SHORT if options.quick else []
    runs: Runs = defaultdict(list)
    for _ in range(options.pairs):
        for placement in random.sample(PLACEMENTS, len(PLACEMENTS)):
            run = run_benchmark(stack_env, *words, f"--placement={placement}")
            found = run["run"]["environment"]["placement"]
            if found["placement"] != placement:
                raise SystemExit(f"verdict: cannot measure: {found['note']}")
            runs[placement].append(run)
    return runs


def _print_times(runs: Runs) -> None:
    """Medians over the runs: µs per operation, and over libpq on the same route."""
    print(f"{'variant':<28} " + " ".join(f"{placement:>12} {'ratio':>6}" for placement in PLACEMENTS))
    times = {placement: _times(runs[placement]) for placement in PLACEMENTS}
    for label, route in {v["label"]: v["route"] for v in runs[PLACEMENTS[0]][0]["variants"]}.items():
        cells = [
            f"{times[placement][label]:>9.1f} µs {times[placement][label] / times[placement][f'libpq · {route}']:>6.2f}"
            for placement in PLACEMENTS
        ]
        print(f"{label:<28} " + " ".join(cells))


def _times(runs: list[dict[str, Any]]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for variant in run["variants"]:
            found[variant["label"]].append(variant["us_per_op"])
    return {label: statistics.median(values) for label, values in found.items()}


if __name__ == "__main__":
    run_script(main)
