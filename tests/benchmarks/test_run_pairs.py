"""benchmarks.run_pairs: the steps of a run, their differences, the bar, and that it resumes."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import json_lines, run_pairs
from benchmarks.run_pairs import Pair, Ran, Step, holds, lines, order, steps_of
from pgperf.analysis.summary import summarise
from pgperf.core.records import Definition, Variant, VariantBlock, WorkloadDefinition
from pgperf.runner import preflight
from pgperf.runner.plan import make_plan
from tests.core.builders import slice_record

LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
US = dict(zip(LAYERS, (20.0, 23.0, 28.0, 34.0, 140.0), strict=True))
RUNG = "django_orm · socket"


def run_json(blocks: int = 6, **fields: Any) -> dict[str, Any]:
    """What `pgperf run --json` says of a run in which each block and round makes all layers slower."""
    work = WorkloadDefinition("select", "SELECT 1")
    plan = make_plan(Definition("orm-overhead", (work,), LAYERS, ("socket", "tcp"), blocks=blocks))

    def block(variant: Variant, number: int) -> VariantBlock:
        us = US[variant.layer] * (1 + number / 100)
        slices = tuple(slice_record(round=at, us_per_op=us + at) for at in range(3))
        return VariantBlock(variant=variant, cohort=0, block=number, slices=slices)

    measured = [block(variant, number) for number in range(blocks) for variant in plan.variants]
    found = summarise(plan.definition, plan.variants, measured, "psycopg")
    times = {"requested": "2026-01-01T12:00:00+00:00", "finished": "2026-01-01T12:01:20+00:00"}
    run = {"status": "done", "error": "", **times, **fields}
    return {"run": run, "levels": found["levels"], "ladders": found["ladders"]}


def ran(us: float, scatter: float = 1.0) -> Ran:
    values = [us + scatter * (at - 3) / 3 for at in range(7)]
    return Ran(80.0, steps={RUNG: Step(us, values)})


def pair(quiet_us: float, loaded_us: float, seed: int = 1) -> Pair:
    return Pair(seed, ran(quiet_us), ran(loaded_us))


ALIKE, APART = pair(100.0, 100.2), pair(100.0, 103.0)
REFUSED = replace(ALIKE, seed=7, loaded=Ran(12.0, refused="budget_s: too short"))
FAILED = replace(ALIKE, seed=8, loaded=Ran(12.0, failed="the server left"))


def test_a_run_that_may_stop_early_has_wider_intervals() -> None:
    step = ALIKE.loaded.steps[RUNG]
    wider = replace(ALIKE, loaded=Ran(80.0, steps={RUNG: replace(step, widening=1.08)}))
    assert wider.difference(RUNG).half_width() == pytest.approx(
        1.08 * (ALIKE.difference(RUNG).half_width() or 0)
    )


def test_every_rung_of_every_ladder_has_a_step() -> None:
    steps = steps_of(run_json())
    assert set(steps) == {f"{layer} · {route}" for layer in LAYERS for route in ("socket", "tcp")}
    assert {len(step.by_block) for step in steps.values()} == {6}


@pytest.mark.parametrize(
    ("layer", "step_us"),
    [("libpq", 20.0), ("psycopg2", 3.0), ("psycopg", 8.0), ("django_cursor", 6.0), ("django_orm", 106.0)],
)
def test_a_step_is_what_a_rung_adds_to_the_one_below(layer: str, step_us: float) -> None:
    step = steps_of(run_json())[f"{layer} · socket"]
    own = 1.0 if layer == "libpq" else 0.0  # the middle round
    assert step.by_block == pytest.approx(
        [step_us * (1 + number / 100) + own for number in range(6)], abs=0.02
    )
    assert step.us == pytest.approx(step_us * 1.025 + own, rel=0.02)


def test_the_difference_is_that_of_the_shown_steps_with_an_interval() -> None:
    found = APART.difference(RUNG)
    assert found.centre == pytest.approx(3.0)
    assert found.low is not None
    assert found.high is not None
    assert 2 < found.low < 3 < found.high < 4
    assert ALIKE.agrees(RUNG)
    assert not APART.agrees(RUNG)
    assert APART.agrees(RUNG, tolerance=0.5)


@pytest.mark.parametrize("side", ["quiet", "loaded"])
def test_a_pair_without_both_runs_or_without_an_interval_does_not_agree(side: str) -> None:
    assert not replace(ALIKE, **{side: REFUSED.loaded}).agrees(RUNG)
    one_block = Ran(80.0, steps={RUNG: Step(100.0, [100.0])})
    assert not replace(ALIKE, **{side: one_block}).agrees(RUNG)


def test_so_many_pairs_must_agree() -> None:
    assert holds([ALIKE] * 17 + [APART] * 3)
    assert not holds([ALIKE] * 16 + [APART] * 4)
    assert not holds([ALIKE] * 16 + [APART] * 3 + [REFUSED])
    assert not holds([ALIKE] * 16 + [APART] * 3 + [FAILED])
    assert not holds([])
    assert not holds([replace(REFUSED, quiet=REFUSED.loaded)])


def test_the_table_has_the_scatter_of_each_side() -> None:
    text = [*lines([pair(100.0, 110.0), pair(102.0, 110.0, seed=2), REFUSED, FAILED])]
    cells = [cell.strip() for cell in text[2].strip("|").split("|")]
    assert cells[:2] == [RUNG, "0 of 4"]
    assert cells[2].startswith("+9.00 µs (± ")
    assert cells[3:] == ["100.50 µs", "1.00 µs (1.0 %)", "110.00 µs", "0.00 µs (0.0 %)"]
    assert text[3:] == [
        "refused: 1 of 8 runs", "  seed 7: budget_s: too short", "failed: 1 of 8 runs", "  seed 8: the server left",
    ]  # fmt: skip


def test_two_seeds_that_follow_each_other_have_both_orders() -> None:
    for seed in range(1, 21, 2):
        assert order(seed) == order(seed + 1)[::-1]
    assert 3 <= sum(order(seed)[0] == "quiet" for seed in range(1, 21, 2)) <= 7


def test_only_a_run_without_time_is_refused_and_others_fail() -> None:
    assert Ran.of(run_json()).seconds == 80.0
    refusal = str(preflight.too_short(80.0, 60.0))
    assert Ran.of(run_json(status="failed", error=refusal)) == Ran(80.0, refusal)
    failed = Ran.of(run_json(status="failed", error="the server left"))
    assert failed == Ran(80.0, failed="the server left")


def test_a_pair_is_the_same_from_its_line() -> None:
    for kept in (REFUSED, FAILED):
        line = {"seed": kept.seed, "quiet": asdict(kept.quiet), "loaded": asdict(kept.loaded)}
        assert Pair.from_json(line) == kept


def options(**fields: Any) -> Namespace:
    return Namespace(**{"quick": False, "pairs": 20, "rivals": 4, "seed": 1, "out": None, **fields})


def test_a_campaign_resumes_by_seed_and_rivals(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, loads = tmp_path / "pairs.jsonl", []

    def run(env: object, words: tuple[str, ...], rivals: int) -> Ran:
        loads.append(rivals)
        return ran(100.0)

    without_stack(run_pairs, "manage")
    monkeypatch.setattr(run_pairs, "_ran", run)
    for asked, code, runs in (
        (options(out=out, pairs=3), 1, 6),
        (options(out=out, rivals=2, pairs=1), 1, 8),
        (options(out=out, quick=True, pairs=1), 0, 10),
        (options(out=out), 0, 44),
        (options(out=out), 0, 44),
    ):
        monkeypatch.setattr(run_pairs, "_options", lambda asked=asked: asked)
        assert run_pairs.main() == code
        assert len(loads) == runs
    assert {frozenset(loads[at : at + 2]) for at in range(0, 6, 2)} == {frozenset({0, 4})}
    assert [line["first"] for line in json_lines.read(out)][:3] == [order(seed)[0] for seed in (1, 2, 3)]
    said = capsys.readouterr().out
    assert "verdict: not judged: 3 pairs of a campaign of 20\n" in said
    assert said.endswith("refused: 0 of 40 runs\nfailed: 0 of 40 runs\nverdict: the bar holds\n")
