"""A rival's program: its CPU, its work in each period, and whether it ever sleeps. The CPUs of each
side.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks import rival
from benchmarks.rival import halves, program


@pytest.mark.parametrize(("share", "work_ns", "sleeps"), [(0.5, 2_000_000, True), (1.0, 4_000_000, False)])
def test_a_rival_works_for_its_share_of_each_period(share: float, work_ns: int, sleeps: bool) -> None:
    source = program(3, share)
    compile(source, "rival", "exec")
    assert "os.sched_setaffinity(0, {3})" in source
    assert f"time.thread_time_ns() + {work_ns}\n" in source
    assert f"and {sleeps}: time.sleep(rest)" in source


def test_rivals_are_one_on_each_cpu_until_they_are_no_longer_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[tuple[int, float]] = []

    @contextmanager
    def made(cpu: int, share: float) -> Iterator[str]:
        running.append((cpu, share))
        yield f"rival {cpu}"
        running.remove((cpu, share))

    monkeypatch.setattr(rival, "rival", made)
    with rival.rivals([2, 3], 0.5) as found:
        assert found == {2: "rival 2", 3: "rival 3"}
        assert running == [(2, 0.5), (3, 0.5)]
    assert running == []


@pytest.mark.parametrize(
    ("core", "cpus", "expected"),
    [
        (lambda cpu: cpu, {0, 1, 2, 3}, ([0, 1], [2, 3])),
        (lambda cpu: cpu % 2, {0, 1, 2, 3}, ([0, 2], [1, 3])),  # siblings are 0 and 2, 1 and 3
        (lambda cpu: cpu, {3}, ([3], [3])),
    ],
)
def test_the_halves_are_those_of_a_run(
    core: Callable[[int], int],
    cpus: set[int],
    expected: tuple[list[int], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rival.os, "sched_getaffinity", lambda pid: cpus)
    monkeypatch.setattr(rival.placement, "_core", lambda cpu, topology: core(cpu))
    assert halves() == expected
