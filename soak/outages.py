"""Suspended processes, a full disk, a standby as target, limits of a control group.

    python -m soak.outages [--case NAME] [--count N] [--seed N]

Each kind is one case on one site, because the cases wait more than they work. Needs root, to mount
a small file system and to write limits of control groups.
"""

import argparse
import os
import sys
import time

from soak import lanes
from soak.faults import HEAD, row

#: Kind -> repetitions in a full campaign.
KINDS = {
    "Redis suspended": 1,
    "worker suspended": 1,
    "measuring process suspended": 1,
    "hot standby": 2,
    "disk full": 2,
    "too few processes": 4,
    "too little memory": 2,
}
NEED_ROOT = ("disk full", "too few processes", "too little memory")


def main() -> int:
    options = _options()
    kinds = _possible([options.case] if options.case else list(KINDS))
    most = 1 if options.quick else options.count or max(KINDS.values())
    cases = [{"seed": options.seed, "kind": kind, "count": min(most, KINDS[kind])} for kind in kinds]
    begin, results = time.monotonic(), []
    print(HEAD)
    for result in lanes.perform("soak.outage_cases", cases, options.lanes):
        results.append(result)
        print(row(result), flush=True)
    bad = [result for result in results if result["wrong"]]
    for result in bad:
        print(f"\n{result['kind']}: {'; '.join(result['wrong'][:5])}")
        print(f"replay: python -m soak.outages --seed {options.seed} --case '{result['kind']}'")
    minutes = (time.monotonic() - begin) / 60
    print(
        f"\nverdict: {len(results) - len(bad)} of {len(results)} kinds of outage hold, in {minutes:.1f} minutes"
    )
    return 1 if bad or not results else 0


def _possible(kinds: list[str]) -> list[str]:
    """Without those that only root can cause; says which are left out."""
    if os.geteuid() == 0:
        return kinds
    print(f"left out, because they need root: {', '.join(kind for kind in kinds if kind in NEED_ROOT)}")
    return [kind for kind in kinds if kind not in NEED_ROOT]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m soak.outages",
        description=f"{__doc__}\nkinds: {', '.join(KINDS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--count", type=int, default=0, help="limit on the repetitions of each kind (0: none)"
    )
    parser.add_argument("--quick", action="store_true", help="perform each kind once")
    parser.add_argument("--case", choices=list(KINDS), metavar="KIND", help="run only this kind")
    parser.add_argument("--lanes", type=int, default=1, help="sites in parallel (1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
