"""One load host and four with the same clients: throughput, and when their slices begin.

    python -m benchmarks.fleet [--clients 8] [--blocks 6] [--quick]

The load hosts are four Celery workers on this machine, so four can do no more than one. They are of
one session: the kernel gives each session its share of a busy machine (autogroup). The bars: the 95 %
interval of the ratio contains 1 or lies within ±2 % (quick: ±5 %); the first operations of the
hosts end within 5 ms of each other, at the 99th percentile of the slices; the offset of each clock,
which is 0 in truth, is found to within the error that is shown.
"""

import os
import shlex
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.example_site import ROOT, manage, run_benchmark
from benchmarks.options import ScriptParser, run_script
from example.stack import web
from example.stack.part import Part
from example.stack.stack import Stack

NAMES = ("a", "b", "c", "d")
SKEW_US = 5_000.0
MARGIN, QUICK_MARGIN = 0.02, 0.05


def main() -> int:
    parser = ScriptParser(__doc__)
    parser.add_size("--clients", "clients in all", full=8, quick=8)
    parser.add_size("--blocks", "blocks of the run", full=12, quick=6)
    options = parser.options()
    with ExitStack() as stack:
        site = stack.enter_context(Stack(ROOT / ".stack" / "fleet", keep=False))
        manage(site.env, "set_up_site")
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = _workers(logs, site.env)
        stack.callback(workers.stop)
        workers.start()
        told = run_benchmark(site.env, *_words(options.clients, options.blocks))
    return _verdict(told, QUICK_MARGIN if options.quick else MARGIN)


def _workers(directory: Path, env: dict[str, str]) -> Part:
    commands = [shlex.join(web.worker(directory, {}, f"pgperf-load-{name}").argv) for name in NAMES]
    one = web.worker(directory, {**os.environ, **env})
    return replace(
        one,
        argv=["sh", "-c", " & ".join([*commands, "wait"])],
        answers=lambda part: part.log_since_start().count(" ready.") == len(NAMES),
    )


def _words(clients: int, blocks: int) -> list[str]:
    fixed = "orm-overhead --layers libpq --routes tcp --load-hosts 1,4 --precision 0 --diagnostic-ms 0"
    return [*fixed.split(), f"--clients={clients}", f"--blocks={blocks}", "--rounds=5", "--slice-ms=300"]


def _verdict(told: dict[str, Any], margin: float) -> int:
    facts = told["run"]["environment"]["load_hosts"]
    (compared,) = (
        each for each in told["comparisons"] if "4 load hosts" in each["variant"] and not each["aa"]
    )
    for row in told["variants"]:
        print(f"{row['label']:<50} {row['ops_per_s']:>10,.0f} operations/s {row['us_per_op']:>8.1f} µs")
    low, high = compared["low"], compared["high"]
    print(f"\nfour hosts over one: {compared['ratio']:.4f} [{low:.4f}, {high:.4f}]")
    print(
        f"first operations apart, 99th percentile: {facts['start_skew_us']:,.0f} µs; repeated: {facts['repeated']}"
    )
    for name, clock in facts["clocks"].items():
        print(
            f"clock of {name}: {clock['offset_ms'] * 1e3:+,.0f} µs, error at most {clock['error_us']:,.0f} µs"
        )
    held = {
        "throughput": low <= 1 <= high or (1 - margin < low and high < 1 + margin),
        "starts": facts["start_skew_us"] <= SKEW_US,
        "clocks": all(abs(each["offset_ms"]) * 1e3 <= each["error_us"] for each in facts["clocks"].values()),
    }
    broken = [name for name, holds in held.items() if not holds]
    print("verdict: " + (f"the bar does NOT hold: {', '.join(broken)}" if broken else "the bars hold"))
    return 1 if broken else 0


if __name__ == "__main__":
    run_script(main)
