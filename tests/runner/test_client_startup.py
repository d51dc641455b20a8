"""Clients of a block start: coldly, together, and in time."""

from dataclasses import replace

import pytest

from pgperf.core import protocol
from pgperf.core.records import Route
from pgperf.runner import client_group, client_startup
from pgperf.runner.client_startup import _STARTING, start_most_s, started
from pgperf.runner.plan import make_plan
from tests.runner.builders import definition
from tests.runner.client_groups import groups_of


@pytest.mark.parametrize(
    ("cold", "workers", "most_s"), [(False, 1, 60 + 30), (True, 1, 60 + 150), (True, 3, 60 + 150 + 60)]
)
def test_a_client_has_time_to_start_with_the_slowest_operations(
    cold: bool, workers: int, most_s: float
) -> None:
    (one, *_) = make_plan(definition(workers=workers)).variants
    assert start_most_s(one, cold) == most_s


def test_slow_operations_have_time_before_and_after_their_client_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As there is no other time here, it is that of the operations."""
    monkeypatch.setattr(client_startup, "_START_TIMEOUT_S", 0.0)
    with groups_of(2, cold=True) as (two, _control):
        trial = protocol.Slice(seq=1, lead_in_ops=1, count=2)
        two.begin(trial)
        with monkeypatch.context() as without:
            without.setattr(client_group, "_TIMEOUT_FACTOR", 0)
            two.calibrate(trial)
    assert two.op_s > 0


def test_only_the_first_client_of_the_largest_starts_coldly() -> None:
    with groups_of(1, 3, cold=True) as (_one, three, control):
        assert [ready.first_us is not None for ready in three.ready] == [True, False, False]
        assert control.ready[0].first_us is not None


def test_more_clients_than_may_start_at_the_same_time() -> None:
    with groups_of(_STARTING + 2) as (many, _control):
        assert len({ready.pid for ready in many.ready}) == _STARTING + 2


def start_order(turn: str, seed: int = 1) -> list[int]:
    """The places of seven variants in the order in which their clients start."""
    what = replace(definition(), seed=seed)
    (one, *_) = make_plan(what).variants
    named = [(replace(one, route=f"route-{at}"), f"run-{at}") for at in range(7)]
    routes = {variant.route: Route("here", "localhost", 1, "none", "nobody", "") for variant, _name in named}
    with started(what, named, routes, "", False, None, turn=turn) as groups:
        assert [group.variant for group in groups] == [variant for variant, _name in named]
        return sorted(range(7), key=lambda at: groups[at].clients[0].spawned_ns)


def test_clients_start_in_an_order_of_the_seed_and_the_block() -> None:
    """Who starts first has other memory: no variant may be the first in every block."""
    first = start_order("0/0")
    assert sorted(first) == list(range(7))
    assert start_order("0/0") == first
    assert start_order("0/1") != first
    assert start_order("0/0", seed=2) != first
