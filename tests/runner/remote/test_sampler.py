"""Sampling of real processes: exact, cheap, and never of another process with the same pid."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil
import pytest

from pgperf.core.records import Route
from pgperf.runner.processes.backends import QUERY, Sessions
from pgperf.runner.remote import sampler as module
from pgperf.runner.remote.counters import AUXILIARIES, UNKNOWN, run_column, wait_column
from pgperf.runner.remote.sampler import HostMeter, ProcessGroupMeter, ProcessMeter, Sampler, TopMeter, meters
from pgperf.runner.server.control_connection import ControlConnection
from tests.open_files import open_files

SPIN = "import sys\nfor line in sys.stdin:\n  sum(range(int(line)))\n  print(flush=True)"


class Spinner:
    """A process that works when it is told to, and only then."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def work(self, count: int = 3_000_000) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{count}\n".encode())
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def spinner() -> Iterator[Spinner]:
    one = Spinner()
    one.work(1)
    yield one
    one.end()


class Steps:
    """A meter that counts how often it was read; what it counts grows by `step` each time."""

    names = ("steps",)

    def __init__(self, step: int = 1, takes_s: float = 0.0) -> None:
        self.count, self._step, self._takes_s = 0, step, takes_s

    def read(self) -> Sequence[int]:
        until = time.thread_time() + self._takes_s
        while time.thread_time() < until:
            pass
        self.count += self._step
        return (self.count,)

    def close(self) -> None:
        """Nothing to close."""


def test_the_sampled_cpu_time_equals_schedstat(spinner: Spinner) -> None:
    pid = spinner.process.pid
    sampler = Sampler([ProcessMeter(pid)])
    sampler.start()
    before = sum(psutil.Process(pid).cpu_times()[:2])
    spinner.work()
    readings = sampler.stop()
    grown_s = (readings.columns[run_column(pid)][-1] - readings.columns[run_column(pid)][0]) / 1e9
    assert grown_s == pytest.approx(sum(psutil.Process(pid).cpu_times()[:2]) - before, abs=0.021)  # two ticks
    assert grown_s > 0.01
    assert readings.columns[wait_column(pid)][-1] >= readings.columns[wait_column(pid)][0] >= 0


def test_a_process_that_ends_is_unknown_from_then_on(spinner: Spinner) -> None:
    meter = ProcessMeter(spinner.process.pid)
    assert min(meter.read()) >= 0
    spinner.end()
    assert meter.read() == (UNKNOWN, UNKNOWN)


