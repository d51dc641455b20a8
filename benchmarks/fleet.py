"""One load host and four with the same clients: throughput, and when their slices begin.

    python -m benchmarks.fleet [--clients 8] [--blocks 12] [--quick]

Each load host is a network namespace with a Celery worker and a monotonic clock of its own, and a
fifth one has the database and the owner of the run; virtual cables join them. The machine is one, so
four can do no more than one. That takes root. The bars: the 95 % interval of the ratio contains 1 and
is at most ±10 % wide, or lies within ±2 % (quick: ±5 %, and any width); the first operations of the
hosts end within 5 ms of each other, at the 99th percentile of the slices that several hosts have; the
offset of each clock is found to within the error that is shown.
"""

import json
import math
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.options import ScriptParser, run_script
from example.stack.fleet import Fleet, fleet
from example.stack.network_hosts import refusal

#: By how many seconds the monotonic clock of each host is ahead.
AHEAD_S = {"a": 0, "b": 420, "c": -600, "d": 86_400}
NETWORK = "10.213.9"
SKEW_US = 5_000.0
MARGIN, QUICK_MARGIN = 0.02, 0.05
#: The half-width of an interval that contains 1: a wider one shows nothing.
WIDEST, QUICK_WIDEST = 1.1, math.inf


def main() -> int:
    parser = ScriptParser(__doc__)
    parser.add_size("--clients", "clients in all", full=8, quick=8)
    parser.add_size("--blocks", "blocks of the run", full=12, quick=6)
    options = parser.options()
    if why := refusal():
        raise SystemExit(f"verdict: cannot measure: {why}")
    with (
        tempfile.TemporaryDirectory() as directory,
        fleet(Path(directory), AHEAD_S, NETWORK) as hosts,
    ):
        told = _measured(hosts, *_words(options.clients, options.blocks))
    return _verdict(told, *((QUICK_MARGIN, QUICK_WIDEST) if options.quick else (MARGIN, WIDEST)))


def _measured(hosts: Fleet, *words: str) -> dict[str, Any]:
    """The JSON of the run. The script exits if it fails."""
    done = subprocess.run(
        hosts.argv("pgperf", "run", "--json", *words),
        env=hosts.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"verdict: cannot measure: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def _words(clients: int, blocks: int) -> list[str]:
    fixed = "orm-overhead --layers libpq --routes tcp --load-hosts 1,4 --precision 0 --diagnostic-ms 0"
    return [*fixed.split(), f"--clients={clients}", f"--blocks={blocks}", "--rounds=5", "--slice-ms=300"]


def _verdict(told: dict[str, Any], margin: float, widest: float) -> int:
    facts = told["run"]["environment"]["load_hosts"]
    (compared,) = (
        each for each in told["comparisons"] if "4 load hosts" in each["variant"] and not each["aa"]
    )
    for row in told["variants"]:
        print(f"{row['label']:<50} {row['ops_per_s']:>10,.0f} operations/s {row['us_per_op']:>8.1f} µs")
    print(f"\nfour hosts over one: {compared['ratio']:.4f} [{compared['low']:.4f}, {compared['high']:.4f}]")
    skew_us = facts["start_skew_us"]
    apart = "not known" if skew_us is None else f"{skew_us:,.0f} µs"
    print(f"first operations apart, 99th percentile: {apart}; repeated: {facts['repeated']}")
    for name, clock in facts["clocks"].items():
        print(f"clock of {name}: {_off_us(name, clock):+,.0f} µs, error at most {clock['error_us']:,.0f} µs")
    broken = [name for name, holds in held(facts, compared, margin, widest).items() if not holds]
    print("verdict: " + (f"the bar does NOT hold: {', '.join(broken)}" if broken else "the bars hold"))
    return 1 if broken else 0


def held(
    facts: Mapping[str, Any], compared: Mapping[str, Any], margin: float, widest: float
) -> dict[str, bool]:
    """Bar -> whether it holds. A skew that is not known holds no bar."""
    low, high, skew_us, clocks = compared["low"], compared["high"], facts["start_skew_us"], facts["clocks"]
    return {
        "throughput": (low <= 1 <= high and high / low <= widest**2)
        or (1 - margin < low and high < 1 + margin),
        "starts": skew_us is not None and skew_us <= SKEW_US,
        "clocks": clocks.keys() == AHEAD_S.keys()
        and all(abs(_off_us(name, each)) <= each["error_us"] for name, each in clocks.items()),
    }


def _off_us(name: str, clock: Mapping[str, float]) -> float:
    """What was found of the offset of a host's clock, less what it is."""
    return 1e3 * (clock["offset_ms"] + 1e3 * AHEAD_S[name])


if __name__ == "__main__":
    run_script(main)
