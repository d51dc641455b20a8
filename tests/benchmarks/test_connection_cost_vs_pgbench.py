"""benchmarks.connection_cost_vs_pgbench: its slices, and the processes behind its intervals."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import connection_cost_vs_pgbench as script
from benchmarks import json_lines
from benchmarks.connection_cost_vs_pgbench import CASES, Slot
from pgperf.analysis.paired_statistics import Estimate
from pgperf.clients.pgbench.report import Summary
from pgperf.runner.plan import make_plan


def groups(case: str) -> list[Any]:
    """Of the case's variants, without clients."""
    variants = make_plan(CASES[case].definition).variants
    return [SimpleNamespace(variant=variant) for variant in variants if not variant.control]


def printed(group: object, request: object) -> Slot:
    return Slot(50.0, 20.0, 9.0)


ALONE = {script.PLAIN: printed, script.PROCESSES: printed}


@pytest.fixture(autouse=True)
def _without_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_slot", lambda group, request: Slot(100.0, 10.0, 0.0))


def test_every_pair_has_a_slice_of_each_layer_in_each_round() -> None:
    found = script._measure(groups("kept"), lambda group: "", 3, 1, ALONE)
    assert set(found) == {(mode, clients) for mode in ("simple", "prepared") for clients in (1, 8)}
    assert {len(found[pair][layer]) for pair in found for layer in script.LAYERS} == {3}


def test_pgbench_also_runs_as_many_processes_where_several_clients_keep_their_connections() -> None:
    found = script._measure(groups("kept"), lambda group: "", 3, 1, ALONE)
    assert {pair: len(by_side.get(script.PROCESSES, [])) for pair, by_side in found.items()} == {
        (mode, clients): 3 * (clients > 1) for mode in ("simple", "prepared") for clients in (1, 8)
    }


def test_pgbench_by_itself_has_its_turn_where_clients_connect() -> None:
    found = script._measure(groups("connect"), lambda group: "", 3, 1, ALONE)
    (by_side,) = found.values()
    assert {side: [slot.per_s for slot in slots] for side, slots in by_side.items()} == {
        "libpq": [100.0] * 3, "pgbench": [100.0] * 3, "pgbench -C": [50.0] * 3,
    }  # fmt: skip


def test_backends_that_have_not_left_end_the_script() -> None:
    with pytest.raises(SystemExit, match=r"cannot measure: .*: a backend is still there"):
        script._measure(groups("connect"), lambda group: "a backend is still there", 1, 1, ALONE)


def test_each_case_is_measured_with_several_sets_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    @contextmanager
    def departing(stack: object, definition: object, name: str) -> Iterator[Any]:
        started.append(name)
        yield groups("kept"), lambda group: ""

    monkeypatch.setattr(script, "departing", departing)
    monkeypatch.setattr(script, "_by_processes", lambda env, group, request: printed(group, request))
    monkeypatch.setattr(script, "Stack", lambda *words, **options: nullcontext(SimpleNamespace(env={})))
    units = [{"case": "kept", "set": number, "rounds": 3, "slot_s": 1} for number in range(8)]
    lines = [*script._all(units)]
    assert started == [f"kept-{number}" for number in range(8)]
    for (_, clients), by_side in script.measured_of(lines).items():
        sides = (*script.LAYERS, script.PROCESSES) if clients > 1 else script.LAYERS
        assert {side: [*map(len, slots)] for side, slots in by_side.items()} == {
            side: [3] * 8 for side in sides
        }


