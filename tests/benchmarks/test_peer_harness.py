"""benchmarks.peer_harness: the harness's text, its queries and its report."""

from pathlib import Path

import pytest

from benchmarks import peer_harness
from benchmarks.driver_cells import MODES, WORKS

LOOP = "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\nloop = asyncio.get_event_loop()\n"
#: The parts of the harness that can be removed.
SOURCE = f"""
async def asyncpg_execute(conn, query, args):
    return len(await conn.fetch(query, *args))


async def worker(executor, eargs):
    while time.monotonic() - start < duration:
        req_start = time.monotonic()
        rows += await executor(*eargs)
        req_time = round((time.monotonic() - req_start) * 1000 * 100)

        if req_time > max_latency:
            max_latency = req_time
        latency_stats[req_time] += 1
        queries += 1


async def runner(args):
    try:
        if True:
            results, duration = await _do_run(args.duration)
    finally:
        pass


{LOOP}"""


def test_every_driver_has_a_name_in_the_suite() -> None:
    assert set(peer_harness.NAMES) == set(MODES)


def test_the_harness_gets_a_new_event_loop_and_keeps_uvloop() -> None:
    changed = peer_harness.changed(LOOP, "uvloop")
    assert changed == LOOP.replace("get_event_loop()", "new_event_loop()")
    assert peer_harness.changed(changed, "uvloop") == changed


def test_the_harness_can_run_on_asyncio() -> None:
    changed = peer_harness.changed(LOOP, "asyncio")
    assert "asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())" in changed
    assert "uvloop" not in changed


@pytest.mark.parametrize("text", ["", "loop = asyncio.get_event_loop()", "uvloop.EventLoopPolicy()"])
def test_an_unknown_harness_is_refused(text: str) -> None:
    with pytest.raises(SystemExit, match="event loop differently"):
        peer_harness.changed(text, "uvloop")


def test_queries_are_found_by_name_whatever_their_number(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    for number, query in enumerate(WORKS):
        (tmp_path / "queries" / f"{number}-{query}.json").write_text("{}")
    assert all(peer_harness.query_file(tmp_path, query).name.endswith(f"-{query}.json") for query in WORKS)
    with pytest.raises(SystemExit, match="has no query other"):
        peer_harness.query_file(tmp_path, "other")


@pytest.mark.parametrize(
    ("report", "slot"),
    [
        ({"queries": 50, "rows": 5000, "duration": 2.5}, peer_harness.Slot(20.0, 100.0)),
        ({"queries": 0, "rows": 0, "duration": 2.5}, peer_harness.Slot(0.0, None)),
    ],
)
def test_throughput_is_by_the_harness_s_own_formula(
    report: dict[str, float], slot: peer_harness.Slot
) -> None:
    assert peer_harness.slot_of(report) == slot


@pytest.mark.parametrize(
    ("cause", "gone", "there"),
    [
        ("lookup", "conn.fetch", "await conn.prepare(query)"),
        ("garbage", "\n    gc.freeze()", "gc.freeze()\n            results, duration ="),
        ("bookkeeping", "latency", "        rows += await executor(*eargs)\n        queries += 1\n"),
    ],
)
def test_a_cause_of_a_difference_can_be_removed(cause: str, gone: str, there: str) -> None:
    changed = peer_harness.changed(SOURCE, "uvloop", [cause])
    assert gone not in changed
    assert there in changed
    compile(changed, "harness", "exec")


def test_causes_can_be_removed_together() -> None:
    one_by_one = SOURCE
    for cause in peer_harness.CAUSES:
        one_by_one = peer_harness.changed(one_by_one, "uvloop", [cause])
    assert peer_harness.changed(SOURCE, "uvloop", list(peer_harness.CAUSES)) == one_by_one


@pytest.mark.parametrize("cause", peer_harness.CAUSES)
def test_a_harness_without_that_cause_is_refused(cause: str) -> None:
    with pytest.raises(SystemExit, match=f"has no {cause} to remove"):
        peer_harness.changed(LOOP, "uvloop", [cause])
