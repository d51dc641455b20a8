"""Power: does a run that stops by itself see a difference that was planted?

    python -m benchmarks.power [--quick] [--planted 5|2] [--runs 40] [--seed 1] [--out FILE]

Each run measures two variants and a control: psycopg with a query of about a millisecond, and the
same query in a client whose operation takes 5 % longer (60 s, target ±2 %) or 2 % longer (300 s,
target ±0.5 %). The client spins for that share of each operation's own time (benchmarks/planted.py),
so the true difference is known by construction. The client's clock checks it in every run, without
pgperf's comparison. One seed in two plants it in the first workload, the baseline, the other in the
second. `--out` keeps one JSON object a line for each run, and seeds that the file has for that
planted difference are not run again.

The bar, for a campaign of 40 runs or more: at least 95 % of the runs call a planted 5 % *differs*,
90 % a planted 2 %. None calls it in the wrong direction, and the middle one of the true differences
is within a tenth of what was to be planted. A run whose time is refused, or that fails, has not
called it. Fewer runs are shown but not judged. `--quick`: one run of 25 s with 25 % planted, which it
must call.
"""

import argparse
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from scipy import stats

from benchmarks import json_lines, planted
from benchmarks.block_collector import BlockCollector
from benchmarks.false_alarms import stack_machine, stack_routes
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.outcome import DIFFERS, EQUIVALENT, INCONCLUSIVE
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import VariantComparison
from pgperf.core import limits
from pgperf.core.exceptions import BudgetTooShort, ClientFailed
from pgperf.core.records import ENDING, Cohort, Definition, Ending, Plan, Route, WorkloadDefinition
from pgperf.install.launch import django_driver
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute

ROOT = Path(__file__).resolve().parent.parent
LAYER, ROUTE = "psycopg", "socket"
QUERY = "SELECT count(*) FROM generate_series(1, 10000)"
CAMPAIGN = 40
REFUSED, FAILED = "refused", "failed"
_NEAR = 0.1  # the part of a planted difference by which the true one may be off


@dataclass(frozen=True)
class Planted:
    """A difference in %, the target in ±% and the time budget of its runs, and the share of the runs
    that must call it.
    """

    percent: int
    target: float
    budget_s: int
    bar: float

    @property
    def share(self) -> float:
        return self.percent / 100


DIFFERENCES = {5: Planted(5, 2.0, 60, 0.95), 2: Planted(2, 0.5, 300, 0.90)}
QUICK = Planted(25, 5.0, 25, 1.0)


@dataclass(frozen=True)
class Result:
    """One run. `difference` is by how much the slower variant is slower, 0.05 for 5 %, below 0 if it
    came out as the faster one; `true` is the same by the client's clock. `half_width` is that of the
    log ratio. `control` is the outcome of the control. None: not known.
    """

    planted: int
    seed: int
    baseline_slower: bool
    outcome: str
    difference: float | None = None
    half_width: float | None = None
    true: float | None = None
    control: str = ""
    ended: str = ""
    seconds: float | None = None

    @property
    def is_called(self) -> bool:
        return self.outcome == DIFFERS

    @property
    def is_wrong(self) -> bool:
        """Called in the wrong direction."""
        return self.is_called and self.difference is not None and self.difference < 0


def main() -> int:
    options = _options()
    chosen = QUICK if options.quick else DIFFERENCES[options.planted]
    seeds = range(options.seed, options.seed + options.runs)
    results = _campaign(chosen, seeds, options.out)
    print("\n".join(lines(chosen, results)))
    if not options.quick and len(results) < CAMPAIGN:
        print(f"verdict: not judged: {len(results)} runs of a campaign of {CAMPAIGN}")
        return 1
    held = holds(chosen, results)
    print("verdict: " + ("the bar holds" if held else "the bar does NOT hold"))
    return 0 if held else 1


def holds(chosen: Planted, results: Sequence[Result]) -> bool:
    called = sum(result.is_called and not result.is_wrong for result in results)
    enough = bool(results) and called >= chosen.bar * len(results)
    return enough and not any(result.is_wrong for result in results) and is_as_planted(chosen, results)


def is_as_planted(chosen: Planted, results: Sequence[Result]) -> bool:
    """Was the difference there, by the clients' clocks?"""
    true = [result.true for result in results if result.true is not None]
    return bool(true) and abs(median(true) / chosen.share - 1) <= _NEAR


def lines(chosen: Planted, results: Sequence[Result]) -> Iterator[str]:
    """A Markdown table: the runs whose baseline is the slower one, the others, and all."""
    heads = (
        "planted", "slower", "runs", "called differs", "95 % interval", "wrong direction", "equivalent",
        "inconclusive", "refused", "failed", "estimated, median", "true, median", "half-width, median",
        "false alarms of controls",
    )  # fmt: skip
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for slower, own in _groups(results).items():
        if own:
            yield "| " + " | ".join(map(str, _cells(chosen, slower, own))) + " |"
    yield from (f"failed: seed {each.seed}: {each.ended}" for each in results if each.outcome == FAILED)


def _groups(results: Sequence[Result]) -> dict[str, list[Result]]:
    return {
        "baseline": [result for result in results if result.baseline_slower],
        "variant": [result for result in results if not result.baseline_slower],
        "all": list(results),
    }


