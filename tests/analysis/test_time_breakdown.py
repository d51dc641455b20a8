"""What an operation's time is spent at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.time_breakdown import LEAST_SAMPLES, WAITS, TimeBreakdown

from .rows import Row, row, summary


def breakdown(given_row: Row) -> TimeBreakdown:
    return TimeBreakdown.of(summary(given_row))


def test_what_no_kind_of_wait_explains_is_latency() -> None:
    time = breakdown(row(211.0))
    assert time.waits == pytest.approx(dict.fromkeys(WAITS, 0.0) | {"latency": 25.0})
    assert (time.waiting, time.unseen) == (None, None)
    assert time.busy == pytest.approx(186.0)


def test_shares_of_samples_are_shares_of_the_time_of_as_many_processes_as_clients() -> None:
    events = {
        "CPU": 0.1,
        "Client": 0.1,
        "Lock": 0.4,
        "LWLock": 0.1,
        "IO": 0.2,
        "Timeout": 0.1,
        "Activity": 0.0,
    }
    time = breakdown(row(1000.0, client=5.0, server=10.0, clients=4, events=events))
    assert time.waits["server_lock"] == pytest.approx(500.0)
    assert time.waits["server_io"] == pytest.approx(200.0)
    assert time.waits["server_wait"] == pytest.approx(100.0)
    assert time.waits["latency"] == pytest.approx(185.0)


def test_fewer_server_processes_than_clients_have_less_time_to_share() -> None:
    pool = {"wait_us_per_query": 600.0, "sv_idle_min": 0}
    given_row = row(1000.0, client=5.0, pooler=10.0, server=10.0, clients=4, events={"Lock": 1.0}, pool=pool)
    given_row["diagnostics"]["backends"] = 1
    time = breakdown(given_row)
    assert time.waits["server_lock"] == pytest.approx(250.0)
    assert time.waits["pool_queue"] == pytest.approx(600.0)
    assert time.waits["latency"] == pytest.approx(125.0)


def test_each_query_of_an_operation_waits_for_the_pool() -> None:
    given_row = row(
        1000.0, client=5.0, pooler=10.0, clients=4, pool={"wait_us_per_query": 100.0, "queries_per_op": 3.0}
    )
    given_row["diagnostics"]["backends"] = 4
    assert breakdown(given_row).waits["pool_queue"] == pytest.approx(300.0)


def test_samples_that_say_more_than_there_is_are_scaled_down() -> None:
    time = breakdown(row(100.0, client=50.0, server=40.0, events={"Lock": 0.5, "IO": 0.5}))
    assert time.waits["server_lock"] == pytest.approx(5.0)
    assert time.waits["server_io"] == pytest.approx(5.0)
    assert time.waits["latency"] == pytest.approx(0.0)


@pytest.mark.parametrize("diagnostics", [{}, {"wait_events": {"Lock": 1.0}, "samples": LEAST_SAMPLES - 1}])
def test_without_enough_samples_waiting_is_not_told_apart(diagnostics: dict[str, object]) -> None:
    time = breakdown(row(211.0) | {"diagnostics": diagnostics})
    assert time.waiting == pytest.approx(25.0)
    assert time.waits["latency"] is None
    assert time.waits["server_lock"] is None


@pytest.mark.parametrize("clients", [1, 4])
def test_behind_a_pooler_whose_counters_are_not_seen_anybody_may_queue(clients: int) -> None:
    """One client too: a pool may have others than ours."""
    given_row = row(1000.0, client=5.0, pooler=10.0, clients=clients)
    given_row["diagnostics"]["backends"] = clients
    time = breakdown(given_row)
    assert (time.waits["latency"], time.waits["pool_queue"]) == (None, None)
    assert time.waiting == pytest.approx(964.0)


def test_what_is_known_of_the_waiting_is_so_without_knowing_a_role_too() -> None:
    pool = {"wait_us_per_query": 700.0, "sv_idle_min": 0}
    time = breakdown(row(1000.0, client=50.0, pooler=20.0, server=None, clients=4, pool=pool))
    assert time.waits["pool_queue"] == pytest.approx(700.0)
    assert (time.waits["latency"], time.waiting) == (None, None)
    assert time.unseen == pytest.approx(230.0)
    assert sum(time.shares().values()) == pytest.approx(1.0)


def test_a_role_s_time_is_that_on_a_cpu_and_that_in_the_queue_for_it() -> None:
    time = breakdown(row(211.0, queue={"client": 4.0}))
    assert time.at("client") == pytest.approx(169.0)
    assert time.run_queue == pytest.approx(4.0)
    assert breakdown(row(server=None)).at("server") is None


def test_a_wait_for_a_cpu_after_the_answer_does_not_prolong_an_operation() -> None:
    time = breakdown(row(300.0, client=100.0, server=50.0, queue={"client": 120.0, "server": 80.0}))
    assert time.run_queue == pytest.approx(150.0)
    assert (time.queue["client"], time.queue["server"]) == pytest.approx((90.0, 60.0))
    assert sum(us or 0.0 for us in time.parts().values()) == pytest.approx(300.0)
    crowded = breakdown(row(100.0, client=100.0, server=50.0, queue={"client": 120.0}))
    assert crowded.run_queue == 0.0


def test_means_that_long_operations_raise_are_scaled_to_the_time() -> None:
    given_row = row(211.0, client=160.0, server=60.0, queue={"client": 20.0})
    given_row["cpu_account"]["mean_us_per_op"] = 250.0
    time = breakdown(given_row)
    assert time.parts()["client"] == pytest.approx(160.0 * 211 / 250)
    assert time.at("client") == pytest.approx(180.0 * 211 / 250)
    assert time.at("server") == pytest.approx(60.0 * 211 / 250)
    assert sum(us for us in time.parts().values() if us) == pytest.approx(211.0)


US = st.none() | st.floats(0, 1e7)
EVENTS = st.none() | st.dictionaries(
    st.sampled_from(["CPU", "Client", "Lock", "IO", "LWLock", "IPC"]), st.floats(0, 1)
)


@given(US, US, US, US, US, EVENTS, st.integers(1, 64), st.none() | st.floats(0, 1e6))
def test_shares_sum_to_one_and_nothing_is_made_up(
    us, client, pooler, server, wait, events, clients, pool
) -> None:  # type: ignore[no-untyped-def]
    given_row = row(
        us, client=client, pooler=pooler, server=server, clients=clients, queue={"client": wait, "server": wait},
        events=events or {}, pool={"wait_us_per_query": pool},
    )  # fmt: skip
    time = breakdown(given_row)
    shares = time.shares()
    assert not shares or sum(shares.values()) == pytest.approx(1.0)
    assert set(time.waits) == set(WAITS)
    assert all(value >= 0 for value in time.parts().values() if value is not None)
    if us is not None and client is not None and time.parts()["unseen"] is None and sum(shares.values()):
        total = sum(value for value in time.parts().values() if value is not None)
        assert total >= us * (1 - 1e-9)
    if server is None:
        assert (time.waits["latency"], time.waiting) == (None, None)
