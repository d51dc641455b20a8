"""benchmarks.published_d: the tables of seven queries through drivers, on made-up runs."""

import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks import published_d
from benchmarks.published import REFUSAL
from benchmarks.published_d import DRIVERS, MEASURES
from benchmarks.published_rules import QUERIES, drivers
from tests.benchmarks.made_up_runs import suite_run
from tests.benchmarks.test_published_rules import published_times, with_ratios


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.title)
def test_each_published_geometric_mean_is_that_of_its_line(measure: published_d.Measure) -> None:
    for driver in DRIVERS:
        mean, *values = measure.published[driver]
        assert len(values) == len(QUERIES)
        assert mean == pytest.approx(math.exp(sum(map(math.log, values)) / len(values)), rel=2e-3)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.title)
def test_a_table_has_three_lines_for_each_driver(measure: published_d.Measure) -> None:
    run, fair = suite_run(published_times()), suite_run(published_times(), workers=1)
    lines = published_d.table(measure, run, fair).splitlines()
    assert len(lines) == 2 + 3 * len(DRIVERS)
    assert {each.count("|") for each in lines} == {len(QUERIES) + 3}
    assert lines[2].startswith("| psycopg2, published | ")


def test_the_figures_are_those_of_the_runs() -> None:
    times = published_times()
    text = published_d.table(MEASURES[2], suite_run(times), suite_run(times, workers=1))
    assert "| psycopg2, their conditions | 24.3" in text
    assert "| 40.550 (40.149 to 40.956) |" in text
    per_s = published_d.table(MEASURES[0], suite_run(times), suite_run(times, workers=1))
    assert "| 246.6 (244.2 to 249.1) |" in per_s  # 10 threads
    assert "| 24.7 (24.4 to 24.9) |" in per_s
    assert "| 2,466 (2,442 to 2,491) |" in published_d.table(MEASURES[1], suite_run(times), suite_run(times))


def test_both_conditions_name_the_event_loop_by_its_layer() -> None:
    times = published_times()
    fair = {("psycopg_async" if name == "psycopg_async_uvloop" else name): own for name, own in times.items()}
    lines = published_d.table(MEASURES[0], suite_run(times), suite_run(fair, workers=1)).splitlines()
    assert [line.split(",")[0] for line in lines[-3:]] == [
        "| psycopg3-async", "| psycopg_async_uvloop", "| psycopg_async"
    ]  # fmt: skip
    assert not any("not measured" in line for line in lines)


def test_a_query_that_was_not_measured_is_named_and_leaves_no_mean() -> None:
    times = published_times()
    del times["psycopg"]["batch"]
    run = suite_run(times)
    assert published_d.missing(run) == ["batch through psycopg"]
    line = published_d.table(MEASURES[0], run, run).splitlines()[6]
    assert line.startswith("| psycopg, their conditions | not measured | ")
    assert line.count("not measured") == 2


def test_answers_that_depend_on_the_conditions_stand_side_by_side() -> None:
    published = drivers(suite_run(published_times()), threads=True)
    fair = drivers(suite_run(with_ratios(batch=0.5)), threads=False)
    lines = published_d.compared(published, fair).splitlines()
    assert [line.split(" | ")[1:3] for line in lines[2:]] == [
        ["confirmed", "confirmed"], ["confirmed", "qualified"], ["confirmed", "confirmed"], ["confirmed", "–"],
    ]  # fmt: skip


def test_kept_runs_give_answers_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(suite_run(published_times())))
    files = [word for name in published_d.WANTED for word in (f"--{name}", str(path))]
    monkeypatch.setattr(sys, "argv", ["x", *files])
    assert published_d.main() == 0
    assert "the bar holds" in capsys.readouterr().out
    refused = tmp_path / "refused.json"
    refused.write_text(json.dumps({"variants": [], "comparisons": [], REFUSAL: "time budget: too short"}))
    monkeypatch.setattr(sys, "argv", ["x", *files[:2], "--fair", str(refused), *files[4:]])
    assert published_d.main() == 1
    assert "not measured: time budget: too short" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["x", *files])
    path.write_text(json.dumps(suite_run(published_times(), width=3.0)))
    assert published_d.main() == 1
    assert "repeat the unknown measurements" in capsys.readouterr().out
