"""The record of a variant in a block: the latencies of an open loop in it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pgperf.analysis import latency
from pgperf.core import protocol
from pgperf.core.records import VariantBlock
from pgperf.core.schedule import due_in
from pgperf.runner import block_results
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.load_hosts import joined
from pgperf.runner.open_loop import share
from pgperf.runner.plan import make_plan
from pgperf.runner.run_context import VariantMeasurements
from pgperf.runner.slice_window import Recorded, SliceWindow
from tests.runner.builders import definition

MS = 1_000_000
#: 1,000 operations are due in each of its seconds.
REQUEST = protocol.Slice(
    seq=1, start_ns=1000 * MS, lead_in_ns=500 * MS, window_ns=2000 * MS, rate=1000.0, schedule="constant"
)
VARIANT = make_plan(definition(rates=(REQUEST.rate,), schedule="constant")).variants[0]


def recorded(clients: int, stopped: Sequence[int] = (), at_ms: int = 2500) -> list[Recorded]:
    """What each of the clients recorded, each a host of its own: operations of 1 ms. Those that are
    `stopped` begin none that is due from `at_ms` on.
    """
    return [_recorded(share(REQUEST, at, clients), at_ms if at in stopped else 2500) for at in range(clients)]


def _recorded(own: protocol.Slice, until_ms: int) -> Recorded:
    due = due_in(own, protocol.MAX_PHASED_SAMPLES)
    ran = sum(1 for each in due if each < until_ms * MS)
    reply = protocol.SliceReply(
        seq=1, ops=ran, rows=ran, lead_in_ops=0, first_ns=REQUEST.start_ns, user_ns=0, sys_ns=0, capped=False,
        nbytes=16 * ran, phases=[protocol.LAG], backlog=len(due) - ran,
    )  # fmt: skip
    lag = np.full((1, ran), MS // 4, dtype=np.uint64)
    return Recorded([reply], [np.full(ran, MS, dtype=np.uint64)], [lag])


def folded(by_host: Sequence[Recorded], database_cpus: int | None = None) -> VariantBlock:
    """The block of one slice of so many hosts."""
    variant = replace(VARIANT, clients=len(by_host))
    window = SliceWindow.of(REQUEST, *joined(variant, by_host))
    group = ClientGroup(
        variant, "app", ready=[protocol.Ready(1, 1, {}, "18", 1)], database_cpus=database_cpus
    )
    return block_results.fold(group, 0, 0, VariantMeasurements(windows=[window]), {"role_cpus": {}})


def test_a_stall_across_the_end_of_the_window_is_in_its_percentiles() -> None:
    """The server stops 200 ms before the end: of 2,000 operations, 200 have waited 1 to 200 ms."""
    block = folded(recorded(1, stopped=[0], at_ms=2300))
    found = latency.summary_us([block])
    assert found["p99"] == pytest.approx(180e3, rel=0.002)
    assert found["p90"] == pytest.approx(1e3, rel=0.002)
    assert (found["min"], found["max"]) == (1e3, 200e3)
    assert found["mean"] == pytest.approx((1800 * 1e3 + sum(range(1, 201)) * 1e3) / 2000)
    times = np.concatenate([np.full(1800, 1e3), np.arange(1, 201) * 1e3])
    assert found["stddev"] == pytest.approx(times.std())


def test_what_had_not_begun_has_no_lag_and_no_service_time() -> None:
    block = folded(recorded(1, stopped=[0], at_ms=2300))
    assert {name: part.ops for name, part in block.phases.items()} == {"lag": 1800, "service": 1800}
    assert latency.phases_us([block])["service"]["max"] == 750.0


def test_without_a_stall_latencies_are_those_of_the_operations_that_ran() -> None:
    block = folded(recorded(1))
    ran = np.full(2000, MS, dtype=np.uint64)
    assert block.histogram == latency.fold(ran)
    assert (block.latency_sum_ns, block.latency_sum_sq) == (2000 * MS, 2000.0 * MS**2)
    assert (block.latency_min_ns, block.latency_max_ns) == (MS, MS)


def test_the_stall_of_one_load_host_counts_beside_the_others() -> None:
    """Of two hosts, one stops 100 ms before the end: 50 of 2,000 operations wait."""
    block = folded(recorded(2, stopped=[1], at_ms=2400))
    found = latency.summary_us([block])
    assert latency.merge([block.histogram]).get_total_count() == 2000
    assert found["p95"] == pytest.approx(1e3, rel=0.001)
    assert found["p99"] == pytest.approx(59e3, rel=0.002)


def test_where_none_ran_all_latencies_are_what_was_waited_at_least() -> None:
    block = folded(recorded(1, stopped=[0], at_ms=100))
    found = latency.summary_us([block])
    assert (found["min"], found["max"]) == (1e3, 2e6)
    assert block.phases["lag"].ops == 0


def test_a_database_with_fewer_cpus_than_its_web_servers_is_in_the_account() -> None:
    assert folded(recorded(1), database_cpus=4).cpu_account["role_cpus"]["database"] == 4
    assert "database" not in folded(recorded(1)).cpu_account["role_cpus"]
