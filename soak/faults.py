"""Repeated and late messages, double clicks, cancel in every state, a lost broker.

    python -m soak.faults [--case NAME] [--count N] [--seed N]

Each kind of fault is one case, with its own number of repetitions; `--count` limits it. `--case
NAME` runs one kind. Random values are drawn from `--seed`.
"""

import argparse
import sys
import time
from typing import Any

from soak import lanes

#: Kind -> repetitions in a full campaign.
KINDS = {
    "five deliveries": 200,
    "late deliveries": 20,
    "double clicks": 50,
    "two databases": 10,
    "cancel: queued, not sent": 2,
    "cancel: queued, sent": 5,
    "cancel: claimed": 5,
    "cancel: starting clients": 5,
    "cancel: warm-up": 5,
    "cancel: in a slice": 5,
    "cancel: storing a block": 5,
    "cancel: in a diagnostic slice": 5,
    "cancel: done": 5,
    "cancel: failed": 5,
    "cancel: lost": 5,
    "cancel: cancelled": 5,
    "broker flushed": 3,
    "web dies before it sends": 3,
    "broker silent": 3,
}

HEAD = "\n| fault | times | held | s, median | longest | what was measured |\n|---|---|---|---|---|---|"


def main() -> int:
    options = _options()
    kinds = [options.case] if options.case else list(KINDS)
    most = 2 if options.quick else options.count or max(KINDS.values())
    cases = [{"seed": options.seed, "kind": kind, "count": min(most, KINDS[kind])} for kind in kinds]
    begin, results = time.monotonic(), []
    print(HEAD)
    for result in lanes.perform("soak.fault_cases", cases, options.lanes):
        results.append(result)
        print(row(result), flush=True)
    bad = [result for result in results if result["wrong"]]
    for result in bad:
        print(f"\n{result['kind']}: {'; '.join(result['wrong'][:5])}")
        print(
            f"replay: python -m soak.faults --seed {options.seed} --count {result['count']} --case '{result['kind']}'"
        )
    print(
        f"\nverdict: {len(results) - len(bad)} of {len(results)} kinds of fault hold, in"
        f" {(time.monotonic() - begin) / 60:.1f} minutes (seed {options.seed})"
    )
    return 1 if bad or not results else 0


def row(result: dict[str, Any]) -> str:
    took = sorted(result.get("took", []))
    middle, longest = (f"{took[len(took) // 2]:.1f}", f"{took[-1]:.1f}") if took else ("–", "–")
    held = f"{max(0, result['count'] - len(result['wrong']))}/{result['count']}"
    cells = [result["kind"], str(result["count"]), held, middle, longest, result.get("measured", "")]
    return "| " + " | ".join(cells) + " |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m soak.faults",
        description=f"{__doc__}\nkinds: {', '.join(KINDS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--count", type=int, default=0, help="limit on the repetitions of each kind (0: none)"
    )
    parser.add_argument("--quick", action="store_true", help="repeat each kind at most twice")
    parser.add_argument("--case", choices=list(KINDS), metavar="KIND", help="run only this kind")
    parser.add_argument("--lanes", type=int, default=2, help="sites in parallel (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
