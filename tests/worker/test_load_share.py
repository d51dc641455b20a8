"""A load host's side of a run, without a database."""

import os
import re
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from pgperf.core import protocol
from pgperf.core.exceptions import PreflightRefused
from pgperf.core.records import Route
from pgperf.load import rows
from pgperf.models import Run
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu import cgroups
from pgperf.runner.cpu.accounting import BlockTotals
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.memory import RunMemory
from pgperf.runner.plan import make_plan
from pgperf.runner.ports import LocalPorts
from pgperf.runs.order_rows import OrderRows
from pgperf.worker import load_share
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.load_preparation import Prepared
from pgperf.worker.load_share import _Share
from tests.runner.builders import definition
from tests.runner.client_groups import groups_of

SECOND = 1_000_000_000
HERE = len(os.sched_getaffinity(0))


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


def test_a_failure_tells_no_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Celery would log the error as it is."""
    told: list[str] = []

    def fail() -> None:
        raise ValueError("no number: sesame")

    monkeypatch.setattr(OrderRows, "refuse", lambda _rows, _row, _agent, reason: told.append(reason))
    share = _Share(1, "load@a", Lifeline(60), secrets={"password 1": "sesame"})
    monkeypatch.setattr(share, "_serve", fail)
    share.run()
    assert "unexpected ValueError: no number" in told[0]
    assert "in fail" in caplog.text
    assert "sesame" not in told[0] + caplog.text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OperationalError("the connection is closed"),
            "the site's own database, .* did not answer there: the",
        ),
        (KeyError("cohort"), "unexpected KeyError: 'cohort' .the log of its worker has more"),
    ],
)
def test_it_says_what_kept_it_from_going_on(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def fail() -> None:
        raise error

    monkeypatch.setattr(OrderRows, "refuse", lambda _rows, _row, _agent, reason: told.append(reason))
    share = _Share(1, "load@a", Lifeline(60))
    monkeypatch.setattr(share, "_serve", fail)
    share.run()
    assert re.search(words, told[0])


@pytest.mark.parametrize("order", ["_begin", "_start"])
def test_it_refuses_to_make_load_beside_another_run(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "other_run_here", lambda _row: Run(pk=7))
    share = _Share(1, "load@a", Lifeline(60))
    with pytest.raises(PreflightRefused, match="run 7 measures on this machine; wait for its end"):
        getattr(share, order)({})


def test_it_starts_no_clients_that_would_use_up_its_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its part: half of 20 clients fit, all of them do not, as when the other host was lost."""
    started: list[int] = []
    monkeypatch.setattr(rows, "other_run_here", lambda _row: None)
    monkeypatch.setattr(load_share, "warm_up", lambda _definition, groups: started.append(len(groups)))
    monkeypatch.setattr(_Share, "_started", lambda _share, parts, _order: nullcontext(()))
    monkeypatch.setattr(load_share, "process_cpu_of", lambda _host, _groups: None)
    share = _Share(1, "load@a", Lifeline(60), prepared=_reconnecting(ports=400_000))
    order = {"cohort": 0, "block": 0, "cpus": None, "page_cpus": None, "cold": False}
    share._start({**order, "part": 0, "of": 2})
    assert started == [0]
    with pytest.raises(PreflightRefused, match=r"ports: connections to db.example:5432 .* 400,000 are free"):
        share._start({**order, "part": 0, "of": 1})


@pytest.mark.parametrize(
    ("cpus", "page_cpus", "sizes"), [([0, 2, 4, 6], [0], [4, 1]), (None, None, [HERE, HERE])]
)
def test_clients_that_request_pages_have_cpus_of_their_own(
    cpus: list[int] | None, page_cpus: list[int] | None, sizes: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a database keep theirs: else a load host beside the owner would seem to cost time."""
    sides: list[list[int] | None] = []

    def started(_definition: Any, named: Any, *given: Any, turn: str, **_more: Any) -> Any:
        assert turn == "0/3"
        assert {name.rpartition("-")[0] for _variant, name in named} == {"pgperf-7-5eed"}
        placed = next(each for each in given if isinstance(each, CpuPlacement))
        sides.extend(placed.sides(over_http).to_json()["clients"] for over_http in (False, True))
        return nullcontext([])

    monkeypatch.setattr(rows, "other_run_here", lambda _row: None)
    monkeypatch.setattr(load_share, "started", started)
    monkeypatch.setattr(load_share, "warm_up", lambda _definition, _groups: None)
    monkeypatch.setattr(load_share, "process_cpu_of", lambda *_around: SimpleNamespace(close=dict))
    monkeypatch.setattr(cgroups, "quota", lambda _pid: None)
    share = _Share(1, "load@a", Lifeline(60), prepared=_reconnecting(ports=400_000))
    share._start(
        {"cohort": 0, "block": 3, "part": 0, "of": 2, "cold": False, "cpus": cpus, "page_cpus": page_cpus}
    )
    assert sides == [cpus, page_cpus]
    variant = share._known().plan.variants[0]
    kinds = [replace(variant, layer=layer) for layer in ("libpq", "http")]
    share.groups = {at: ClientGroup(each, "app") for at, each in enumerate(kinds)}
    data, _packed = share._totals(True)
    assert [data["totals"][at]["client_cpus"] for at in range(2)] == sizes


def _reconnecting(ports: int) -> Prepared:
    """Of a run whose 20 clients open a connection through a pooler for each operation."""
    asked = definition(
        layers=("libpq",), routes=("tcp",), clients=(20,), connection_modes=("per_operation",), load_hosts=(2,),
        blocks=10, rounds=24, slice_ms=250, seed=0x5EED,
    )  # fmt: skip
    route = Route("tcp", "db.example", 5432, "app", "app", "secret", pooler="session")
    local = LocalPorts(ports, 0, tw_reuse=0, timestamps=True)
    run = Run(pk=7, definition=asked.to_json())
    return Prepared(run, make_plan(asked), {"tcp": route}, RunMemory.now(None), {}, local)
