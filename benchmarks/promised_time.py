"""Time: does a run keep its promise, and how much sooner does it end than one of a fixed length?

    python -m benchmarks.promised_time [--quick] [--runs 30] [--pairs 10] [--seed 1] [--out FILE]

Promise: each run is one of `orm-overhead --quick`, or of a slow query of the site's own (a list of
2,500 books), beside no, two or six processes that spin. The seed of a run chooses among these six
conditions; six seeds in a row have each once. The slow query has a time budget of 120 s and none by
turns: of twelve seeds in a row, each load has it once with and once without. The promise is the time
that the page says which starts a run; the real time goes from the request to the end. A run may be
refused because its blocks cannot fit. It is counted by itself, with the least time that it named, and
its refusal has to come within the promised time as the end of any other run.

Length: each pair measures `orm-overhead` on the machine as it is, once until it knows its ratios to
±2 %, and once with all its blocks and rounds, in an order that the seed chooses.

`--out` keeps one JSON object a line for each run and pair, and seeds that the file has are not run
again. The bar, for a campaign of 30 runs and 10 pairs or more: at most a fifth of the runs are
refused, the worst of all runs takes at most 1.25 times its promise (a refused one until its refusal),
and the middle pair at most two thirds of the fixed length. A run that does not reach ±2 % counts as
infinitely long. Less is shown but not judged. `--quick`: one run of a fast query, at most 1.5 times
its promise.
"""

import argparse
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import product
from statistics import median
from typing import Any

from benchmarks import json_lines
from benchmarks.example_site import ROOT, manage, try_benchmark
from benchmarks.options import ScriptParser, run_script
from benchmarks.spinners import spinning
from example.stack.stack import Stack
from pgperf.core.records import ENDING, PRECISION, Ending

MOST, QUICK_MOST = 1.25, 1.5
SHORTER = 2 / 3
RAN = 0.8  # of the runs: a program that refuses all keeps every promise
CAMPAIGN_RUNS, CAMPAIGN_PAIRS = 30, 10
LOADS = (0, 2, 6)
ORM = "orm-overhead"
#: Made by benchmarks.promised_site. The second one is the first without a time budget.
SLOW, SLOW_FREE, SHORT = "slow-list", "slow-list-without-budget", "short-list"
_RUN_QUICK = (ORM, SHORT)  # with the option --quick
_SITE = "from benchmarks import promised_site as site; "
_LEAST = re.compile(r"^(?:budget_s|time budget): \d+ blocks take at least (\d+) s")


@dataclass(frozen=True)
class Case:
    """The conditions of one run."""

    seed: int
    benchmark: str
    rivals: int

    @classmethod
    def of(cls, seed: int) -> "Case":
        """Six seeds in a row have each query with each load, in random order. The slow one has a time
        budget with every other load, and in the next six with the others.
        """
        six = (seed - 1) // 6
        slow = [((SLOW, SLOW_FREE)[(six + at) % 2], rivals) for at, rivals in enumerate(LOADS)]
        every = [*product((ORM,), LOADS), *slow]
        random.Random(f"conditions {six}").shuffle(every)
        return cls(seed, *every[(seed - 1) % 6])


@dataclass(frozen=True)
class Promise:
    """One run: the time that was promised and the time it took. `least_s`: the time that a refused
    run named, else None. `ended`: why it ended.
    """

    seed: int
    benchmark: str
    rivals: int
    promised_s: float
    real_s: float
    ended: str
    least_s: float | None = None
    part: str = "promise"

    @property
    def is_refused(self) -> bool:
        return self.least_s is not None

    @property
    def ratio(self) -> float:
        return self.real_s / self.promised_s

    @classmethod
    def of(cls, case: Case, promised_s: float, run: dict[str, Any]) -> "Promise":
        """Exits where the run failed for another reason than its time."""
        ended, least_s = _reason(run), refused_s(run)
        if least_s is None and not _is_done(run):
            raise SystemExit(f"verdict: cannot measure: {ended}")
        return cls(case.seed, case.benchmark, case.rivals, promised_s, took_s(run), ended, least_s)