def test_more_sets_of_processes_are_added_to_those_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def sets(units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
        for unit in units:
            asked.append(unit["set"])
            slots = [Slot(100.0 + unit["set"], 10.0, 5.0)]
            yield script.line_of({("simple", 20): dict.fromkeys((*script.LAYERS, script.PLAIN), slots)})

    monkeypatch.setattr(script, "_all", sets)
    options = Namespace(only=["connect"], processes=6, rounds=3, slot_s=4, out=tmp_path / "sets.jsonl")
    monkeypatch.setattr(script, "_options", lambda: options)
    assert script.main() == 0
    options.processes = 8
    assert script.main() == 0
    assert asked == [*range(8)]
    assert "with each of 8 sets of processes" in capsys.readouterr().out


def test_pgbenchs_own_figures_are_those_that_it_prints() -> None:
    summary = Summary(63, 0, tps=200.0, server_version="18.6", connection_ms=57.59)
    assert script._as_printed(summary, 20) == Slot(200.0, 100_000.0, 57_590.0)
    with pytest.raises(SystemExit, match="no average connection time"):
        script._as_printed(replace(summary, connection_ms=None), 20)


def test_the_bars() -> None:
    bars = {name: (case.low, case.high, case.half) for name, case in CASES.items()}
    assert bars == {"connect": (0.95, 1.05, 0.03), "kept": (0.98, 1.05, None)}


#: What the ratios of eight sets of processes vary by.
STEADY, VARIED = (
    (1.0, 1.001, 0.999, 1.002, 0.998, 1.001, 0.999, 1.0),
    (1.0, 1.1, 0.9, 1.15, 0.85, 1.1, 0.9, 1.0),
)


def slots(ratio: float, scatter: Sequence[float] = (1.0,) * 8) -> list[list[Slot]]:
    """Of sets of processes, each figure so many times that of `Slot(100, 10, 5)`."""
    return [[Slot(100 * ratio * each, 10 * ratio * each, 5 * ratio * each)] for each in scatter]


@pytest.mark.parametrize(
    ("case", "ratio", "scatter", "holds"),
    [
        ("connect", 0.96, STEADY, True),
        ("connect", 1.04, STEADY, True),
        ("connect", 0.94, STEADY, False),
        ("connect", 1.06, STEADY, False),
        ("connect", 1.0, VARIED, False),  # within the bar, and not known well enough
        ("connect", 1.0, STEADY[:1], False),  # too few for an interval
        ("kept", 1.0, VARIED, True),
        ("kept", 0.97, STEADY, False),
    ],
)
def test_a_ratio_holds_within_the_bar_if_it_is_known_well_enough(
    capsys: pytest.CaptureFixture[str], case: str, ratio: float, scatter: tuple[float, ...], holds: bool
) -> None:
    sides = [[[slot.per_s for slot in own] for own in side] for side in (slots(ratio, scatter), slots(1.0))]
    assert script._row("operations/s", CASES[case], sides[0], sides[1][: len(scatter)]) is holds
    assert capsys.readouterr().out.endswith("\n" if holds else "  outside\n")


def test_half_of_an_interval_is_relative_to_its_centre() -> None:
    assert script.half_width(Estimate(2.0, 1.9, 2.2, 8, 0.95)) == pytest.approx(0.075)
    assert script.half_width(Estimate(2.0, None, None, 2, 0.0)) is None


@pytest.mark.parametrize(("own", "holds"), [(1.0, True), (1.2, False)])
def test_the_table_holds_pgbenchs_own_figures_to_the_same_bar(
    capsys: pytest.CaptureFixture[str], own: float, holds: bool
) -> None:
    measured = {("simple", 20): {"libpq": slots(1.0), "pgbench": slots(1.0), script.PLAIN: slots(own)}}
    assert script._table("connect", CASES["connect"], measured) is holds
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "connect: simple, 20 clients, 1 slices of each layer with each of 8 sets of processes"
    assert [row.strip().partition("  ")[0] for row in rows] == [
        "operations/s", "µs, connection with its statement", "µs, connect and close",
        "operations/s, as pgbench prints", "µs, connect and close, printed",
    ]  # fmt: skip
    assert [row.endswith("outside") for row in rows] == [False] * 3 + [not holds] * 2


def test_kept_connections_are_compared_by_throughput_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert script._table(
        "kept", CASES["kept"], {("prepared", 1): {"libpq": slots(1.0), "pgbench": slots(1.0)}}
    )
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("of_threads", [1.0, 1.2])
@pytest.mark.parametrize("of_processes", [1.0, 1.2])
def test_several_kept_connections_are_held_to_pgbenchs_threads_and_processes(
    capsys: pytest.CaptureFixture[str], of_threads: float, of_processes: float
) -> None:
    by_side = {"libpq": slots(1.0), "pgbench": slots(of_threads), script.PROCESSES: slots(of_processes)}
    holds = of_threads == of_processes == 1.0
    assert script._table("kept", CASES["kept"], {("prepared", 8): by_side}) is holds
    _, threads, processes = capsys.readouterr().out.splitlines()
    assert processes.strip().startswith("operations/s, as many processes")
    assert threads.endswith("outside") is (of_threads > 1)
    assert processes.endswith("outside") is (of_processes > 1)
