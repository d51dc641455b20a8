"""Replayed steal: the changed readings, and that pgperf reads them."""

import os

from benchmarks.replayed_steal import StolenShare, replayed_steal
from pgperf.runner.cpu import host, top

TICKS = [100, 0, 50, 1000, 5, 0, 1, 7, 0, 0]
_PER_S = os.sysconf("SC_CLK_TCK")


def test_stolen_time_comes_out_of_idle_time() -> None:
    moments = iter([0.0, 1.0, 2.0])
    stolen = StolenShare(0.05, 2, lambda: next(moments))
    first = stolen.of(TICKS)
    assert first[7] == 7 + _PER_S // 10
    assert first[3] == 1000 - _PER_S // 10
    later = stolen.of([*TICKS[:3], 1000 + _PER_S, *TICKS[4:]])
    assert (later[7], later[3]) == (7 + _PER_S // 5, 1000 + _PER_S - _PER_S // 5)
    assert [each for at, each in enumerate(later) if at not in (3, 7)] == [100, 0, 50, 5, 0, 1, 0, 0]


def test_idle_time_never_decreases() -> None:
    moments = iter([0.0, 1.0, 10.0])
    stolen = StolenShare(0.12, 2, lambda: next(moments))
    assert stolen.of(TICKS)[3] == stolen.of(TICKS)[3]


def test_only_the_first_line_changes() -> None:
    moments = iter([0.0, 1.0])
    stolen = StolenShare(0.05, 2, lambda: next(moments))
    text = stolen.text("cpu  1 2 3 100 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 5\n")
    tenth = _PER_S // 10
    assert text.startswith(f"cpu  1 2 3 {100 - tenth} 5 6 7 {8 + tenth} 0 0\ncpu0 1 2 3 4 5")


def test_pgperf_reads_the_replay_meanwhile() -> None:
    before = (host.read_text, top.host_ticks)
    with replayed_steal(0.12):
        assert host.read_text is not before[0]
        counters, ticks = host.Host.here().read(), top.host_ticks()
        assert counters.steal_ns is not None
        assert ticks is not None
        assert host.read_text("/proc/self/stat")  # other files are as they are
    assert (host.read_text, top.host_ticks) == before