@dataclass(frozen=True)
class Pair:
    """A run that stopped by itself and one of a fixed length, in seconds. `ended`: why the first one
    ended; only PRECISION is a run that reached its target.
    """

    seed: int
    stopped_s: float
    fixed_s: float
    ended: str
    precision: float | None
    part: str = "pair"

    @property
    def ratio(self) -> float:
        return self.stopped_s / self.fixed_s if self.ended == PRECISION else math.inf


def main() -> int:
    options = _options()
    seeds = range(options.seed, options.seed + options.runs)
    pair_seeds = range(options.seed, options.seed + options.pairs)
    promises, pairs = _campaign(options, seeds, pair_seeds)
    print("\n".join([*promise_lines(promises), "", *pair_lines(pairs)]))
    if not options.quick and (len(promises) < CAMPAIGN_RUNS or len(pairs) < CAMPAIGN_PAIRS):
        whole = f"{CAMPAIGN_RUNS} runs and {CAMPAIGN_PAIRS} pairs"
        print(f"verdict: not judged: {len(promises)} runs and {len(pairs)} pairs of a campaign of {whole}")
        return 1
    held = keeps_promises(promises, QUICK_MOST) if options.quick else holds(promises, pairs)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def holds(promises: Sequence[Promise], pairs: Sequence[Pair]) -> bool:
    return keeps_promises(promises, MOST) and bool(pairs) and median(p.ratio for p in pairs) <= SHORTER


def keeps_promises(promises: Sequence[Promise], most: float) -> bool:
    """Were few enough refused, and did none take longer than `most` times its promise, to its end or
    refusal?
    """
    ran = sum(not promise.is_refused for promise in promises)
    return ran >= max(1, RAN * len(promises)) and max(each.ratio for each in promises) <= most


def took_s(run: dict[str, Any]) -> float:
    """From the request to the end."""
    requested, finished = (datetime.fromisoformat(run["run"][name]) for name in ("requested", "finished"))
    return (finished - requested).total_seconds()


def refused_s(run: dict[str, Any]) -> float | None:
    """The least time that a run named which was refused for its time; None of any other."""
    found = _LEAST.match(run["run"]["error"] or "")
    return float(found[1]) if found and not _is_done(run) else None


def _is_done(run: dict[str, Any]) -> bool:
    return bool(run["run"]["status"] == "done")


def _ending(run: dict[str, Any]) -> Ending | None:
    return Ending.from_json(run["run"]["environment"].get(ENDING))


def _reason(run: dict[str, Any]) -> str:
    ending = _ending(run)
    return ending.reason if ending else run["run"]["error"]


def promise_lines(promises: Sequence[Promise]) -> Iterator[str]:
    """A Markdown table: a row for each benchmark and load, and one for all; nothing without runs."""
    if not promises:
        return
    heads = ("benchmark", "load", "runs", "refused (least time named)", "promised")
    yield "| " + " | ".join((*heads, "real over promised, median of those that ran", "worst of all")) + " |"
    yield "|---" * 7 + "|"
    for benchmark, rivals in dict.fromkeys((each.benchmark, each.rivals) for each in _in_order(promises)):
        own = [each for each in promises if (each.benchmark, each.rivals) == (benchmark, rivals)]
        yield _row(benchmark, str(rivals), own)
    yield _row("all", "", promises)


def _in_order(promises: Sequence[Promise]) -> list[Promise]:
    return sorted(promises, key=lambda each: (each.benchmark, each.rivals))


def _row(benchmark: str, load: str, promises: Sequence[Promise]) -> str:
    ran = [each.ratio for each in promises if not each.is_refused]
    refused = [each for each in promises if each.is_refused]
    promised = " to ".join(
        dict.fromkeys(f"{end(p.promised_s for p in promises):.0f} s" for end in (min, max))
    )
    ratios = (f"{median(ran):.2f}" if ran else "", f"{max(each.ratio for each in promises):.2f}")
    return "| " + " | ".join((benchmark, load, str(len(promises)), _named(refused), promised, *ratios)) + " |"


