"""A rival's program: its CPU, its work in each period, and whether it ever sleeps."""

import pytest

from benchmarks.rival import program


@pytest.mark.parametrize(("share", "work_ns", "sleeps"), [(0.5, 2_000_000, True), (1.0, 4_000_000, False)])
def test_a_rival_works_for_its_share_of_each_period(share: float, work_ns: int, sleeps: bool) -> None:
    source = program(3, share)
    compile(source, "rival", "exec")
    assert "os.sched_setaffinity(0, {3})" in source
    assert f"time.thread_time_ns() + {work_ns}\n" in source
    assert f"and {sleeps}: time.sleep(rest)" in source
