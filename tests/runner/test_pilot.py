"""How long slices are: load hosts' clocks need a window, and a run may lack time for long ones."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostFailed
from pgperf.runner import pilot
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.slice_length import WINDOW_MAX_NS
from tests.core.builders import variant

MS = 1_000_000
HOSTED = ClientGroup(variant(hosts=1), "app")
OWN = replace(HOSTED, variant=variant())
WINDOW = protocol.Slice(seq=0, window_ns=300 * MS)


class Hosts:
    """Load hosts with a clock error, which windows must be 100 times as long as."""

    def __init__(self, error_ns: int) -> None:
        self.error_ns = error_ns
        self.least_window_ns = 200 * error_ns

    def settle(self, window_ns: int) -> None:
        if 100 * self.error_ns > window_ns:
            raise LoadHostFailed("b", "its clock is too uncertain")


def window_ns(
    error_ns: int, groups: list[ClientGroup], request: protocol.Slice = WINDOW, slice_ms: int = 0
) -> int:
    plan = SimpleNamespace(definition=SimpleNamespace(slice_ms=slice_ms))
    context: Any = SimpleNamespace(plan=plan, load_hosts=Hosts(error_ns))
    return pilot._for_clocks(context, groups, request).window_ns


@pytest.mark.parametrize(
    ("error_ms", "expected_ms"),
    [(1, 300), (1.5, 300), (2, 400), (24, 4800), (25, 5000), (26, 5000), (50, 5000)],
)
def test_a_window_is_long_for_the_error_of_the_clocks_but_no_longer_than_any(
    error_ms: float, expected_ms: int
) -> None:
    assert window_ns(round(error_ms * MS), [OWN, HOSTED]) == expected_ms * MS <= WINDOW_MAX_NS


def test_a_host_that_would_need_a_longer_one_takes_no_part() -> None:
    with pytest.raises(LoadHostFailed, match="load host b: its clock is too uncertain"):
        window_ns(51 * MS, [HOSTED])


@pytest.mark.parametrize(
    ("groups", "request_", "slice_ms"),
    [
        pytest.param([OWN], WINDOW, 0, id="no load host"),
        pytest.param([HOSTED], WINDOW, 300, id="a window that was asked for"),
        pytest.param([HOSTED], WINDOW._replace(count=5), 0, id="slices by count"),
    ],
)
def test_other_slices_stay_as_they_are(
    groups: list[ClientGroup], request_: protocol.Slice, slice_ms: int
) -> None:
    assert window_ns(51 * MS, groups, request_, slice_ms) == 300 * MS


@pytest.mark.parametrize(
    ("rounds", "affordable", "slice_ms", "lacks"),
    [
        (8, 8, 0, False),
        (8, 2, 0, False),
        (8, 1, 0, True),
        (1, 1, 0, False),
        (1, 0, 0, True),
        (8, 1, 300, False),
    ],
)
def test_slices_are_shortened_where_rounds_are_lacking(
    rounds: int, affordable: int, slice_ms: int, lacks: bool
) -> None:
    """A run of one round has what it asked for."""
    plan = SimpleNamespace(definition=SimpleNamespace(rounds=rounds, slice_ms=slice_ms))
    pace = SimpleNamespace(affordable_rounds=lambda cohort, block: affordable)
    context: Any = SimpleNamespace(plan=plan, pace=pace)
    assert pilot._lacks_time(context, 0) is lacks