def _cells(chosen: Planted, slower: str, results: Sequence[Result]) -> list[Any]:
    called = sum(result.is_called for result in results)
    rate = stats.binomtest(called, len(results)).proportion_ci(method="exact")  # Clopper-Pearson
    counts = [
        sum(result.outcome == word for result in results)
        for word in (EQUIVALENT, INCONCLUSIVE, REFUSED, FAILED)
    ]
    return [
        f"{chosen.percent} %", slower, len(results), f"{called} ({in_percent(called / len(results))})",
        f"{in_percent(rate.low)} to {in_percent(rate.high)}", sum(result.is_wrong for result in results), *counts,
        _middle([result.difference for result in results]), _middle([result.true for result in results], 2),
        _middle([result.half_width for result in results], 2), sum(result.control == DIFFERS for result in results),
    ]  # fmt: skip


def _middle(values: Sequence[float | None], decimals: int = 1) -> str:
    known = [value for value in values if value is not None]
    return in_percent(median(known), decimals) if known else "unknown"


def _campaign(chosen: Planted, seeds: range, out: Path | None) -> list[Result]:
    """The results of these seeds, of which those that the file lacks are measured."""
    units = [{"planted": chosen.percent, "seed": seed} for seed in seeds]
    return [Result(**line) for line in json_lines.resumed(out, units, partial(_results, chosen))]


def _results(chosen: Planted, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    with Stack(ROOT / ".stack" / "power", parts=["postgres", "pgbouncer"], keep=False) as stack:
        routes, machine = stack_routes(stack.env), stack_machine(stack)
        for unit in units:
            yield asdict(_measured(chosen, unit["seed"], routes, machine))


def _measured(chosen: Planted, seed: int, routes: Mapping[str, Route], machine: RunSettings) -> Result:
    what, collector = definition(chosen, seed), BlockCollector()
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        settings = replace(machine, run_id=str(seed), interpreters={LAYER: planted.write(folder)})
        try:
            ended = execute(with_one_control(make_plan(what)), dict(routes), settings, collector)
        except BudgetTooShort as refusal:
            return _without_comparison(chosen, seed, REFUSED, str(refusal))
        except ClientFailed as failure:
            return _without_comparison(chosen, seed, FAILED, str(failure))
        true = planted.true_difference(folder, chosen.share)
    compared = summarise(what, ended.plan.variants, collector.blocks, django_driver())["comparisons"]
    return judged(chosen, seed, compared, Ending.from_json(ended.environment.get(ENDING)), true)


def _without_comparison(chosen: Planted, seed: int, outcome: str, why: str) -> Result:
    return Result(chosen.percent, seed, is_baseline_slower(seed), outcome, ended=why)


def judged(
    chosen: Planted,
    seed: int,
    compared: Sequence[VariantComparison],
    ending: Ending | None,
    true: float | None,
) -> Result:
    """The result of a run from its comparisons: the two workloads, and the control. A run that kept no
    block with both workloads compared nothing: it has failed.
    """
    found = next((each for each in compared if not each.aa), None)
    if found is None:
        return _without_comparison(chosen, seed, FAILED, "no block has both workloads")
    slower = is_baseline_slower(seed)
    return Result(
        chosen.percent,
        seed,
        slower,
        found.outcome,
        difference=(1 / found.ratio if slower else found.ratio) - 1,
        half_width=math.log(found.high / found.low) / 2 if found.low and found.high else None,
        true=true,
        control=next((each.outcome for each in compared if each.aa), ""),
        ended=ending.reason if ending else "",
        seconds=ending.seconds if ending else None,
    )


def is_baseline_slower(seed: int) -> bool:
    """In one seed of two that follow each other, from 1."""
    first = random.Random(f"slower {(seed - 1) // 2}").random() < 0.5
    return first if seed % 2 else not first


def definition(chosen: Planted, seed: int) -> Definition:
    """Two workloads that differ by what is planted, with the defaults of a benchmark."""
    shares = (chosen.share, 0.0) if is_baseline_slower(seed) else (0.0, chosen.share)
    works = tuple(
        WorkloadDefinition(name, planted.longer(QUERY, share))
        for name, share in zip(("first", "second"), shares, strict=True)
    )
    return Definition(
        "power", works, (LAYER,), (ROUTE,), diagnostic_ms=limits.DIAGNOSTIC_MS.default,
        precision=chosen.target, budget_s=chosen.budget_s, seed=seed,
    )  # fmt: skip


def with_one_control(plan: Plan) -> Plan:
    """The plan with the control of its first variant only."""
    controls = [variant for variant in plan.variants if variant.control]
    return replace(plan, cohorts=(Cohort(tuple(v for v in plan.variants if v not in controls[1:])),))


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument(
        "--planted", type=int, choices=[*DIFFERENCES], default=5, help="the difference in %% (5; quick: 25)"
    )
    parser.add_size("--runs", "runs, each with a seed of its own", full=CAMPAIGN, quick=1)
    parser.add_seed()
    parser.add_out()
    return parser.options()


if __name__ == "__main__":
    run_script(main)
