"""benchmarks.promised_time: its conditions, its two bars, how refusals count, and that it resumes."""

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import json_lines, promised_site, promised_time
from benchmarks.promised_time import (
    LOADS,
    ORM,
    SHORTER,
    SLOW,
    SLOW_FREE,
    Case,
    Pair,
    Promise,
    holds,
    keeps_promises,
    pair_lines,
    pair_of,
    promise_lines,
    refused_s,
    took_s,
)
from pgperf.core.records import ENDING, Ending
from pgperf.models import Benchmark
from pgperf.runner import preflight

KEPT = Promise(1, ORM, 0, 40.0, 36.0, "precision")
REFUSED = Promise(2, SLOW, 6, 120.0, 20.0, "time budget: ...", 180.0)
SHORT_PAIR = Pair(1, 60.0, 120.0, "precision", 0.019)


def run(seconds: int, reason: str = "budget", **fields: Any) -> dict[str, Any]:
    """The JSON of a run that took that long."""
    ending = Ending(reason=reason, blocks=7, seconds=seconds, budget_s=60.0, precision=0.018, target=0.02)
    return {
        "run": {
            "status": "done", "error": "", "requested": "2026-01-01T12:00:00+00:00",
            "finished": f"2026-01-01T12:{seconds // 60:02}:{seconds % 60:02}+00:00",
            "environment": {ENDING: ending.to_json()}, **fields,
        }
    }  # fmt: skip


def refused(least_s: float, budget_s: float = 60.0) -> dict[str, Any]:
    return run(5, status="failed", error=str(preflight.too_short(least_s, budget_s)), environment={})


def test_six_seeds_in_a_row_have_each_benchmark_with_each_load() -> None:
    for first in range(1, 31, 6):
        cases = [Case.of(seed) for seed in range(first, first + 6)]
        assert {(case.benchmark == ORM, case.rivals) for case in cases} == {
            (is_orm, n) for is_orm in (True, False) for n in LOADS
        }
    assert Case.of(3) == Case.of(3)


def test_twelve_seeds_in_a_row_have_the_slow_query_with_and_without_a_budget() -> None:
    cases = [Case.of(seed) for seed in range(1, 13) if Case.of(seed).benchmark != ORM]
    assert {(case.benchmark, case.rivals) for case in cases} == {
        (b, n) for b in (SLOW, SLOW_FREE) for n in LOADS
    }
    campaign = [Case.of(seed).benchmark for seed in range(1, 31)]
    assert abs(campaign.count(SLOW) - campaign.count(SLOW_FREE)) == 1


@pytest.mark.django_db
def test_the_site_has_the_slow_query_with_and_without_a_budget() -> None:
    promised_site._create_benchmarks()
    budgets = dict(Benchmark.objects.filter(name__startswith=SLOW).values_list("name", "budget_s"))
    assert budgets == {SLOW: 120, SLOW_FREE: 0}
    slow, free = (Benchmark.objects.get(name=name).workloads[0] for name in (SLOW, SLOW_FREE))
    assert (slow.limit, slow.model) == (free.limit, free.model)


def test_the_real_time_goes_from_the_request_to_the_end() -> None:
    assert took_s(run(75)) == 75


def test_a_run_that_kept_its_promise() -> None:
    found = Promise.of(Case(4, ORM, 2), 60.0, run(75))
    assert (found.real_s, found.ended, found.least_s) == (75.0, "budget", None)
    assert (found.ratio, found.is_refused) == (1.25, False)


def test_a_refusal_names_the_least_time() -> None:
    """In the very words of pgperf."""
    assert refused_s(refused(80.4)) == 81
    found = Promise.of(Case(4, SLOW, 6), 60.0, refused(80.4))
    assert (found.is_refused, found.least_s, found.real_s) == (True, 81.0, 5.0)


def test_another_failure_is_no_result() -> None:
    failed = run(5, status="failed", error="The server closed the connection.")
    assert refused_s(failed) is None
    with pytest.raises(SystemExit, match="cannot measure"):
        Promise.of(Case(4, SLOW, 6), 60.0, failed)


def test_the_worst_run_decides_and_a_fifth_may_be_refused() -> None:
    worst, refused_late = replace(KEPT, real_s=50.0), replace(REFUSED, real_s=150.0)
    assert keeps_promises([KEPT] * 3 + [worst, refused_late], 1.25)
    assert not keeps_promises([KEPT] * 2 + [worst, refused_late], 1.25)
    assert not keeps_promises([KEPT, replace(worst, real_s=50.1)], 1.25)
    assert not keeps_promises([REFUSED], 1.25)
    assert not keeps_promises([], 1.25)


