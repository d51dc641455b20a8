"""A load host's side of a run, without a database."""

import time

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import PreflightRefused
from pgperf.load import rows
from pgperf.models import Run
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu.accounting import BlockTotals
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.load_share import _Share
from tests.runner.client_groups import groups_of

SECOND = 1_000_000_000


def test_it_looks_after_the_run_while_it_waits_for_a_slice() -> None:
    """Between two slices of slow operations there may be more time than a silent host has."""
    looked: list[int] = []
    with groups_of(2) as (group, _control), while_waiting(lambda: looked.append(time.monotonic_ns())):
        begin = time.monotonic_ns()
        start = begin + 4 * SECOND
        request = protocol.Slice(
            seq=1, start_ns=start, lead_in_ops=1, lead_in_ns=1_000_000, window_ns=5_000_000
        )
        share = _Share(1, "load@a", Lifeline(60), groups={0: group})
        found = share._slice(0, protocol.encode(request).decode())
    assert len(found.recorded.replies) == 2
    assert any(begin + SECOND // 2 < at < start - SECOND for at in looked)


def test_a_pilot_is_not_in_the_totals_of_a_block() -> None:
    """Their operations are not in it either, by which the totals are divided."""
    with groups_of(2) as (group, _control):
        share = _Share(1, "load@a", Lifeline(60), groups={0: group})
        for seq in (0, 1):
            pilot = protocol.Slice(seq=seq, start_ns=time.monotonic_ns() + 2 * SECOND, lead_in_ops=1, count=3)
            found = share._slice(0, protocol.encode(pilot).decode())
            assert [reply.ops for reply in found.recorded.replies] == [3, 3]
            assert (group.totals.to_json() == BlockTotals().to_json()) is (seq == 0)


def test_an_order_that_is_repeated_counts_once() -> None:
    """Another host was late for it, so the owner has dropped what it gave."""
    much = 10**15
    with groups_of(2) as (group, _control):
        share = _Share(1, "load@a", Lifeline(60), groups={0: group})
        for seq, counts in ((1, False), (1, False), (2, True)):
            start = time.monotonic_ns() + 2 * SECOND
            line = protocol.encode(protocol.Slice(seq=seq, start_ns=start, lead_in_ops=1, count=3)).decode()
            share._slices([[0, line]])
            assert (group.totals.passing_ns >= much) is counts
            group.totals.passing_ns += much


@pytest.mark.parametrize("order", ["_begin", "_start"])
def test_it_refuses_to_make_load_beside_another_run(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "other_run_here", lambda _row: Run(pk=7))
    share = _Share(1, "load@a", Lifeline(60))
    with pytest.raises(PreflightRefused, match="run 7 measures on this machine; wait for its end"):
        getattr(share, order)({})
