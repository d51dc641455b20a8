"""benchmarks.equal_environments: the compared pairs, and that a campaign resumes."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import equal_environments, json_lines
from benchmarks.equal_environments import LAYERS, ROUTES, definition, is_of_environments
from pgperf.analysis.outcome import INCONCLUSIVE
from pgperf.analysis.summary import summarise
from pgperf.core.records import VariantBlock
from pgperf.runner.plan import make_plan
from tests.core.builders import slice_record


def options(**fields: Any) -> Namespace:
    usual = {"quick": False, "blocks": 10, "rounds": 3, "comparisons": 18, "seed": 1, "out": None}
    return Namespace(**{**usual, **fields})


def test_each_layer_and_route_is_compared_with_itself_in_the_other_environment() -> None:
    plan = make_plan(definition(options(blocks=6, rounds=2), 1))
    blocks = [
        VariantBlock(
            variant=variant, cohort=0, block=number, slices=tuple(slice_record(round=at) for at in range(2))
        )
        for number in range(6)
        for variant in plan.variants
    ]
    compared = summarise(plan.definition, plan.variants, blocks, "psycopg")["comparisons"]
    pairs = [each for each in compared if is_of_environments(each)]
    assert {(each.variant.layer, each.variant.route) for each in pairs} == {
        (layer, route) for layer in LAYERS for route in ROUTES
    }
    assert len(pairs) == 6
    assert all(
        replace(each.variant, environment=each.baseline.environment) == each.baseline for each in pairs
    )


def test_seeds_of_the_file_are_not_run_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    without_stack: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, seeds = tmp_path / "runs.jsonl", []

    def measured(options: Namespace, units: list[json_lines.Unit]) -> json_lines.Measuring:
        for unit in units:
            seeds.append(unit["seed"])
            shown = {
                "ratio": 1.0,
                "low": 0.99,
                "high": 1.01,
                "outcome": INCONCLUSIVE,
                "seed": unit["seed"],
                "layer": "psycopg",
            }
            yield {"refused": "", "ended": "", "seconds": None, "comparisons": [shown] * 6}

    monkeypatch.setattr(equal_environments, "_measured", measured)
    for asked in (options(out=out, comparisons=12), options(out=out), options(out=out, blocks=6)):
        monkeypatch.setattr(equal_environments, "_options", lambda asked=asked: asked)
        equal_environments.main()
    assert seeds == [1, 2, 3, 1, 2, 3]
    assert [line["blocks"] for line in json_lines.read(out)] == [10, 10, 10, 6, 6, 6]
    assert "seeds 1 to 3\n" in capsys.readouterr().out
