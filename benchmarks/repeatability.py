"""Repeatability of results: ten runs of `orm-overhead --quick` in sequence.

    python -m benchmarks.repeatability [--runs 10] [--quick] [--out FILE]

The bars: for each control, at least 90 % of the A/A intervals contain 1, with half-widths of at most
2 %; every rung's ratio is within 5 % of its median over the runs; wall time without start-up is under
1.2 times the time of measuring. `--quick`: three runs of two rungs on one route, under a minute, with
wider tolerances.
"""

import argparse
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, output_file, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent


@dataclass(frozen=True)
class Bar:
    contain: float
    half_width: float
    spread: float
    wall: float


FULL = Bar(contain=0.9, half_width=0.02, spread=0.05, wall=1.2)
WIDER = Bar(contain=0.6, half_width=0.08, spread=0.15, wall=1.4)


def main() -> int:
    options = _options()
    bar = WIDER if options.quick else FULL
    with Stack(ROOT / ".stack" / "repeatability", keep=False) as stack:
        manage(stack.env, "set_up_site")
        runs = [_run(stack.env, options) for _ in range(3 if options.quick else options.runs)]
    if options.out:
        options.out.write_text(json.dumps(runs))
    passed = [_controls(runs, bar), _rungs(runs, bar), _wall(runs, bar)]
    print("verdict: " + ("the bar holds" if all(passed) else "the bar does NOT hold"))
    return 0 if all(passed) else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=output_file, help="write the JSON of all runs to this file")
    parser.add_argument("--extra", default="", help="further options of `pgperf run`, for experiments")
    return parser.options()


def _run(stack_env: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    extra = (
        ["--layers=libpq,django_orm", "--routes=socket", "--blocks=6", "--rounds=1"] if options.quick else []
    )
    return run_benchmark(
        stack_env, "orm-overhead", "--quick", "--precision=0", *extra, *options.extra.split()
    )


def _controls(runs: list[dict[str, Any]], bar: Bar) -> bool:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        for comparison in run["comparisons"]:
            if comparison["aa"]:
                found[comparison["variant"]].append(comparison)
    print(f"{'control (A/A)':<36} {'contain 1':>10} {'median ratio':>13} {'widest ±':>9} {'ratios':>8}")
    passed = bool(found)
    for label, comparisons in found.items():
        inside = sum(c["low"] <= 1 <= c["high"] for c in comparisons)
        widest = max((c["high"] - c["low"]) / 2 for c in comparisons)
        ratios = [c["ratio"] for c in comparisons]
        print(
            f"{label:<36} {f'{inside}/{len(runs)}':>10} {statistics.median(ratios):>13.4f} {in_percent(widest, 2):>9}"
            f"  {min(ratios):.3f} to {max(ratios):.3f}"
        )
        passed = passed and inside >= bar.contain * len(runs) and widest <= bar.half_width
    return passed


def _rungs(runs: list[dict[str, Any]], bar: Bar) -> bool:
    ratios: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for ladder in run["ladders"]:
            for step in (*ladder["steps"], *ladder.get("side", [])):
                ratios[step["label"]].append(step["ratio"])
    print(f"\n{'rung, time over libpq':<36} {'median':>8} {'min':>8} {'max':>8} {'furthest':>9}")
    furthest_of_all = 0.0
    for label, values in ratios.items():
        middle = statistics.median(values)
        furthest = max(abs(value / middle - 1) for value in values)
        furthest_of_all = max(furthest_of_all, furthest)
        print(
            f"{label:<36} {middle:>8.3f} {min(values):>8.3f} {max(values):>8.3f} {in_percent(furthest, 2):>9}"
        )
    return bool(ratios) and furthest_of_all <= bar.spread


def _wall(runs: list[dict[str, Any]], bar: Bar) -> bool:
    shares, walls = [], []
    for run in runs:
        t = run["timings"]
        measuring = t["slices_s"] + t["warm_up_s"] + t["pilot_s"]
        shares.append((t["wall_s"] - t["startup_s"]) / measuring)
        walls.append(t["wall_s"])
    print(
        f"\nwall time {min(walls):.1f} to {max(walls):.1f} s; less start-up, over measuring: {max(shares):.3f}\n"
    )
    return max(shares) <= bar.wall


if __name__ == "__main__":
    run_script(main)
