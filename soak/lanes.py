"""Distribute cases over several lanes and yield each result when it arrives."""

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def perform(module: str, cases: Sequence[dict[str, Any]], lanes: int) -> Iterator[dict[str, Any]]:
    """The result of every case, in the order in which they end.

    If a lane dies, the result of its case says so under `wrong`.
    """
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    results: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for case in cases:
        waiting.put(case)
    with tempfile.TemporaryDirectory(prefix="pgperf-soak-") as directory:
        started = [
            _start(module, Path(directory) / f"lane{number}") for number in range(min(lanes, len(cases)))
        ]
        threads = [threading.Thread(target=_feed, args=(lane, waiting, results)) for lane in started]
        for thread in threads:
            thread.start()
        try:
            for _ in cases:
                yield results.get()
        finally:
            for lane in started:
                if lane.stdin:
                    lane.stdin.close()
            for thread in threads:
                thread.join()


def _start(module: str, directory: Path) -> subprocess.Popen[str]:
    """Start a lane and wait until it is ready: two at once could choose the same port."""
    argv = [sys.executable, "-m", "soak.lane", module, str(directory)]
    pipe = subprocess.PIPE
    lane = subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    assert lane.stdout
    if not lane.stdout.readline():
        raise SystemExit(f"a lane did not start ({lane.wait()}); see above")
    return lane


def _feed(
    lane: subprocess.Popen[str],
    waiting: "queue.SimpleQueue[dict[str, Any]]",
    results: "queue.SimpleQueue[dict[str, Any]]",
) -> None:
    assert lane.stdin
    assert lane.stdout
    while True:
        try:
            case = waiting.get_nowait()
        except queue.Empty:
            break
        results.put(_one(lane, case))
    lane.wait()


def _one(lane: subprocess.Popen[str], case: dict[str, Any]) -> dict[str, Any]:
    assert lane.stdin
    assert lane.stdout
    try:
        lane.stdin.write(json.dumps(case) + "\n")
        lane.stdin.flush()
        line = lane.stdout.readline()
    except (OSError, ValueError):
        line = ""
    return dict(json.loads(line)) if line else {**case, "wrong": [f"its lane died ({lane.poll()})"]}
