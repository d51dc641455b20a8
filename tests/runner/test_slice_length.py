"""How long slices are: by a pilot, and by prediction."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.records import Variant
from pgperf.runner.slice_length import Need, fitting, is_late, later_lead_in, pilot_slice, predicted_op_s
from tests.runner.builders import definition

MS = 1_000_000
ASKED = protocol.Slice(seq=0, start_ns=0, lead_in_ops=10, lead_in_ns=50 * MS)


def need(connections: int, mean_ms: float, longest_ms: float = 0) -> Need:
    return Need(connections, mean_ms * MS, max(mean_ms, longest_ms) * MS)


@pytest.mark.parametrize(
    ("clients", "op_ms", "slice_ms"),
    [
        (1, 0.02, 50),  # never shorter
        (1, 4, 200),
        (2, 4, 100),  # 25 operations of each
        (5, 8, 80),
        (32, 20, 100),  # no fewer than 5 of each
        (1, 100, 5000),
    ],
)
def test_a_window_has_50_operations_of_a_variant_and_5_of_each_client(
    clients: int, op_ms: float, slice_ms: int
) -> None:
    assert fitting(ASKED, [need(clients, op_ms)]).window_ns == slice_ms * MS


def test_the_most_demanding_decides() -> None:
    assert fitting(ASKED, [need(1, 4), need(32, 8), need(1, 0.02)]).window_ns == 200 * MS


def test_slower_work_goes_by_count() -> None:
    found = fitting(ASKED, [need(1, 200), need(1, 1)])
    assert (found.window_ns, found.lead_in_ns, found.lead_in_ops, found.count) == (0, 0, 1, 25)
    assert fitting(ASKED, [need(1, 9000)]).count == 1


def test_several_slow_clients_get_time_to_lead_in() -> None:
    assert fitting(ASKED, [need(8, 30)]).lead_in_ns == 90 * MS
    assert fitting(ASKED, [need(8, 3)]).lead_in_ns == 50 * MS
    assert fitting(ASKED, [need(1, 30)]).lead_in_ns == 50 * MS  # ten operations, however long they take


@given(
    st.lists(st.tuples(st.integers(1, 64), st.floats(0.01, 400), st.floats(1, 50)), min_size=1, max_size=6)
)
def test_each_connection_ends_an_operation_before_the_window_and_one_inside(
    variants: list[tuple[int, float, float]],
) -> None:
    """However uneven the operations of connections that contend for CPUs are, up to 5 s."""
    found = fitting(ASKED, [need(connections, ms, ms * longest) for connections, ms, longest in variants])
    for connections, ms, longest in variants:
        if connections > 1 and not found.count:
            assert found.lead_in_ns >= min(5000, 1.999 * ms * longest) * MS
            assert found.window_ns >= int(min(5000, ms * longest) * MS)


def test_a_window_that_is_asked_for_is_kept_and_has_a_lead_in_that_suffices() -> None:
    asked = ASKED._replace(window_ns=100 * MS)
    found = fitting(asked, [need(20, 60, 240)])
    assert (found.window_ns, found.lead_in_ns) == (100 * MS, 480 * MS)
    assert fitting(asked, []) == asked


@pytest.mark.parametrize(
    ("op_s", "count"), [(0.0, 20), (0.00002, 20), (0.05, 20), (0.1, 10), (0.4, 2), (0.9, 1), (30.0, 1)]
)
def test_a_pilot_takes_about_a_second_at_most(op_s: float, count: int) -> None:
    found = pilot_slice(op_s)
    assert (found.count, found.window_ns, found.lead_in_ns) == (count, 0, 0)
    assert found.lead_in_ops == min(2, count)


def test_several_connections_lead_in_with_one_operation_in_the_pilot_too() -> None:
    """So the pilot sees how long all of them need to start at the same time."""
    assert pilot_slice(0.00002, connections=20).lead_in_ops == 1


@given(st.integers(0, 400), st.integers(50, 5000), st.integers(0, 6000))
def test_connections_that_were_late_get_a_longer_lead_in(
    lead_in_ms: int, window_ms: int, led_ms: int
) -> None:
    request = ASKED._replace(lead_in_ns=lead_in_ms * MS, window_ns=window_ms * MS)
    later = later_lead_in(request, led_ms * MS)
    if not is_late(request, led_ms * MS):
        assert later == request
    else:
        assert led_ms > lead_in_ms
        assert later == request._replace(lead_in_ns=min(5000, 2 * led_ms) * MS)


def test_a_slice_by_count_has_no_window_to_be_late_for() -> None:
    request = ASKED._replace(count=5, window_ns=0, lead_in_ns=0)
    assert later_lead_in(request, 10**9) == request


@pytest.mark.parametrize(
    ("layer", "connect", "trips"),
    [("psycopg", "persistent", 1), ("psycopg", "per_operation", 5), ("http", "per_operation", 2)],
)
def test_a_delayed_route_adds_its_round_trips(layer: str, connect: str, trips: int) -> None:
    near = Variant(
        workload="spin",
        layer=layer,
        mode="simple",
        route="tcp",
        clients=1,
        connect=connect,
        placement="apart",
    )
    far = replace(near, route="tcp+45ms")
    longer = predicted_op_s(definition(), far) - predicted_op_s(definition(), near)
    assert longer == pytest.approx(trips * 0.045)