def test_without_schedstat_the_cpu_time_is_in_clock_ticks(
    spinner: Spinner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(module.process_meter(spinner.process.pid), ProcessMeter)
    monkeypatch.setattr(module, "open_schedstats", lambda pid: [])
    meter = module.process_meter(spinner.process.pid)
    assert isinstance(meter, module.TickMeter)
    assert meter.read()[1] == UNKNOWN
    assert meter.read()[0] > 0
    spinner.end()
    assert meter.read() == (UNKNOWN, UNKNOWN)


def test_no_file_is_left_open() -> None:
    before = open_files("/proc/")
    sampler = Sampler([ProcessMeter(os.getpid()), ProcessGroupMeter(AUXILIARIES, [os.getpid()]), HostMeter()])
    assert open_files("/proc/") - before
    sampler.start()
    sampler.stop()
    assert not open_files("/proc/") - before
    assert module.open_schedstats(0) == []


def test_an_ended_process_of_a_group_keeps_its_last_value(spinner: Spinner) -> None:
    meter = ProcessGroupMeter(AUXILIARIES, [spinner.process.pid, os.getpid()])
    (before,) = meter.read()
    spinner.end()
    (after,) = meter.read()
    assert after >= before > 0


def test_the_machine_s_own_account() -> None:
    values = dict(zip(HostMeter.names, HostMeter().read(), strict=True))
    assert values["host.idle"] > 0


def test_its_line_in_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOP_S", 3600)
    meter = TopMeter()
    values = dict(zip(meter.names, meter.read(), strict=True))
    assert values["top.id"] > 0
    assert values["top.load1"] == pytest.approx(100 * os.getloadavg()[0], abs=200)
    monkeypatch.setattr(module.top, "host_ticks", lambda: None)
    monkeypatch.setattr(module.top, "loads", lambda: None)
    assert meter.read() == tuple(values.values())  # so soon it is not read again
    assert set(TopMeter().read()) == {UNKNOWN}


def test_it_reads_until_it_is_stopped() -> None:
    steps = Steps()
    sampler = Sampler([steps])
    sampler.start()
    while steps.count < 5:
        os.sched_yield()
    readings = sampler.stop()
    assert list(readings.columns["steps"]) == list(range(1, steps.count + 1))
    assert (readings.times_ns[1:] > readings.times_ns[:-1]).all()


def test_the_pause_grows_with_the_cost_of_a_sample() -> None:
    """The sampler uses 1 % of one CPU, however long a sample takes."""
    sampler = Sampler([Steps(takes_s=0.01)])
    sampler.start()
    while sampler.cost_s < 0.01:
        os.sched_yield()
    assert sampler.pause_s >= 1.0
    sampler.stop()


def test_the_pause_has_a_minimum() -> None:
    assert Sampler([Steps()]).pause_s == module.SHORTEST_S


def test_the_number_of_kept_samples_is_bounded() -> None:
    steps = Steps()
    sampler = Sampler([steps], most=8)
    sampler.start()
    while steps.count < 20:
        os.sched_yield()
    readings = sampler.stop().columns["steps"]
    assert len(readings) < 8
    assert list(readings) == sorted(readings)
    assert readings[0] == 1
    assert sampler.pause_s > module.SHORTEST_S


class TestMeters:
    """Against the stack's PostgreSQL, which is on this machine as an agent's is."""

    @pytest.fixture
    def rows(self, routes: dict[str, Route]) -> Iterator[list[list[str | None]]]:
        with ControlConnection(routes["tcp"], "pgperf-test-sampling") as monitor:
            self.own = int(monitor.query("SELECT pg_backend_pid()")[0][0] or 0)
            yield monitor.query(QUERY)

    def names(self, rows: list[list[str | None]], *backends: int) -> list[str]:
        return [meter.names[0] for meter in meters(Sessions.of(rows), backends)]

    def test_meters_cover_backends_and_auxiliary_processes(self, rows: list[list[str | None]]) -> None:
        found = meters(Sessions.of(rows), [self.own])
        assert [meter.names[0] for meter in found] == [
            "host.busy",
            "top.us",
            run_column(self.own),
            AUXILIARIES,
        ]
        assert min(found[2].read()) >= 0
        assert found[3].read()[0] > 0

    def test_a_pid_with_another_start_time_is_not_the_backend(self, rows: list[list[str | None]]) -> None:
        older = [[*row[:3], str(float(row[3] or 0) - 3600), row[4]] for row in rows]
        assert run_column(self.own) not in self.names(older, self.own)

    def test_a_process_that_is_not_a_backend_is_never_read(self, rows: list[list[str | None]]) -> None:
        own = os.getpid()
        ours = [str(own), "", "", str(psutil.Process().create_time()), None]
        assert run_column(own) not in self.names([*rows, ours], own)

    def test_an_unlisted_backend_is_never_read(self, rows: list[list[str | None]]) -> None:
        others = [row for row in rows if row[0] != str(self.own)]
        assert run_column(self.own) not in self.names(others, self.own)

    def test_another_host_s_server(self) -> None:
        assert self.names([["1", "", "", "0", None]], 1) == ["host.busy", "top.us"]


def test_a_process_that_leaves_need_not_stop_it() -> None:
    code = (
        "from pgperf.runner.remote.sampler import *\nimport os\ns = Sampler([HostMeter()])\ns.start()\n"
        "print(flush=True)\nraise SystemExit(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert done.returncode == 7, done.stderr
