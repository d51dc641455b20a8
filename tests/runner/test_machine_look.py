"""A look at this machine: the fixed work runs, and the load of others is told from its own."""

import os
import socket
import threading
from pathlib import Path

import pytest

from pgperf.core.exceptions import LookFailed
from pgperf.runner import fixed_work, machine_look
from pgperf.runner.cpu import top
from pgperf.runner.machine_look import busy_s, others, summarised

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WORKED = {"slices_us": [50.0, 51.0], "wake_ups_us": [60.0, 70.0, 80.0], "step_s": 0.06, "cpu_s": {"0": 0.5}}


def test_a_look_sees_this_machine() -> None:
    found = machine_look.look(0.1)
    assert found.seconds > 0.1
    assert set(found.others) == os.sched_getaffinity(0)
    assert all(share is None or 0 <= share <= 1 for share in found.others.values())
    assert found.slices_us
    assert all(us > 0 for us in found.slices_us)
    assert 0 < found.wake_up_us[0] <= found.wake_up_us[1]
    assert found.step_s > fixed_work.SLICE_S


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/false", "/bin/echo"])
def test_work_that_cannot_run_is_a_failed_look(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_look.sys, "executable", program)
    with pytest.raises(LookFailed, match="try again"):
        machine_look.look(0.01)


def stat(directory: Path, *lines: str) -> Path:
    (directory / "stat").write_text("\n".join(["cpu 1 1 1 1 1 1 1 1 0 0", *lines, "intr 5"]) + "\n")
    return directory


def test_the_busy_time_of_each_cpu_is_without_idle_waiting_and_stolen_time(tmp_path: Path) -> None:
    """user nice system idle iowait irq softirq steal, then guest times, which user has already."""
    proc = stat(tmp_path, "cpu0 1 2 3 400 500 6 7 800 9 9", "cpu11 100 0 0 1 1 0 0 0 50 0")
    assert busy_s(proc) == {0: pytest.approx(19 * TICK_S), 11: pytest.approx(100 * TICK_S)}


@pytest.mark.parametrize("text", ["", "cpu0 x", "cpux 1 2"])
def test_an_unreadable_stat_is_not_known(text: str, tmp_path: Path) -> None:
    assert busy_s(stat(tmp_path, text)) == {}
    assert busy_s(tmp_path / "nowhere") == {}


def test_others_used_what_the_work_did_not() -> None:
    before, after = {0: 10.0, 1: 20.0, 2: 0.0}, {0: 15.0, 1: 20.5, 2: 9.0}
    assert others(before, after, {"0": 4.0, "1": 1.0}, {0, 1, 7}) == {0: 1.0, 1: 0.0, 7: None}


def test_the_summary_has_shares_and_the_programs_of_others() -> None:
    processes = [
        {"role": "pgperf", "name": "celery", "cpu_percent": 90.0},
        {"role": top.OTHER, "name": "stress", "cpu_percent": 40.0},
    ]
    shown = {"seconds": 2.0, "host": {"st": 9.0}, "processes": processes}
    found = summarised(shown, {0: 1.0, 1: None, 2: 3.0}, WORKED)
    assert (found.steal, found.others) == (pytest.approx(0.09), {0: 0.5, 1: None, 2: 1.0})
    assert [(each.name, each.cpus) for each in found.programs] == [("stress", pytest.approx(0.4))]
    unknown = summarised({**shown, "host": {"st": None}}, {}, WORKED)
    assert unknown.steal is None


def test_an_operation_counts_with_at_most_the_99th_percentile() -> None:
    assert fixed_work.mean_us([1000] * 199 + [10_000_000]) == pytest.approx(1.0)
    assert fixed_work.mean_us([2000]) == 2.0


def test_the_server_answers_until_the_other_end_closes() -> None:
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=fixed_work.serve, args=(theirs,))
    server.start()
    assert fixed_work.operations(ours, 0.01)
    ours.close()
    server.join(10)
    assert not server.is_alive()
