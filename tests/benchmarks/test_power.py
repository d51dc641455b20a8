"""benchmarks.power: what is planted, how runs are judged and counted, and that a campaign resumes."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import json_lines, planted, power
from benchmarks.power import (
    DIFFERENCES,
    FAILED,
    QUICK,
    REFUSED,
    Result,
    definition,
    holds,
    is_baseline_slower,
    judged,
    lines,
    with_one_control,
)
from pgperf.analysis.outcome import DIFFERS, INCONCLUSIVE
from pgperf.analysis.summary import summarise
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Ending, Variant, VariantBlock
from pgperf.runner import preflight
from pgperf.runner.plan import make_plan
from tests.core.builders import slice_record

FIVE, TWO = DIFFERENCES[5], DIFFERENCES[2]
CALLED = Result(5, 1, False, DIFFERS, 0.051, 0.01, 0.05, INCONCLUSIVE, "precision", 40.0)
MISSED = replace(CALLED, outcome=INCONCLUSIVE)
ENDED = Ending(reason="precision", blocks=6, seconds=40.0, budget_s=60.0, precision=0.01, target=0.02)


def measured(seed: int, us: Mapping[float, float]) -> Result:
    """A run of six blocks whose clients with these shares took so many µs per operation."""
    what = definition(FIVE, seed)
    plan = with_one_control(make_plan(what))

    def block(variant: Variant, number: int) -> VariantBlock:
        share = planted.share_of(what.work(variant.workload).sql)
        slices = tuple(slice_record(round=at, us_per_op=us[share] * (1 + number / 1e4)) for at in range(3))
        return VariantBlock(variant=variant, cohort=0, block=number, slices=slices)

    blocks = [block(variant, number) for number in range(6) for variant in plan.variants]
    compared = summarise(what, plan.variants, blocks, "psycopg")["comparisons"]
    return judged(FIVE, seed, compared, ENDED, 0.05)


def test_the_difference_is_planted_in_each_workload_once_in_two_seeds() -> None:
    for first in range(1, 41, 2):
        assert is_baseline_slower(first) != is_baseline_slower(first + 1)
    assert 5 < sum(is_baseline_slower(seed) for seed in range(1, 41, 2)) < 15


@pytest.mark.parametrize("seed", [1, 2])
def test_the_workloads_differ_in_what_is_planted_only(seed: int) -> None:
    what = definition(TWO, seed)
    shares = [planted.share_of(work.sql) for work in what.workloads]
    assert shares == ([0.02, 0.0] if is_baseline_slower(seed) else [0.0, 0.02])
    assert len({work.sql.partition("*/")[2] for work in what.workloads}) == 1
    assert (what.stops_early, what.precision, what.budget_s) == (True, 0.5, 300)


def test_a_run_has_two_variants_and_one_control() -> None:
    variants = with_one_control(make_plan(definition(FIVE, 1))).variants
    assert [variant.control for variant in variants] == [0, 0, 1]
    assert len({variant.workload for variant in variants}) == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_is_judged_by_the_slower_variant(seed: int) -> None:
    found = measured(seed, {0.0: 1000.0, 0.05: 1050.0})
    assert (found.outcome, found.is_called, found.is_wrong) == (DIFFERS, True, False)
    assert found.difference == pytest.approx(0.05)
    assert (found.ended, found.seconds, found.control) == ("precision", 40.0, "equivalent")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_wrong_direction_is_seen(seed: int) -> None:
    found = measured(seed, {0.0: 1050.0, 0.05: 1000.0})
    assert (found.is_called, found.is_wrong) == (True, True)


def test_a_run_that_calls_nothing_has_no_wrong_direction() -> None:
    assert not replace(MISSED, difference=-0.01).is_wrong


@pytest.mark.parametrize(("chosen", "least"), [(FIVE, 38), (TWO, 36)])
def test_so_many_of_forty_runs_must_call_it(chosen: Any, least: int) -> None:
    called, missed = (replace(each, true=chosen.share) for each in (CALLED, MISSED))
    assert holds(chosen, [called] * least + [missed] * (40 - least))
    assert not holds(chosen, [called] * (least - 1) + [missed] * (41 - least))
    refused = Result(chosen.percent, 1, False, REFUSED)
    assert not holds(chosen, [called] * (least - 1) + [refused] * (41 - least))
    assert not holds(chosen, [called] * (least - 1) + [replace(refused, outcome=FAILED)] * (41 - least))
    assert not holds(chosen, [])


def test_a_run_without_a_block_of_both_workloads_has_not_called_it() -> None:
    found = judged(FIVE, 3, [], ENDED, 0.05)
    assert (found.outcome, found.is_called, found.seed) == (FAILED, False, 3)
    assert [*lines(FIVE, [found])][-1] == "failed: seed 3: no block has both workloads"


def test_one_wrong_direction_fails_the_bar() -> None:
    assert not holds(FIVE, [CALLED] * 39 + [replace(CALLED, difference=-0.05)])


@pytest.mark.parametrize(
    ("true", "as_planted"), [(0.0545, True), (0.0455, True), (0.056, False), (None, False)]
)
def test_the_difference_must_have_been_there(true: float | None, as_planted: bool) -> None:
    assert holds(FIVE, [replace(CALLED, true=true)] * 40) is as_planted


def test_the_table_counts_each_direction_and_all() -> None:
    other = replace(MISSED, seed=2, baseline_slower=True, difference=0.03, control=DIFFERS)
    text = [*lines(FIVE, [CALLED, other, Result(5, 3, False, REFUSED)])]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in (text[0], *text[2:])]
    baseline, variant, every = (dict(zip(cells[0], row, strict=True)) for row in cells[1:])
    assert (baseline["slower"], baseline["runs"], baseline["called differs"]) == ("baseline", "1", "0 (0 %)")
    assert (variant["slower"], variant["runs"], variant["called differs"]) == ("variant", "2", "1 (50 %)")
    assert (every["called differs"], every["inconclusive"], every["refused"]) == ("1 (33 %)", "1", "1")
    assert (every["estimated, median"], every["true, median"]) == ("4.0 %", "5.00 %")
    assert (every["half-width, median"], every["false alarms of controls"]) == ("1.00 %", "1")


def options(**fields: Any) -> Namespace:
    return Namespace(**{"quick": False, "planted": 5, "seed": 1, "runs": 40, "out": None, **fields})


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch, without_stack: Callable[..., None]) -> list[int]:
    """The seeds that are measured; each run calls what is planted."""
    seeds: list[int] = []
    without_stack(power, "stack_routes", "stack_machine")

    def call(chosen: power.Planted, seed: int, *machine: object) -> Result:
        seeds.append(seed)
        return replace(CALLED, planted=chosen.percent, seed=seed, true=chosen.share)

    monkeypatch.setattr(power, "_measured", call)
    return seeds


def test_a_campaign_goes_on_after_the_seeds_of_its_file(
    tmp_path: Path,
    measurements: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "runs.jsonl"
    for each in (
        replace(CALLED, seed=3),
        replace(CALLED, planted=2, seed=4),
        replace(CALLED, planted=25, seed=5),
    ):
        json_lines.append(out, asdict(each))
    monkeypatch.setattr(power, "_options", lambda: options(out=out, runs=6))
    assert power.main() == 1
    assert measurements == [1, 2, 4, 5, 6]
    assert capsys.readouterr().out.endswith("verdict: not judged: 6 runs of a campaign of 40\n")
    monkeypatch.setattr(power, "_options", lambda: options(out=out))
    assert power.main() == 0
    assert measurements[5:] == [*range(7, 41)]
    assert power.main() == 0
    assert len(measurements) == 39
    monkeypatch.setattr(power, "_options", lambda: options(out=out, planted=2, seed=4, runs=1))
    assert power.main() == 1
    assert len(measurements) == 39


def test_a_quick_run_is_judged_by_itself(measurements: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_options", lambda: options(quick=True, runs=1))
    assert power.main() == 0
    assert QUICK.budget_s < 60


def test_a_run_that_is_refused_for_its_time_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise preflight.too_short(80.0, 60.0)

    monkeypatch.setattr(power, "execute", refuse)
    machine = power.RunSettings("build", "power")
    found = power._measured(FIVE, 7, {}, machine)
    assert (found.outcome, found.seed, found.difference) == (REFUSED, 7, None)
    assert "at least 80 s" in found.ended


def test_a_run_whose_client_fails_is_kept_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ClientFailed("psycopg: the server closed the connection")

    monkeypatch.setattr(power, "execute", fail)
    found = power._measured(FIVE, 7, {}, power.RunSettings("build", "power"))
    assert (found.outcome, found.seed, found.is_called) == (FAILED, 7, False)
    assert found.ended == "psycopg: the server closed the connection"