@pytest.mark.parametrize("real_s", [150.1, 900.0])
def test_a_refusal_that_comes_late_breaks_the_promise(real_s: float) -> None:
    assert not keeps_promises([KEPT] * 9 + [replace(REFUSED, real_s=real_s)], 1.25)


def test_the_middle_pair_must_be_a_third_shorter() -> None:
    longer = replace(SHORT_PAIR, stopped_s=100.0)
    assert holds([KEPT], [SHORT_PAIR] * 6 + [longer] * 4)
    assert not holds([KEPT], [SHORT_PAIR] * 4 + [longer] * 6)
    assert holds([KEPT], [replace(SHORT_PAIR, stopped_s=120 * SHORTER)])
    assert not holds([replace(KEPT, real_s=51.0)], [SHORT_PAIR])
    assert not holds([KEPT], [])


def test_a_run_that_did_not_reach_its_target_is_infinitely_long() -> None:
    assert replace(SHORT_PAIR, ended="budget").ratio == math.inf
    assert pair_of(3, run(60, "precision"), run(120)) == Pair(3, 60.0, 120.0, "precision", 0.018)
    assert pair_of(3, run(60, "blocks"), run(120)).ratio == math.inf


def test_a_pair_needs_both_runs() -> None:
    with pytest.raises(SystemExit, match="6 blocks take at least"):
        pair_of(3, refused(80), run(120))


def test_a_campaign_of_pairs_alone_has_no_table_of_promises() -> None:
    assert [*promised_time.promise_lines([])] == []


def test_the_tables() -> None:
    text = [*promise_lines([REFUSED, replace(KEPT, seed=3, real_s=48.0), KEPT])]
    assert text[2:] == [
        "| orm-overhead | 0 | 2 | 0 | 40 s | 1.05 | 1.20 |",
        "| slow-list | 6 | 1 | 1 (180 s; said after 20 s at most) | 120 s |  | 0.17 |",
        "| all |  | 3 | 1 (180 s; said after 20 s at most) | 40 s to 120 s | 1.05 | 1.20 |",
    ]
    pairs = [SHORT_PAIR, replace(SHORT_PAIR, seed=2, ended="budget", stopped_s=150.0)]
    assert [*pair_lines(pairs)][2:] == [
        "| 1 | 60 s | 120 s | 0.50 |",
        "| 2 | not in 150 s | 120 s | inf |",
        "median of the ratios: inf",
    ]
    assert [*pair_lines([])] == []


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, without_stack: Callable[..., None]) -> list[str]:
    """What is measured instead of runs."""
    done: list[str] = []
    without_stack(promised_time, "manage")

    def promise(case: Case, env: dict[str, str]) -> Promise:
        done.append(f"promise {case.seed}")
        return replace(KEPT, seed=case.seed, benchmark=case.benchmark, rivals=case.rivals)

    def pair(seed: int, env: dict[str, str]) -> Pair:
        done.append(f"pair {seed}")
        return replace(SHORT_PAIR, seed=seed)

    monkeypatch.setattr(promised_time, "_promise", promise)
    monkeypatch.setattr(promised_time, "_pair", pair)
    return done


def test_a_campaign_resumes_by_seed_and_is_judged_when_it_is_complete(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs.jsonl"
    for each in (replace(KEPT, seed=2), replace(SHORT_PAIR, seed=1)):
        json_lines.append(out, asdict(each))
    asked = Namespace(quick=False, runs=3, pairs=2, seed=1, out=out)
    monkeypatch.setattr(promised_time, "_options", lambda: asked)
    assert promised_time.main() == 1
    assert measured == ["promise 1", "promise 3", "pair 2"]
    said = "verdict: not judged: 3 runs and 2 pairs of a campaign of 30 runs and 10 pairs\n"
    assert capsys.readouterr().out.endswith(said)
    asked.runs, asked.pairs = 30, 10
    assert promised_time.main() == 0
    assert len(measured) == 38
    assert len(json_lines.read(out)) == 40


def test_a_quick_run_is_no_part_of_a_campaign(
    tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "runs.jsonl"
    asked = Namespace(quick=True, runs=1, pairs=0, seed=1, out=out)
    monkeypatch.setattr(promised_time, "_options", lambda: asked)
    assert promised_time.main() == 0
    assert measured == ["promise 1"]
    assert not out.exists()
