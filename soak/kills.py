"""Kill each process of a site with SIGKILL at random moments of a run.

    python -m soak.kills [--count 200] [--seed N]

Each case requests a run, kills one victim at a moment drawn from the seed, and restarts it. Then it
checks that

- the run ends within 60 s of the kill, with an error that fits the victim;
- no client process and no backend of pgperf is left 10 s later;
- no stored block is lost;
- the run was performed once;
- the next run is done.

`--case N` replays one case.
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
#: A moment is a share of the duration of an undisturbed run in the same lane, so that it does not
#: depend on the machine's load. For the victim "client" it counts from the first client on.
_SHARES = {"client": 0.7}
_USUAL_SHARE = 1.05
_WEB_SPAN_S = 1.5  # after the click; the run itself does not need the web process
_RESTART_SPAN_S = 3.0


def case(seed: int, number: int) -> dict[str, Any]:
    """The parameters of case `number`, the same for the same seed. Victims take turns."""
    draw = random.Random(f"{seed}/{number}")
    victim = VICTIMS[number % len(VICTIMS)]
    return {
        "seed": seed,
        "number": number,
        "victim": victim,
        "share": round(draw.uniform(0, _SHARES.get(victim, _USUAL_SHARE)), 3),
        "click_s": round(draw.uniform(0, _WEB_SPAN_S), 3),
        "which": draw.random(),  # selects one of several processes: a share of their list
        "restart_s": round(draw.uniform(0, _RESTART_SPAN_S), 3),
        "alone": draw.random() < 0.5,  # the worker restarts only after its run counts as lost
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
    """One line a victim, as in docs/campaigns/kills-and-faults.md."""
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
    parser.add_argument("--count", type=int, default=200, help="number of cases (200)")
    parser.add_argument("--quick", action="store_true", help="kill each victim once")
    parser.add_argument("--case", type=int, help="run only the case with this number")
    parser.add_argument("--victims", default="", metavar="A,B", help=f"kill only these: {', '.join(VICTIMS)}")
    parser.add_argument("--lanes", type=int, default=3, help="sites in parallel (3)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
