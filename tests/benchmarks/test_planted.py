"""benchmarks.planted: how much longer an operation takes, and what its clients leave behind."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from benchmarks.planted import Longer, Stretch, longer, share_of, true_difference, write

US = 1_000


class Clock:
    """Each reading takes 1 µs; the operation lets so many µs pass."""

    def __init__(self, durations_us: Iterator[int]) -> None:
        self._now, self._durations = 0, durations_us

    def __call__(self) -> int:
        self._now += US
        return self._now

    def operation(self) -> int:
        self._now += next(self._durations) * US
        return 3


@pytest.mark.parametrize("taken_us", [1_000, 100_000])
def test_an_operation_takes_longer_in_proportion_to_its_own_time(taken_us: int) -> None:
    clock = Clock(iter([taken_us - 1]))
    slower = Longer(clock.operation, 0.05, clock)
    began = clock()
    assert slower() == 3
    assert clock() - began == (taken_us + taken_us * 0.05 + 3) * US
    assert slower.stretch == Stretch(0.05, 1.05 + 1 / taken_us)


def test_the_same_client_without_a_share_adds_readings_of_the_clock_only() -> None:
    clock = Clock(count(999, 0))
    plain = Longer(clock.operation, 0.0, clock)
    assert plain.stretch is None
    plain()
    assert plain.stretch == Stretch(0.0, 1.002)


def test_an_interrupted_operation_does_not_move_the_stretch() -> None:
    """A spin that is interrupted ends late."""
    readings = iter([0, 100, 100, 120, 1000, 1100, 1100, 9999, 10_000, 10_100, 10_100, 10_120])
    slower = Longer(lambda: 1, 0.2, lambda: next(readings))
    for _ in range(3):
        slower()
    assert slower.stretch == Stretch(0.2, 1.2)


def test_the_share_stands_in_the_sql() -> None:
    assert share_of(longer("SELECT 1", 0.05)) == 0.05
    assert share_of(longer("SELECT 1", 0.0)) == share_of("SELECT 1") == 0.0
    assert longer("SELECT 1", 0.02).endswith(" SELECT 1")
    assert len(longer("SELECT 1", 0.02)) == len(longer("SELECT 1", 0.0))


def test_the_true_difference_follows_from_what_clients_left(tmp_path: Path) -> None:
    assert true_difference(tmp_path, 0.05) is None
    left = [Stretch(0.05, 1.0521), Stretch(0.0, 1.002), Stretch(0.0, 1.002), Stretch(0.05, 1.0521)]
    (tmp_path / "stretches.jsonl").write_text("".join(json.dumps(each) + "\n" for each in left))
    assert true_difference(tmp_path, 0.05) == pytest.approx(0.05)
    assert true_difference(tmp_path, 0.02) is None


def test_the_program_is_a_client_of_this_checkout(tmp_path: Path) -> None:
    """It speaks the protocol: with the input closed, it ends as a client does."""
    program = write(tmp_path)
    assert Path(program).read_text().startswith(f"#!{sys.executable}\n")
    ended = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, b"")