def _named(refused: Sequence[Promise]) -> str:
    """How many, the least times that they named, and how long it took at most to say so."""
    if not refused:
        return "0"
    times = ", ".join(f"{each.least_s:.0f} s" for each in refused)
    return f"{len(refused)} ({times}; said after {max(each.real_s for each in refused):.0f} s at most)"


def pair_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """A Markdown table of the pairs, and the median of their ratios; nothing without pairs."""
    if not pairs:
        return
    yield "| seed | until ±2 % | fixed length | ratio |"
    yield "|---" * 4 + "|"
    for pair in pairs:
        reached = f"{pair.stopped_s:.0f} s" if pair.ended == PRECISION else f"not in {pair.stopped_s:.0f} s"
        yield f"| {pair.seed} | {reached} | {pair.fixed_s:.0f} s | {pair.ratio:.2f} |"
    yield f"median of the ratios: {median(pair.ratio for pair in pairs):.2f}"


def _campaign(
    options: argparse.Namespace, seeds: range, pair_seeds: range
) -> tuple[list[Promise], list[Pair]]:
    """The runs and pairs of these seeds, of which those that the file lacks are measured. Those of
    `--quick` are no part of a campaign.
    """
    units = [{"part": "promise", "seed": seed} for seed in seeds]
    units += [{"part": "pair", "seed": seed} for seed in pair_seeds]
    out = None if options.quick else options.out
    lines = [*json_lines.resumed(out, units, partial(_measured, options.quick))]
    promises = [Promise(**line) for line in lines if line["part"] == "promise"]
    return promises, [Pair(**line) for line in lines if line["part"] == "pair"]


def _measured(quick: bool, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    with Stack(ROOT / ".stack" / "promised-time", keep=False) as stack:
        manage(stack.env, "set_up_site")
        manage(stack.env, "shell", "-c", f"{_SITE}site.set_up()")
        for unit in units:
            seed, is_pair = unit["seed"], unit["part"] == "pair"
            yield asdict(_pair(seed, stack.env) if is_pair else _promise(_case(seed, quick), stack.env))


def _case(seed: int, quick: bool) -> Case:
    return Case(seed, SHORT, 0) if quick else Case.of(seed)


def _promise(case: Case, stack_env: dict[str, str]) -> Promise:
    quick = case.benchmark in _RUN_QUICK
    ask = f"{_SITE}print(site.promised_s({case.benchmark!r}, quick={quick}))"
    with spinning(case.rivals):
        promised_s = float(manage(stack_env, "shell", "-c", ask).splitlines()[-1])
        run = try_benchmark(stack_env, case.benchmark, *(["--quick"] if quick else []))
    return Promise.of(case, promised_s, run)


def _pair(seed: int, stack_env: dict[str, str]) -> Pair:
    runs = {}
    for precision in random.Random(f"order {seed}").sample((0, 2), 2):
        runs[precision] = try_benchmark(stack_env, ORM, f"--precision={precision}")
    return pair_of(seed, runs[2], runs[0])


def pair_of(seed: int, stopped: dict[str, Any], fixed: dict[str, Any]) -> Pair:
    """Exits where one of them failed."""
    for run in (stopped, fixed):
        if not _is_done(run):
            raise SystemExit(f"verdict: cannot measure: {_reason(run)}")
    ending = _ending(stopped)
    return Pair(seed, took_s(stopped), took_s(fixed), _reason(stopped), ending.precision if ending else None)


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--runs", "runs with a promise, each with a seed of its own", full=CAMPAIGN_RUNS, quick=1)
    parser.add_size(
        "--pairs", "pairs of a run that stops and one that does not", full=CAMPAIGN_PAIRS, quick=0
    )
    parser.add_seed()
    parser.add_out()
    return parser.options()


if __name__ == "__main__":
    run_script(main)
