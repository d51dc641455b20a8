"""What benchmarks.http_vs_ab reads from the output of ab and wrk."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import http_vs_ab
from pgperf.core import protocol
from pgperf.runner.slice_window import Recorded
from tests.runner.slice_replies import reply

AB = """\
Concurrency Level:      20
Time taken for tests:   4.002 seconds
Complete requests:      1600
Failed requests:        {failed}
{other}Total transferred:      11721600 bytes
Requests per second:    399.80 [#/sec] (mean)
"""
WRK = """\
Running 4s test @ http://127.0.0.1:8000/books/
  1 threads and 20 connections
  1600 requests in 4.00s, 11.18MB read
{other}Requests/sec:    400.00
Transfer/sec:      2.79MB
"""


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text that a tool prints."""
    text = [""]

    def run(command: Sequence[str], cpu: int) -> tuple[str, float]:
        return text[0], 0.8

    monkeypatch.setattr(http_vs_ab, "_run", run)
    return text


def test_each_slot_begins_when_the_servers_have_answered_what_the_last_one_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """wrk ends with a request under way on each connection."""
    order: list[str] = []
    group: Any = SimpleNamespace(
        variant=SimpleNamespace(clients=20), run=lambda request: order.append(f"{request.count} more")
    )
    monkeypatch.setattr(http_vs_ab, "armed", lambda group, request: request)
    monkeypatch.setattr(http_vs_ab, "_slot", lambda group, request: order.append("http"))
    monkeypatch.setitem(http_vs_ab.TOOLS, "wrk", lambda *_words: order.append("wrk"))
    options: Any = SimpleNamespace(rounds=3, slot_s=4)
    http_vs_ab._measure(group, "http://127.0.0.1", http_vs_ab.CASES["kept"], options, 0)
    assert order[::2] == ["1 more"] * 6
    assert sorted(order[1::2]) == ["http"] * 3 + ["wrk"] * 3


def test_a_window_that_opened_before_all_connections_had_an_answer_is_no_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their first requests would be missing."""
    request = protocol.Slice(seq=1, start_ns=1000, lead_in_ns=50, window_ns=100)
    durations = [np.full(3, 30, dtype=np.uint64)] * 2
    recorded = Recorded([reply(1050, 3), reply(1090, 3)], durations, [])
    group: Any = SimpleNamespace(run=lambda _request: recorded)
    with pytest.raises(SystemExit, match="a client began after the common window had opened"):
        http_vs_ab._slot(group, request)


@pytest.mark.parametrize(
    ("failed", "other", "expected"),
    [("0", "", 0), ("7", "   (Connect: 0, Receive: 7, Length: 0, Exceptions: 0)\n", 7),
     ("0", "Non-2xx responses:      5\n", 5)],
)  # fmt: skip
def test_ab(output: list[str], failed: str, other: str, expected: int) -> None:
    output[0] = AB.format(failed=failed, other=other)
    slot = http_vs_ab.ab("http://127.0.0.1:8000/", 20, 4, 0)
    assert slot.failed == expected
    assert slot.per_s == pytest.approx(1600 / 4.002)
    assert slot.cpu_us == pytest.approx(500)


@pytest.mark.parametrize(
    ("other", "expected"),
    [("", 0), ("  Socket errors: connect 1, read 2, write 3, timeout 4\n", 10),
     ("  Non-2xx or 3xx responses: 12\n", 12)],
)  # fmt: skip
def test_wrk(output: list[str], other: str, expected: int) -> None:
    output[0] = WRK.format(other=other)
    slot = http_vs_ab.wrk("http://127.0.0.1:8000/", 20, 4, 0)
    assert slot.failed == expected
    assert slot.per_s == pytest.approx(400)
    assert slot.busy == pytest.approx(0.2)


def test_wrk_without_a_request_has_a_slot_of_none(output: list[str]) -> None:
    output[0] = WRK.format(other="").replace("1600 requests", "0 requests").replace("400.00", "0.00")
    slot = http_vs_ab.wrk("http://127.0.0.1:8000/", 20, 4, 0)
    assert (slot.per_s, slot.seconds) == (0.0, 4.0)


@pytest.mark.parametrize("connections", [1, 20])
def test_more_connections_do_not_make_a_short_page_long(connections: int) -> None:
    """A page of 5 ms, in line with 19 others or not: the case of one connection judges its length."""
    rate = connections / 0.005
    measured = {http_vs_ab.LAYER: slots(rate), "ab": slots(rate)}
    assert http_vs_ab._table("new", http_vs_ab.CASES["new"], connections, measured) == (connections > 1)


@pytest.mark.parametrize("tool", http_vs_ab.TOOLS.values())
def test_an_output_without_figures_ends_the_script_with_it(output: list[str], tool: http_vs_ab.Tool) -> None:
    output[0] = "apr_socket_recv: Connection reset by peer (104)"
    with pytest.raises(SystemExit, match=r"cannot measure: (?s:.*)Connection reset"):
        tool("http://127.0.0.1:8000/", 1, 4, 0)


def slots(per_s: float, failed: int = 0) -> list[http_vs_ab.Slot]:
    return [http_vs_ab.Slot(per_s + at / 100, 1.0, 0.1, failed) for at in range(7)]


@pytest.mark.parametrize(
    ("layer", "tool", "failed", "holds"),
    [(60.0, 61.0, 0, True), (60.0, 66.0, 0, False), (60.0, 61.0, 1, False), (200.0, 201.0, 0, False)],
    ids=["within 5 %", "10 % apart", "a failed request", "a page of 5 ms"],
)
def test_the_bar(
    layer: float, tool: float, failed: int, holds: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = {http_vs_ab.LAYER: slots(layer, failed), "ab": slots(tool)}
    assert http_vs_ab._table("new", http_vs_ab.CASES["new"], 1, measured) == holds


def test_the_row_says_when_the_generator_is_the_limit() -> None:
    busy = [http_vs_ab.Slot(100.0, 1.0, 0.95, 0)] * 3
    assert "the generator is the limit" in http_vs_ab._row(busy)
    assert "the generator is the limit" not in http_vs_ab._row(slots(100.0))


def test_a_slot_without_a_request_asks_for_longer_ones() -> None:
    measured = {http_vs_ab.LAYER: slots(60.0), "ab": [http_vs_ab.Slot(0, 1.0, 0.1, 0)] * 7}
    with pytest.raises(SystemExit, match="no request ended in a slot; choose a longer --slot-s"):
        http_vs_ab._table("new", http_vs_ab.CASES["new"], 1, measured)
