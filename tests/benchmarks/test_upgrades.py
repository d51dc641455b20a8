"""benchmarks.upgrades: its environments, and its tables on made-up runs."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import upgrades
from benchmarks.published import REFUSAL
from benchmarks.upgrades import LAYERS, UPGRADES
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from tests.benchmarks.made_up_runs import comparison, row, run

BEFORE, AFTER = UPGRADES["psycopg"]


def measured(**times: tuple[float, float]) -> dict[str, Any]:
    """A run of one workload: the times before and after the upgrade of each layer, µs."""
    rows, compared = [], []
    for layer, pair in times.items():
        both = [
            row(us, layer=layer, environment=side.name, route=side.name)
            for us, side in zip(pair, (BEFORE, AFTER), strict=True)
        ]
        rows += both
        compared.append({**comparison(both[1], both[0]), "outcome": "differs"})
    return run(*rows, comparisons=compared)


def test_a_row_has_both_times_and_the_runs_own_ratio() -> None:
    (first, *_others) = upgrades._rows(measured(psycopg=(200.0, 150.0)), (BEFORE, AFTER))
    assert first == [
        "work", "psycopg", "200.0 (198.0 to 202.0)", "150.0 (148.5 to 151.5)", "0.750 (0.743 to 0.758)", "differs",
    ]  # fmt: skip


def test_a_layer_that_one_side_lacks_is_not_measured() -> None:
    rows = list(upgrades._rows(measured(psycopg=(200.0, 150.0)), (BEFORE, AFTER)))
    assert [cells[2] for cells in rows] == ["200.0 (198.0 to 202.0)", "not measured", "not measured"]


def test_no_layer_of_a_refused_run_is_measured() -> None:
    rows = list(upgrades._rows({**run(), REFUSAL: "time budget: ..."}, (BEFORE, AFTER)))
    assert [cells[:3] for cells in rows] == [[REFUSAL, layer, "not measured"] for layer in LAYERS]


def test_the_bar_needs_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(**dict.fromkeys(LAYERS, (200.0, 150.0)))
    for made, code in (found, 1), (_as_both_upgrades(found), 0):
        file = tmp_path / "run.json"
        file.write_text(json.dumps({**made, "run": {"environment": {}}}))
        words = [word for name in upgrades.WANTED for word in (f"--{name}", str(file))]
        monkeypatch.setattr(sys, "argv", ["upgrades", *words])
        assert upgrades.main() == code
        said = capsys.readouterr().out
        assert said.count("0.750 (0.743 to 0.758)") == len(LAYERS) * len(upgrades.BENCHMARKS) * (2 - code)
        assert ("does NOT hold" in said) == bool(code)


def _as_both_upgrades(found: dict[str, Any]) -> dict[str, Any]:
    """The same figures under the names of the other upgrade too."""
    text = json.dumps(found)
    for side, other in zip((BEFORE, AFTER), UPGRADES["django"], strict=True):
        text = text.replace(side.name, other.name)
    return {name: found[name] + json.loads(text)[name] for name in ("variants", "comparisons")}


@pytest.mark.parametrize("upgrade", UPGRADES)
def test_the_sides_of_an_upgrade_differ_in_one_package(upgrade: str) -> None:
    before, after = map(upgrades._packages, UPGRADES[upgrade])
    differing = set(before) ^ set(after)
    assert len(differing) == 2
    assert all(word.lower().startswith(upgrade) for word in differing)


def test_the_budget_is_enough_where_the_site_starts_slowly() -> None:
    """The two workloads of n-plus-one, whose clients start the site, are the most of all runs."""
    works = tuple(
        WorkloadDefinition(name, "", orm="books.all", start_s=3.0) for name in ("one-by-one", "prefetched")
    )
    sides = tuple(side.name for side in UPGRADES["django"])
    plan = make_plan(Definition("n-plus-one", works, LAYERS, ("socket",), environments=sides))
    assert run_time.least_s(plan) < upgrades.BUDGETS_S["n-plus-one"] / 1.5


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3 11\n")
    old.chmod(0o755)
    with pytest.raises(SystemExit, match=r"Django 6\.1 needs Python 3\.12"):
        upgrades._environments(Namespace(python=old))
