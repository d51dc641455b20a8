"""kill -9 of every part of a site at random moments of a run: `python -m soak.kills [--count 200] [--seed N]`.

Each case asks for a run, kills one victim at a seeded moment, starts it again, and then demands: the run is terminal
within 60 s of the kill, for a reason that fits the victim; no client process and no backend of ours is left 10 s later;
no block that was stored is gone; the run was performed once; and the next run is done. `--case N` replays one.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from typing import Any

from soak import lanes

VICTIMS = ("worker", "pool child", "client", "backend", "postmaster", "PgBouncer", "Redis", "web")
#: A moment is a share of what an undisturbed run of this lane took, so that a busy machine shifts none; a client's
#: is counted from the first client on.
_SHARES = {"client": 0.7}
_USUAL_SHARE = 1.05
_WEB_SPAN_S = 1.5  # around the click; the run itself does not need the web process
_RESTART_SPAN_S = 3.0


def case(seed: int, number: int) -> dict[str, Any]:
    """What case `number` of a campaign does: always the same. Victims take turns."""
    draw = random.Random(f"{seed}/{number}")
    victim = VICTIMS[number % len(VICTIMS)]
    return {
        "seed": seed,
        "number": number,
        "victim": victim,
        "share": round(draw.uniform(0, _SHARES.get(victim, _USUAL_SHARE)), 3),
        "click_s": round(draw.uniform(0, _WEB_SPAN_S), 3),
        "which": draw.random(),  # which of several processes, as a share of their list
        "restart_s": round(draw.uniform(0, _RESTART_SPAN_S), 3),
        "alone": draw.random() < 0.5,  # a worker that comes back only when its run counts as lost
    }


def main() -> int:
    options = _options()
    count = len(VICTIMS) if options.quick else options.count
    numbers = range(count) if options.case is None else [options.case]
    chosen = [case(options.seed, number) for number in numbers]
    if options.victims:
        chosen = [one for one in chosen if one["victim"] in options.victims.split(",")]
    begin, results = time.monotonic(), []
    for result in lanes.perform("soak.kill_case", chosen, options.lanes):
        results.append(result)
        print(_line(result), flush=True)
    print(table(results))
    bad = [result for result in results if result["wrong"]]
    for result in bad:
        print(f"replay: python -m soak.kills --seed {options.seed} --case {result['number']}")
    print(
        f"verdict: {len(results) - len(bad)} of {len(results)} kills hold, in {(time.monotonic() - begin) / 60:.1f}"
        f" minutes (seed {options.seed})"
    )
    return 1 if bad or not results else 0


def table(results: list[dict[str, Any]]) -> str:
    """One line a victim, as docs/reliability.md has it."""
    lines = [
        "",
        "| killed | cases | with 0, 1, 2, 3 blocks stored | ended as | s until failed or lost, median | longest "
        "| orphans | backends | blocks lost "
        "| performed twice | next run done |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    known = [result for result in results if "status" in result]
    groups = [(victim, [result for result in known if result["victim"] == victim]) for victim in VICTIMS]
    lines += [_row(victim, own) for victim, own in groups if own]
    return "\n".join([*lines, ""])


def _row(victim: str, own: list[dict[str, Any]]) -> str:
    ended = ", ".join(
        f"{count} {status}" for status, count in Counter(r["status"] for r in own).most_common()
    )
    stored = Counter(result["stored"] for result in own)
    took = [result["terminal_s"] for result in own if result["status"] != "done"]
    median, longest = (f"{statistics.median(took):.1f}", f"{max(took):.1f}") if took else ("–", "–")
    cells = [
        victim, len(own), ", ".join(str(stored[blocks]) for blocks in range(4)), ended, median, longest, *(
            sum(result[name] for result in own) for name in ("orphans", "backends", "blocks_lost", "again")
        ), f"{sum(result['next_done'] for result in own)}/{len(own)}",
    ]  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _line(result: dict[str, Any]) -> str:
    head = f"{result['number']:>4} {result['victim']:<11}"
    if "status" not in result:
        return f"{head} WRONG: {'; '.join(result['wrong'])}"
    tail = f"WRONG: {'; '.join(result['wrong'])}" if result["wrong"] else "holds"
    return (
        f"{head} at {result['moment'][:34]:<34} {result['status']:<9} {result['terminal_s']:>5.1f} s  {tail}  "
        f"{result['error'][:70]}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m soak.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="each victim once")
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--victims", default="", metavar="A,B", help=", ".join(VICTIMS))
    parser.add_argument("--lanes", type=int, default=3, help="sites side by side (3)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
