"""The campaign of predicted and reached precision: its cases, its bar, and that it resumes."""

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import json_lines, predicted_precision
from benchmarks.predicted_precision import LOADS, TARGETS, Case, Reached, holds, lines
from pgperf.core.records import ENDING, PREDICTED, Ending, Prediction

RUN = Reached(1, 0, 5.0, 0.03, 60.0, 0.03, 58.0)


def test_nine_seeds_in_a_row_have_each_load_with_each_target() -> None:
    cases = [Case.of(seed) for seed in range(1, 10)]
    assert {(case.rivals, case.target) for case in cases} == {(n, t) for n in LOADS for t in TARGETS}
    assert cases == [Case.of(seed) for seed in range(1, 10)]


@pytest.mark.parametrize(
    ("predicted", "reached", "inside"),
    [(0.03, 0.03, True), (0.03, 0.0202, True), (0.03, 0.0199, False), (0.03, 0.0451, False), (None, 0.03, False),
     (0.03, None, False)],
)  # fmt: skip
def test_a_run_is_inside_within_the_bar_only(
    predicted: float | None, reached: float | None, inside: bool
) -> None:
    assert replace(RUN, predicted=predicted, reached=reached).is_inside == inside


def test_nine_of_ten_runs_hold_the_bar() -> None:
    outside = replace(RUN, reached=None)
    assert holds([RUN] * 27 + [outside] * 3, 0.9)
    assert not holds([RUN] * 26 + [outside] * 4, 0.9)
    assert not holds([], 0.9)


def test_a_run_is_read_from_its_json() -> None:
    prediction = Prediction(precision=0.03, seconds=60.0, blocks=7, rounds=5, target=None, target_s=None)
    ending = Ending(reason="budget", blocks=7, seconds=58.0, budget_s=60.0, precision=0.04, target=None)
    stored = {PREDICTED: prediction.to_json(), ENDING: ending.to_json()}
    run = {"status": "done", "error": "", "environment": stored}
    comparisons = [{"pairs": 27, "low": 0.5, "high": 2.0}, {"pairs": 28, "low": None, "high": None}]
    look = {"look_us": [9.0, 11.0], "look_step_s": 0.1}
    found = Reached.of(Case(4, 2, 0.0), {"run": run, "comparisons": comparisons}, look)
    widths = (pytest.approx(math.log(2)),)
    assert found == Reached(4, 2, 0.0, 0.03, 60.0, 0.04, 58.0, 7, 5, 7, 4.0, [9.0, 11.0], 0.1, widths)
    assert Reached.of(Case(4, 2, 0.0), {"run": run, "comparisons": []}).rounds is None
    assert Reached.of(Case(4, 2, 0.0), {"run": {**run, "environment": {}}}).ratio == math.inf


def test_a_run_that_was_refused_for_its_time_is_outside() -> None:
    error = "time budget: 6 blocks take at least 133 s, more than the budget of 60 s"
    refused = {"status": "failed", "error": error, "environment": None}
    assert not Reached.of(Case(7, 6, 0.0), {"run": refused}).is_inside
    with pytest.raises(SystemExit, match="verdict: cannot measure: the server is gone"):
        Reached.of(Case(7, 6, 0.0), {"run": {**refused, "error": "the server is gone"}})


def test_a_line_without_blocks_and_scatter_is_read() -> None:
    line = {"seed": 1, "rivals": 0, "target": 2.0, "predicted": 0.08, "predicted_s": 55.7, "reached": 0.04,
            "seconds": 56.9}  # fmt: skip
    assert (Reached(**line).ratio, Reached(**line).rounds) == (0.5, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("runs", "code", "verdict"),
    [(29, 1, "not judged: 29 runs of a campaign of 30"), (30, 0, "the bar holds")],
)
def test_fewer_runs_than_a_campaign_are_not_judged(
    runs: int,
    code: int,
    verdict: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "runs.jsonl"
    for seed in range(1, 31):
        json_lines.append(out, asdict(replace(RUN, seed=seed)))
    asked = Namespace(quick=False, runs=runs, seed=1, out=out)
    monkeypatch.setattr(predicted_precision, "_options", lambda: asked)
    assert predicted_precision.main() == code
    assert capsys.readouterr().out.endswith(f"verdict: {verdict}\n")


@pytest.mark.parametrize(("quick", "measured"), [(False, [2]), (True, [1, 2, 3])])
def test_seeds_of_the_file_are_not_run_again_but_by_a_quick_run(
    quick: bool,
    measured: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
) -> None:
    out, seeds = tmp_path / "runs.jsonl", []
    for seed in (1, 3):
        json_lines.append(out, asdict(replace(RUN, seed=seed)))

    def run(case: Case, *machine: object) -> Reached:
        seeds.append(case.seed)
        return replace(RUN, seed=case.seed)

    without_stack(predicted_precision, "manage")
    monkeypatch.setattr(predicted_precision, "_measured", run)
    asked = Namespace(quick=quick, runs=3, seed=1, out=out)
    monkeypatch.setattr(predicted_precision, "_options", lambda: asked)
    assert predicted_precision.main() == (0 if quick else 1)  # three runs are no campaign
    assert seeds == measured
    assert len(json_lines.read(out)) == (2 if quick else 3)


def test_the_report_has_a_row_for_each_run_and_a_line_for_each_load() -> None:
    text = [*lines([RUN, replace(RUN, seed=2, rivals=2, target=0.0, reached=None)])]
    assert text[2] == "| 1 | 0 | ±5 % | ±3.0 % in 60 s | ±3.0 % in 58 s | 1.00 |"
    assert text[3] == "| 2 | 2 | none | ±3.0 % in 60 s | unknown | inf |"
    assert text[4:] == [
        "0 rivals: 1 of 1 within 0.67 to 1.5, median ratio 1.00",
        "2 rivals: 0 of 1 within 0.67 to 1.5, median ratio inf",
    ]
