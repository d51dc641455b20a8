"""The memory of a run: what is free, each client's share, and results that cannot fit."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import OutOfMemory, PreflightRefused
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.runner import memory, preflight
from pgperf.runner.memory import LEAST_BYTES, MIB, RunMemory
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import ResultSize
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server import result_size
from tests.fuzz.hostile import JSON_TEXTS, WORDS
from tests.runner.builders import definition
from tests.runner.test_run import Watcher


@given(st.integers(0, 1 << 45), st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True))
def test_all_shares_together_fit_in_what_is_allowed(allowed: int, clients: list[int]) -> None:
    plan = make_plan(definition(clients=tuple(sorted(clients))))
    share = RunMemory(allowed * 2, allowed).client_bytes(plan)
    started = max(clients) + 1  # and its control
    assert share >= LEAST_BYTES
    assert share == LEAST_BYTES or started * (share + 20 * MIB) <= allowed


@pytest.mark.parametrize(
    ("most_mb", "allowed_mb", "words"),
    [(0, 500, "1000 MiB are free"), (300, 300, "RUN_MEMORY_MB"), (4000, 1000, "1000 MiB are free")],
)
def test_a_run_may_take_half_of_what_is_free_or_the_setting(
    most_mb: int, allowed_mb: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000 * MIB)
    found = RunMemory.now(most_mb)
    assert found.allowed_bytes == allowed_mb * MIB
    assert words in found.rule


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("in_container", [False, True])
def test_the_limit_of_a_control_group_counts(version: int, in_container: bool, tmp_path: Path) -> None:
    """A container's path may be the host's, which it does not see; its own group is the root."""
    root, proc = tmp_path / "groups", tmp_path / "proc"
    group = root if in_container else root / "site"
    own = proc / str(memory.os.getpid())
    for directory in (group, own):
        directory.mkdir(parents=True)
    names = memory._GROUP_FILES[2 - version]
    for name, text in zip(names[:2], ("1000", "900"), strict=True):
        (group / name).write_text(text)
    (group / "memory.stat").write_text(f"anon 1\n{names[2]} 50\n")
    kind, controllers, option = ("cgroup2", "", "rw") if version == 2 else ("cgroup", "memory", "rw,memory")
    (own / "cgroup").write_text(f"3:{controllers}:/site/worker\n")
    (tmp_path / "mounts").write_text(f"none {root} {kind} {option} 0 0\n")
    assert list(memory._group_room(tmp_path / "mounts", proc)) == [150]


def test_a_machine_without_limits_has_what_is_available() -> None:
    assert memory.free_bytes() > 0


def test_a_result_that_cannot_fit_is_refused_with_its_numbers() -> None:
    with pytest.raises(
        PreflightRefused, match=r"one operation of w returns 700,000 rows of 1,000 bytes.*LIMIT"
    ):
        preflight.check_results({"w": ResultSize(700_000, 1000)}, 512 * MIB)
    preflight.check_results({"w": ResultSize(1000, 1000)}, 512 * MIB)


def test_each_worker_of_a_client_has_a_result() -> None:
    large = {"w": ResultSize(200_000, 1000)}
    preflight.check_results(large, 512 * MIB, workers=2)
    with pytest.raises(PreflightRefused, match="190 MiB for each of its 3 workers"):
        preflight.check_results(large, 512 * MIB, workers=3)


@given(JSON_TEXTS | WORDS)
def test_any_text_is_a_plan_or_none(text: str) -> None:
    size = result_size.read_plan(text)
    assert size is None or (size.rows >= 0 and size.width >= 0)


def test_sizes_are_estimated_from_the_servers_plan(routes: dict[str, Route]) -> None:
    work = WorkloadDefinition("rows", "SELECT x::bigint FROM generate_series(1, %s) x", (5000,))
    plan = make_plan(definition(workloads=(work,), layers=("psycopg",), routes=("tcp",)))
    assert result_size.estimates(plan, routes, "sizes") == {"rows": ResultSize(5000, 8)}


@pytest.mark.parametrize("sql", ["SHOW work_mem", "SELECT no_such_column"])
def test_an_unknown_size_refuses_nothing(sql: str, routes: dict[str, Route]) -> None:
    plan = make_plan(
        definition(workloads=(WorkloadDefinition("w", sql),), layers=("psycopg",), routes=("tcp",))
    )
    assert result_size.estimates(plan, routes, "sizes") == {}


#: By their plans: 76 MiB of numbers, and a tenth of it.
LARGE = "SELECT x::bigint FROM generate_series(1, 10000000) x"
SMALL = LARGE.replace("10000000", "1000000")


@pytest.mark.parametrize(
    ("texts", "workers"),
    [
        ((LARGE,), 1),
        (("SELECT 1", f"WITH many AS ({LARGE}) SELECT * FROM many"), 1),
        ((SMALL,), 3),
    ],
    ids=["one", "the second of two workloads", "small, and three of them at once"],
)
@pytest.mark.parametrize("route", ["tcp", "pgbouncer"])
def test_a_run_whose_result_cannot_fit_starts_no_client(
    texts: tuple[str, ...], workers: int, route: str, routes: dict[str, Route], tmp_path: Path
) -> None:
    started = tmp_path / "started"
    (tmp_path / "pgperf-libpq").write_text(f"#!/bin/sh\ntouch {started}\n")
    (tmp_path / "pgperf-libpq").chmod(0o755)
    works = tuple(WorkloadDefinition(f"w{number}", text) for number, text in enumerate(texts))
    what = definition(workloads=works, layers=("libpq", "psycopg"), routes=(route,), workers=workers)
    plan, watcher = make_plan(what), Watcher()
    enough_to_start = RunMemory(4000 * MIB, max(map(memory.start_bytes, plan.cohorts)))
    settings = RunSettings(str(tmp_path), "too-large", memory=enough_to_start)
    with pytest.raises(PreflightRefused, match=rf"one operation of w{len(texts) - 1} returns .*LIMIT"):
        execute(plan, routes, settings, watcher)
    assert (watcher.said, started.exists()) == ([], False)


def test_a_run_beyond_its_memory_fails_with_the_remedy(routes: dict[str, Route], c_client: Path) -> None:
    """The plan's width of a computed text is too low, so only the limit finds it."""
    work = WorkloadDefinition("wide", "SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
    plan = make_plan(
        definition(workloads=(work,), layers=("libpq", "psycopg"), routes=("tcp",), cold_blocks=0)
    )
    settings = RunSettings(str(c_client.parent), "memory", memory=RunMemory(400 * MIB, 200 * MIB))
    with pytest.raises(OutOfMemory, match=r"(libpq|psycopg).*MiB that each client may take.*LIMIT"):
        execute(plan, routes, settings, Watcher())


def test_a_run_stores_its_limits(routes: dict[str, Route]) -> None:
    plan = make_plan(
        definition(layers=("psycopg",), routes=("tcp",), workloads=(WorkloadDefinition("one", "SELECT 1"),))
    )
    settings = replace(RunSettings("", "limits"), memory=RunMemory(4000 * MIB, 2000 * MIB))
    facts = execute(plan, routes, settings, Watcher()).environment["memory"]
    assert facts == {
        "free_bytes": 4000 * MIB,
        "allowed_bytes": 2000 * MIB,
        "client_bytes": settings.memory.client_bytes(plan),
        "unlimited": [],
    }
