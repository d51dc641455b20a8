"""Restarting parts that end."""

import os
import signal
from pathlib import Path

import pytest

from example.stack import watch
from example.stack.errors import StackError
from example.stack.part import Part


class Enough(Exception):
    """Ends the watch as a signal would."""


def test_a_part_that_ends_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "STABLE_S", 0)
    starts: list[Part] = []

    def answers(part: Part) -> bool:
        starts.append(part)
        if len(starts) == 2:
            raise Enough
        return True

    part = Part("sleeper", ["sleep", "600"], tmp_path / "log", answers)
    part.start()
    assert part.process is not None
    part.process.kill()
    with pytest.raises(Enough):
        watch.watch([part])
    part.stop()


def test_a_part_that_does_not_stay_up_ends_the_watch(tmp_path: Path) -> None:
    script = "echo out of ink; exec sleep 600"
    part = Part("brief", ["sh", "-c", script], tmp_path / "log", lambda part: bool(part.log_since_start()))
    part.start()
    assert part.process is not None
    part.process.kill()
    with pytest.raises(StackError, match=r"brief ended right after its start(?s:.*)out of ink"):
        watch.watch([part])


def test_a_part_that_ends_during_its_start_gives_an_error_with_its_log(tmp_path: Path) -> None:
    part = Part("refuser", ["sh", "-c", "echo no such thing; exit 3"], tmp_path / "log", lambda _: False)
    with pytest.raises(StackError, match=r"refuser ended with code 3(?s:.*)no such thing"):
        part.start()


def test_a_part_that_has_ended_does_not_answer_by_another_s_server(tmp_path: Path) -> None:
    """Such a server has its port already."""

    def answers(part: Part) -> bool:
        assert part.process
        os.waitid(os.P_PID, part.process.pid, os.WEXITED | os.WNOWAIT)
        return True

    part = Part("twin", ["sh", "-c", "echo address in use; exit 1"], tmp_path / "log", answers)
    with pytest.raises(StackError, match=r"twin ended with code 1(?s:.*)address in use"):
        part.start()


def test_a_part_that_ignores_the_polite_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("example.stack.process.TIMEOUT_S", 0.1)
    script = "trap '' TERM; echo deaf; sleep 600"
    part = Part(
        "deaf",
        ["sh", "-c", script],
        tmp_path / "log",
        lambda part: "deaf" in part.log_since_start(),
    )
    part.start()
    part.stop()
    assert part.process is not None
    assert part.process.returncode == -signal.SIGKILL
