"""What pgbench prints and logs."""

import pytest

from pgperf.clients.pgbench.report import Summary, Transaction, transactions
from pgperf.core.exceptions import PgperfError

KEPT = """pgbench (15.18, server 18.6 (Debian 18.6-1))
transaction type: /proc/self/fd/7
scaling factor: 1
query mode: prepared
number of clients: 8
number of threads: 8
maximum number of tries: 1
duration: 1 s
number of transactions actually processed: 27225
number of failed transactions: 0 (0.000%)
latency average = 0.277 ms
initial connection time = 41.230 ms
tps = 28871.605399 (without initial connection time)
"""
EACH = """pgbench (14.2)
number of transactions actually processed: 63/63
latency average = 65.780 ms
average connection time = 57.590 ms
tps = 60.808756 (including reconnection times)
"""
OLD = """starting vacuum...end.
number of transactions actually processed: 63
tps = 60.808756 (including connections establishing)
tps = 160.808756 (excluding connections establishing)
"""


def test_a_summary_of_kept_connections() -> None:
    assert Summary.of(KEPT) == Summary(27225, 0, 28871.605399, "18.6", None)
    assert Summary.of(KEPT).window_ns == pytest.approx(27225 / 28871.605399 * 1e9, abs=1)


def test_a_summary_of_a_connection_each() -> None:
    assert Summary.of(EACH) == Summary(63, 0, 60.808756, "14.2", 57.59)


def test_failed_transactions_are_counted() -> None:
    assert Summary.of(KEPT.replace("transactions: 0", "transactions: 3")).failed == 3


def test_nothing_processed_has_no_window() -> None:
    idle = KEPT.replace("processed: 27225", "processed: 0").replace("28871.605399", "0.000000")
    assert (Summary.of(idle).window_ns, Summary.of(idle).mean_s(8)) == (0, 0.0)


def test_the_mean_of_a_transaction_is_that_of_clients_side_by_side() -> None:
    assert Summary.of(KEPT).mean_s(8) == pytest.approx(0.277e-3, rel=0.001)


@pytest.mark.parametrize("text", ["", OLD, KEPT.replace("tps", "TPS")])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(PgperfError, match="14 or newer"):
        Summary.of(text)


def test_a_log_gives_the_transactions_of_each_client() -> None:
    lines = ["1 1 40 0 1795334158 801582", "0 1 30 0 1795334158 800000", "1 2 50 0 1795334159 12 0 1"]
    assert transactions(lines, 1_795_334_158_000_000_000) == [
        [Transaction(800_000_000, 30_000)],
        [Transaction(801_582_000, 40_000), Transaction(1_000_012_000, 50_000)],
    ]
