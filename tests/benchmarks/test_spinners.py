"""benchmarks.spinners: a load ends with its context."""

import os

import pytest

from benchmarks.spinners import spinning


def test_as_many_processes_run_and_end_with_the_context() -> None:
    with spinning(2, most_s=30) as pids:
        assert len(set(pids)) == 2
        for pid in pids:
            os.kill(pid, 0)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_no_load_is_no_process() -> None:
    with spinning(0) as pids:
        assert pids == []


def test_a_load_ends_when_an_error_ends_its_context() -> None:
    with pytest.raises(ValueError, match="stop"), spinning(1, most_s=30) as pids:
        raise ValueError("stop")
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
