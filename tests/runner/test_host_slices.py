"""Slices of a load host: packed for a row without loss, and refused when they are forged."""

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError
from pgperf.runner.host_slices import CPU_FIELDS, NOTHING, HostSlice, pack, unpack
from pgperf.runner.slice_window import Recorded
from tests.fuzz.hostile import JSON_VALUES

_NS = st.integers(0, 2**63 - 1)


@st.composite
def host_slices(draw: Any) -> HostSlice:
    phases = draw(st.sampled_from([[], ["lag"], ["connect", "first_byte"]]))
    replies, durations, parts = [], [], []
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(0, 5))
        numbers = draw(st.lists(_NS, min_size=count * (1 + len(phases)), max_size=count * (1 + len(phases))))
        table = np.array(numbers, dtype="<u8").reshape(1 + len(phases), -1)
        replies.append(
            protocol.SliceReply(
                seq=1, ops=count, rows=None, lead_in_ops=0, first_ns=draw(_NS), user_ns=1, sys_ns=2, capped=False,
                nbytes=8 * len(numbers), phases=phases,
            )
        )  # fmt: skip
        durations.append(table[0])
        parts.append(table[1:])
    cpu = {name: draw(st.none() | st.integers(-(2**40), 2**60)) for name in CPU_FIELDS}
    return HostSlice(Recorded(replies, durations, parts), cpu)


def plain(found: HostSlice) -> Any:
    recorded = found.recorded
    return (
        recorded.replies,
        [each.tolist() for each in recorded.durations],
        [each.tolist() for each in recorded.phases],
        dict(found.cpu),
    )


@given(st.lists(host_slices(), max_size=4))
def test_nothing_is_lost_on_the_way(slices: list[HostSlice]) -> None:
    assert [plain(each) for each in unpack(*pack(slices))] == [plain(each) for each in slices]


def test_a_host_without_a_client_of_the_variant_gives_an_empty_slice() -> None:
    (found,) = unpack(*pack([NOTHING]))
    assert found.recorded.replies == []
    assert set(found.cpu.values()) == {None}


@given(st.lists(host_slices(), min_size=1, max_size=2), st.data())
def test_forged_lines_are_refused(slices: list[HostSlice], data: Any) -> None:
    lines, packed = pack(slices)
    forged = data.draw(
        JSON_VALUES
        | st.lists(JSON_VALUES, min_size=1)
        | st.just([{**lines[0], "replies": ["{}"]}])
        | st.just([{**lines[0], "cpu": {"client_ns": "1"}}])
        | st.just([{**lines[0], "cpu": {"client_ns": 2**70}}])
    )
    if forged not in ([], {}, ""):  # no slice at all is told from a missing one by their number
        with pytest.raises(ProtocolError):
            unpack(forged, packed)


@pytest.mark.parametrize(
    "packed", [b"", b"broken", zlib.compress(b"1234567"), zlib.compress(b"x" * 800)[:-4]]
)
def test_forged_numbers_are_refused(packed: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack([], packed)


def test_numbers_that_no_reply_announces_are_refused() -> None:
    with pytest.raises(ProtocolError, match="1 numbers"):
        unpack([], zlib.compress(bytes(8)))
