"""benchmarks.driver_suite_peer: the cells, the table and the verdict."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import driver_suite_peer as peer
from benchmarks.driver_cells import MODES, WORKS, Cell, cells, ratio
from benchmarks.peer_harness import Slot
from pgperf.analysis.paired_statistics import Estimate
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition


def estimate(centre: float) -> Estimate:
    return ratio([centre * number for number in range(10, 17)], [float(number) for number in range(10, 17)])


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("driver", MODES)
def test_our_side_runs_on_the_harness_s_loop(
    driver: str, loop: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Definition] = []

    def connected(stack: object, definition: Definition, name: str) -> Any:
        asked.append(definition)
        raise LookupError

    monkeypatch.setattr(peer, "connected", connected)
    options = Namespace(loop=loop, seconds=1, warm_up=1, repeats=2)
    with pytest.raises(LookupError):
        peer._measured(None, None, Cell("arrays", driver), options)  # type: ignore[arg-type]
    (layer,) = asked[0].layers
    suffix = "_uvloop" if loop == "uvloop" and "async" in driver else ""
    assert layer == driver + suffix
    assert (LAYERS[layer].event_loop or "asyncio") == (loop if "async" in driver else "asyncio")


@pytest.mark.parametrize("query", WORKS)
def test_only_the_slots_of_copy_and_batch_are_longer(query: str) -> None:
    assert peer.slot_s(Cell(query, "psycopg"), 5) == (15 if query in ("copyfrom", "batch") else 5)


def test_the_table_has_a_row_for_each_query_and_marks_what_is_outside() -> None:
    found = {cell: estimate(1.0) for cell in cells(None, None)} | {Cell("arrays", "asyncpg"): estimate(0.5)}
    lines = peer.table(found).splitlines()
    assert lines[0] == f"| pgperf over suite | {' | '.join(MODES)} |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {query}" for query in WORKS]
    assert len({line.count("|") for line in lines}) == 1
    assert [line for line in lines if "**" in line] == [
        "| arrays | 1.00 (1.000 to 1.000) | 1.00 (1.000 to 1.000) | 1.00 (1.000 to 1.000)"
        " | **0.50 (0.500 to 0.500)** |"
    ]


def test_a_cell_that_was_not_measured_is_a_dash() -> None:
    found = {Cell("arrays", "asyncpg"): estimate(1.0), Cell("batch", "psycopg"): estimate(1.0)}
    assert peer.table(found).splitlines()[2] == "| arrays | 1.00 (1.000 to 1.000) | – |"


@pytest.mark.parametrize(
    ("centre", "repeats", "words"),
    [
        (1.0, 6, "the bar holds"),
        (0.91, 6, "the bar holds"),
        (0.89, 6, "does NOT hold"),
        (1.11, 7, "does NOT hold"),
        (1.0, 5, "none with 5 repeats"),
    ],
)
def test_the_verdict(centre: float, repeats: int, words: str) -> None:
    said = peer.verdict({Cell("arrays", "asyncpg"): estimate(centre)}, [], repeats)
    assert words in said
    assert ("arrays through asyncpg" in said) == (words == "does NOT hold")


def test_a_line_names_rows_that_differ() -> None:
    same, other = [Slot(10.0, 613.0)] * 6, [Slot(10.0, 612.0)] * 6
    cell = Cell("pg_type", "psycopg2")
    assert "differ" not in peer.line(cell, same, same, estimate(1.0))
    assert "rows per query differ: ['612.0', '613.0']" in peer.line(cell, same, other, estimate(1.0))


@pytest.mark.parametrize(("rows", "code"), [(613.0, 0), (612.0, 1)])
def test_other_rows_fail_a_quick_run_too(
    rows: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = [{"per_s": 10.0, "rows": 613}] * 2, [{"per_s": 10.0, "rows": rows}] * 2
    kept = {"query": "pg_type", "driver": "psycopg2", "ours": ours, "theirs": theirs}
    options = {"query": None, "driver": None, "harness": "", "loop": "uvloop", "seconds": 1, "warm_up": 1}
    monkeypatch.setattr(peer, "_options", lambda: Namespace(out=None, repeats=2, **options))
    monkeypatch.setattr(peer.json_lines, "resumed", lambda *words: iter([kept]))
    assert peer.main() == code
    said = capsys.readouterr().out
    assert ("NOT hold: other rows per query: pg_type through psycopg2" in said) == bool(code)
