"""benchmarks.open_loop_vs_pgbench: which operations found the client idle, and when both agree."""

import numpy as np
import pytest

from benchmarks import open_loop_vs_pgbench as script
from benchmarks.open_loop_vs_pgbench import LATE_BAR, SKIPPED_BAR, Limited, Log, Timed


def timed(due_us: list[float], latency_us: list[float], lag_us: list[float]) -> Timed:
    return Timed(*map(np.array, (due_us, latency_us, lag_us)))


def test_idle_operations_were_due_when_the_one_before_had_ended() -> None:
    slot = timed([0, 400, 500, 900], [320, 330, 300, 320], [300, 310, 280, 300])
    assert slot.idle_lag_us() == pytest.approx(310, abs=1)  # those of 400 and 900


def test_a_client_that_wakes_up_late_exceeds_the_bar() -> None:
    late_us = 3 * script.IDLE_LAG_US
    slot = timed([0, 1000, 2000], [late_us + 20] * 3, [late_us] * 3)
    assert slot.idle_lag_us() == late_us


def test_a_client_that_is_never_idle_fails_the_bar() -> None:
    assert timed([0, 10, 20], [50, 60, 70], [0, 40, 50]).idle_lag_us() > script.IDLE_LAG_US


def later(slot: Timed, us: float) -> Timed:
    """Each operation starts later by that, and its latency has it."""
    return slot._replace(latency_us=slot.latency_us + us, lag_us=slot.lag_us + us)


IDLE = timed([*np.arange(0, 10_000, 100.0)], [30.0] * 100, [5.0] * 100)


@pytest.mark.parametrize("share", script.SHARES)
@pytest.mark.parametrize(("later_us", "close"), [(20, True), (50, False)])
def test_the_default_timer_slack_is_outside(share: float, later_us: float, close: bool) -> None:
    assert script._row(share, 10_000.0, [later(IDLE, later_us)], [IDLE]) is close


def queued(service_us: float, delay_us: float = 5.0, count: int = 2_000) -> Timed:
    """Operations that are due at random, 90 % of the capacity of 100 µs, one after the other."""
    due_us = np.cumsum(np.random.default_rng(7).exponential(100 / 0.9, count))
    ended_us, latency_us = 0.0, []
    for due in due_us:
        ended_us = max(ended_us, due) + delay_us + service_us
        latency_us.append(ended_us - due)
    return timed([*due_us], latency_us, [us - service_us for us in latency_us])


def test_parts_do_not_depend_on_the_queue() -> None:
    slower, faster = queued(94), queued(80)
    assert slower.figures()["mean"] > 1.5 * faster.figures()["mean"]
    names = [
        f"{name} {part}"
        for part in ("from the start", "delay of the start")
        for name in ("mean", "p50", "p99")
    ]
    assert slower.parts() == pytest.approx(dict(zip(names, [94] * 3 + [5] * 3, strict=True)))


@pytest.mark.parametrize(
    ("ours", "close"),
    [
        (queued(80), True),
        (queued(125), False),
        (queued(94, delay_us=40), False),
        # Timed from the real start, while the lag is said:
        (queued(94)._replace(latency_us=np.full(2_000, 94.0)), False),
        # The lag counts from the end of the operation before:
        (queued(94)._replace(lag_us=np.full(2_000, 5.0)), False),
        # No operation waits for the one before, as in a closed loop:
        (queued(94)._replace(latency_us=np.full(2_000, 99.0), lag_us=np.full(2_000, 5.0)), False),
    ],
)
def test_at_the_highest_share_the_parts_must_agree(
    ours: Timed, close: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script._row(0.9, 9_000.0, [ours], [queued(94)]) is close
    whole, judged = capsys.readouterr().out.splitlines()[1:]
    assert whole.startswith("  not judged: mean ")
    assert ("outside" in judged) is not close


#: As pgbench 18 writes it with a latency limit of 10 ms.
LOG = """\
0 1 7681 0 1795835533 993863 17
0 2 15769 0 1795835534 393958 7700
0 3 skipped 0 1795835534 396359 0
0 4 skipped 0 1795835534 500000 0
0 5 17703 0 1795835534 786198 9998
0 6 9998 0 1795835534 796198 2
"""
SUMMARY = """\
number of transactions actually processed: 4
number of failed transactions: 0 (0.000%)
number of transactions skipped: 2 (33.333%)
number of transactions above the 10.0 ms latency limit: 2/4 (50.000%)
"""


def test_the_log_of_pgbench_has_skipped_operations_without_a_latency() -> None:
    log = Log.parsed(LOG)
    assert log.at_us[:3].tolist() == [993863, 1393958, 1396359]
    assert log.skipped.tolist() == [False, False, True, True, False, False]
    assert log.lag_us.tolist() == [17, 7700, 0, 0, 9998, 2]


def test_late_and_skipped_operations_count_after_the_lead_in() -> None:
    """Half a second after the first line, three are left: one skipped, one late, one in time."""
    assert Log.parsed(LOG).limited() == Limited(ran=4, late=2, skipped=2)
    counted = Log.parsed(LOG).after_lead_in().limited()
    assert counted == Limited(ran=2, late=1, skipped=1)
    assert (counted.skipped_share, counted.late_share) == pytest.approx((1 / 3, 1 / 3))


def test_without_a_limit_an_operation_was_due_before_its_latency() -> None:
    slot = Log.parsed(LOG.splitlines()[0]).timed()
    assert (slot.due_us.tolist(), slot.latency_us.tolist(), slot.lag_us.tolist()) == ([986182], [7681], [17])


def test_the_log_and_the_summary_of_pgbench_must_agree() -> None:
    script._check_skipped(Log.parsed(LOG), SUMMARY)
    script._check_skipped(Log.parsed(LOG.splitlines()[0]), "tps = 1.0")
    with pytest.raises(SystemExit, match="counts 3 skipped operations, and its log has 2"):
        script._check_skipped(Log.parsed(LOG), SUMMARY.replace("skipped: 2", "skipped: 3"))
    with pytest.raises(SystemExit, match="counts 0 skipped operations, and its log has 2"):
        script._check_skipped(Log.parsed(LOG), "")


@pytest.mark.parametrize(
    ("ours", "close"),
    [
        (Limited(900, 160, 100), True),
        (Limited(900 + 15, 160, 100 - 15), True),
        (Limited(900 + 25, 160, 100 - 25), False),
        (Limited(900, 160 - 45, 100), True),
        (Limited(900, 160 - 55, 100), False),
        (Limited(1000, 1000, 0), False),  # skips nothing
        (Limited(900, 0, 100), False),  # counts no late ones
    ],
)
def test_skipped_and_late_shares_must_agree(
    ours: Limited, close: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (SKIPPED_BAR, LATE_BAR) == (0.02, 0.05)
    assert script._limited_row(27_500.0, [ours], [Limited(900, 160, 100)]) is close
    said = capsys.readouterr().out
    assert said.startswith("110% of it, 27,500/s, limit 10 ms: C client / pgbench: skipped ")
    assert ("outside" in said) is not close


def test_the_median_slot_decides_on_the_shares() -> None:
    usual, stalled = Limited(900, 160, 100), Limited(500, 400, 500)
    assert script._limited_row(27_500.0, [usual, stalled, usual], [usual] * 3)
