"""Scripts whose unit is a cell, a case or a search: they measure only what their file lacks."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import (
    connection_cost_vs_pgbench,
    driver_loop,
    driver_suite_peer,
    highest_rate,
    http_vs_ab,
    json_lines,
)
from benchmarks.driver_cells import MODES
from pgperf.analysis.rate_search import Outcome, RateSearch

#: Figures of slots, none twice.
FIGURES = count(1000)
Arranged = tuple[ModuleType, Namespace, list[Any]]


def figures(number: int) -> list[float]:
    return [next(FIGURES) / 10 for _ in range(number)]


@pytest.fixture
def arranged(
    monkeypatch: pytest.MonkeyPatch, without_stack: Callable[..., None], tmp_path: Path
) -> Callable[[str], Arranged]:
    """A script by name, options for it, and what it measures from now on."""

    def arrange(name: str) -> Arranged:
        script, options, replaced, names = ARRANGED[name](tmp_path, done := [])
        without_stack(script, *names)
        for function, by in replaced.items():
            monkeypatch.setattr(script, function, by)
        asked = Namespace(quick=False, out=tmp_path / "found.jsonl", **options)
        monkeypatch.setattr(script, "_options", lambda: asked)
        return script, asked, done

    return arrange


def of_the_suite(folder: Path, done: list[Any]) -> tuple[Any, ...]:
    (folder / "_python").mkdir()
    text = "loop = asyncio.get_event_loop() # uvloop.EventLoopPolicy()"
    (folder / "_python" / "pgbench_python.py").write_text(text)

    def measure(stack: object, harness: object, cell: Any, options: Namespace) -> Any:
        done.append(cell)
        return tuple([driver_suite_peer.Slot(each, 613.0) for each in figures(6)] for _ in "ab")

    options = {
        "query": ["arrays"],
        "driver": None,
        "suite": folder,
        "loop": "uvloop",
        "repeats": 6,
        "without": [],
    }
    replaced = {"_measured": measure, "routes_of": lambda stack: {"socket": None}}
    names = ("create_tables", "_stop_autovacuum", "_check_needs")
    return driver_suite_peer, {**options, "harness": "", "seconds": 5, "warm_up": 1}, replaced, names


def of_the_loop(folder: Path, done: list[Any]) -> tuple[Any, ...]:
    def measure(stack: object, cell: Any, options: Namespace) -> Any:
        done.append(cell)
        return tuple([[driver_loop.Taken(us, us / 2) for us in figures(4)] for _ in range(2)] for _ in "ab")

    options = {"query": ["arrays"], "driver": None, "processes": 2, "pairs": 4, "slice_ms": 80}
    return driver_loop, options, {"_measured": measure}, ("create_tables",)


def of_pgbench(folder: Path, done: list[Any]) -> tuple[Any, ...]:
    def measure(*where: object) -> connection_cost_vs_pgbench.Rounds:
        done.append(where)
        slots = [connection_cost_vs_pgbench.Slot(*figures(3))]
        return {("simple", clients): {"libpq": slots, "pgbench": slots} for clients in (1, 8)}

    options = {"only": None, "processes": 7, "rounds": 1, "slot_s": 4}
    return connection_cost_vs_pgbench, options, {"_measured": measure}, ()


def of_ab(folder: Path, done: list[Any]) -> tuple[Any, ...]:
    def measure(group: object, url: object, case: Any, *rest: object) -> dict[str, list[http_vs_ab.Slot]]:
        done.append(case)
        slots = [http_vs_ab.Slot(each, 4.0, 0.5, 0) for each in figures(7)]
        return {http_vs_ab.LAYER: slots, case.tool: slots}

    class Clients:
        LEAD_IN_NS = 0

        @staticmethod
        def processors() -> tuple[int, frozenset[int]]:
            return 0, frozenset({1})

        @staticmethod
        def place(*words: object) -> None: ...

    replaced = {"_measure": measure, "_clients": lambda *words: nullcontext(), "web_clients": Clients}
    options = {"only": None, "step": "web_nginx", "rounds": 7, "slot_s": 4}
    return http_vs_ab, options, replaced, ("_check_tools", "_url")


def of_rates(folder: Path, done: list[Any]) -> tuple[Any, ...]:
    loads: list[int] = []

    @contextmanager
    def spinning(rivals: int) -> Iterator[None]:
        loads.append(rivals)
        yield

    def search(stack: object, build_dir: object, what: Any, number: int) -> RateSearch:
        done.append((number, what.rounds, loads[-1] > 0))
        where = (
            "search",
            "loop",
            "read",
            "libpq",
            "simple",
            "socket",
            4,
            1,
            "persistent",
            "default",
            "exponential",
        )
        names = ("variant", "reference", "workload", "layer", "mode", "route", "clients", "workers", "connect",
                 "environment", "schedule")  # fmt: skip
        known = {"rate": None} if loads[-1] else {"rate": 90.0, "low": 80.0, "high": 99.0, "share": 0.9}
        outcome = Outcome.DISTURBED if loads[-1] else Outcome.FOUND
        fields: dict[str, Any] = {**dict(zip(names, where, strict=True)), **known}
        return RateSearch(**fields, limit_ms=10.0, outcome=outcome, grade="good", capacity=100.0)

    options = {"searches": 2, "blocks": 6, "rounds": 8, "limit_ms": 10.0, "clients": 4}
    return highest_rate, options, {"_search": search, "spinning": spinning}, ("_built",)


ARRANGED: dict[str, Callable[[Path, list[Any]], tuple[Any, ...]]] = {
    "driver_suite_peer": of_the_suite,
    "driver_loop": of_the_loop,
    "connection_cost_vs_pgbench": of_pgbench,
    "http_vs_ab": of_ab,
    "highest_rate": of_rates,
}
#: Of each script: how much it measures, and an option that makes it another campaign.
UNITS = {
    "driver_suite_peer": (len(MODES), "loop", "asyncio"),
    "driver_loop": (len(MODES), "slice_ms", 200),
    "connection_cost_vs_pgbench": (2 * 7, "slot_s", 5),
    "http_vs_ab": (4, "slot_s", 5),
    "highest_rate": (3, "clients", 8),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_a_file_has_all_that_the_report_needs(
    name: str, arranged: Callable[[str], Arranged], capsys: pytest.CaptureFixture[str]
) -> None:
    script, options, done = arranged(name)
    units, other, value = UNITS[name]
    code, said = script.main(), capsys.readouterr().out
    assert said.splitlines()[-1].startswith("verdict: ")
    assert len(done) == units
    assert (script.main(), capsys.readouterr().out) == (code, said)
    assert len(done) == units
    setattr(options, other, value)
    script.main()
    assert len(done) == 2 * units
    assert len(json_lines.read(options.out)) == 2 * units


@pytest.mark.parametrize("name", ARRANGED)
def test_an_interrupted_script_goes_on(name: str, arranged: Callable[[str], Arranged]) -> None:
    script, options, done = arranged(name)
    script.main()
    lines = options.out.read_text().splitlines(keepends=True)
    options.out.write_text("".join([*lines[:1], lines[1][:20]]))
    script.main()
    assert len(done) == 2 * UNITS[name][0] - 1
    assert len(json_lines.read(options.out)) == UNITS[name][0]


def test_only_the_last_search_is_beside_load(arranged: Callable[[str], Arranged]) -> None:
    script, _, done = arranged("highest_rate")
    assert script.main() == 0
    assert done == [(0, 8, False), (1, 8, False), (2, 2, True)]
