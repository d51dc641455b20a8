"""Blocks into bytes and back, to the last bit."""

import json
import math
import random
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import UnreadableBlock
from pgperf.core.records import SliceRecord, Variant, VariantBlock
from pgperf.runs import block_codec, store

VARIANT = Variant("site-by-domain", "psycopg", "simple", "pgbouncer", 1, "persistent", "apart")
COLD = {"startup": 118_000.123, "connect": 3912.456, "first": 700.1, "second": None}

BOOKS = {
    "cpus": 2, "source": "cgroup", "elapsed_ns": 19_123_456_789, "host_ns": 30_987_654_321, "ours_ns": 30_123_454_321,
    "others_ns": 712_345_678,
    "ticks_and_switches": {
        "client": {"user": 61, "system": 22, "voluntary": 20_123, "involuntary": 17},
        "server": {"user": 31, "system": 12, "voluntary": 20_145, "involuntary": 3},
        "pooler": {"user": 0, "system": 0, "voluntary": 0, "involuntary": 0},
    },
}  # fmt: skip

_whole = st.integers(0, 2**63)
_time = st.floats(min_value=0.001, max_value=1e9, allow_nan=False)
slices = st.builds(
    SliceRecord,
    round=st.integers(0, 200), position=st.integers(0, 40), ops=_whole, rows=_whole, lead_in_ops=_whole,
    window_ns=_whole, us_per_op=_time, ops_per_s=_time | st.just(0.0), user_ns=_whole, sys_ns=_whole,
    client_ns=_whole | st.none(), server_ns=_whole | st.none(), pooler_ns=_whole | st.none(), started_ns=_whole,
    disturbed=st.text(max_size=20), elapsed_ns=_whole | st.none(), host_ns=_whole | st.none(),
    client_busiest_ns=_whole | st.none(), server_busiest_ns=_whole | st.none(),
)  # fmt: skip


def measured(rounds: int = 10) -> VariantBlock:
    """A block as the runner makes them: numbers with all their digits, throughput by its formula."""
    rng = random.Random(7)

    def one(round_: int) -> SliceRecord:
        window, ops = rng.randint(50_000_000, 50_200_000), rng.randint(480, 620)
        return SliceRecord(
            round_, rng.randint(0, 16), ops, ops, rng.randint(450, 560), window, rng.uniform(80, 100),
            ops / window * 1e9, rng.randint(30, 60) * 1_000_000, rng.randint(10, 30) * 1_000_000,
            client_ns := rng.randint(60_000_000, 90_000_000), server_ns := rng.randint(30_000_000, 50_000_000), 0,
            98_765_432_101_234 + round_ * 1_900_000_000 + rng.randint(0, 10**8),
            elapsed_ns=rng.randint(101_000, 102_000) * 1000, host_ns=rng.randint(110_000, 150_000) * 1000,
            iowait_ns=0, steal_ns=rng.choice((0, 10_000_000)), runner_ns=rng.randint(500, 700) * 1000,
            auxiliary_ns=rng.choice((0, 0, rng.randint(20, 90) * 1000)), client_wait_ns=rng.randint(10, 90) * 1000,
            client_busiest_ns=client_ns, server_wait_ns=rng.randint(10, 90) * 1000, server_busiest_ns=server_ns,
            pooler_wait_ns=0,
        )  # fmt: skip

    made = tuple(one(round_) for round_ in range(rounds))
    versions = {"psycopg": "3.3.9", "libpq": "18.6", "client": "0.1.0"}
    block = VariantBlock(VARIANT, 0, 3, made, b"h", COLD, versions, 1, 478_123_456, 1.5e15, 60_123, 4_012_345)
    return replace(block, cpu_account=BOOKS)


def packed(block: VariantBlock) -> bytes:
    return block_codec.pack_block(block, plain=store.finite)


@given(st.lists(slices, max_size=6))
def test_every_number_comes_back(pieces: list[SliceRecord]) -> None:
    block = replace(measured(), slices=tuple(pieces))
    assert block_codec.unpack_block(packed(block), b"h") == block


def test_a_slice_takes_a_few_dozen_bytes() -> None:
    per_slice = (len(packed(measured(30))) - len(packed(measured(10)))) / 20
    assert per_slice < 58
    assert len(packed(measured(10))) < 850 < len(json.dumps(asdict(replace(measured(10), histogram=""))))  # type: ignore[arg-type]


def test_types_are_kept() -> None:
    """1, 1.0 and True are equal, and not the same."""
    data = {"slices": [{"a": 1, "b": 1}, {"a": 1.0, "b": True}]}
    again = block_codec.unpack(block_codec.pack(data))["slices"]
    assert [[type(value) for value in piece.values()] for piece in again] == [[int, int], [float, bool]]


def test_a_field_of_a_later_version_is_kept() -> None:
    data = {"slices": [{"ops": 1, "window_ns": 2, "ops_per_s": 3.5, "new": "x"}], "more": {"x": None}}
    assert block_codec.unpack(block_codec.pack(data)) == data


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        block_codec.pack({"slices": [{"us_per_op": math.nan}]})


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"", "later"),
        (b"\x03abc", "later"),
        (b"\x01\xff\xff\xff", "broken"),
        (packed(measured())[:40], "broken"),
    ],
)
def test_what_cannot_be_read_is_named(stored: bytes, said: str) -> None:
    with pytest.raises(UnreadableBlock, match=said):
        block_codec.unpack(stored)


def test_the_busiest_of_one_is_that_one_and_of_several_it_is_kept() -> None:
    one, several = measured(3), measured(3)
    several = replace(
        several, slices=tuple(replace(s, client_busiest_ns=s.client_ns // 2) for s in several.slices)
    )
    without = replace(
        one, slices=tuple(replace(s, elapsed_ns=None, client_busiest_ns=None) for s in one.slices)
    )
    for block in (one, several, without):
        assert block_codec.unpack_block(packed(block), b"h") == block


@pytest.mark.parametrize("number", [1, 2])
def test_the_formats_do_not_change(number: int) -> None:
    """Bytes that an earlier version stored. A change here is a change of the format: give it another first byte."""
    stored = bytes.fromhex(STORED[number])
    assert stored[0] == number
    assert block_codec.unpack(stored) == DATA


DATA: dict[str, Any] = {
    "block": 2,
    "cohort": 0,
    "cold_us": {"connect": None, "startup": 1000.5},
    "slices": [
        {
            "disturbed": "",
            "ops": 100,
            "ops_per_s": 100 / 3_000_001 * 1e9,
            "started_ns": 5,
            "window_ns": 3_000_001,
        },
        {
            "disturbed": "",
            "ops": 101,
            "ops_per_s": 101 / 3_000_001 * 1e9,
            "started_ns": 9,
            "window_ns": 3_000_001,
        },
    ],
}
STORED = {
    1: "01ab86891a218be249c9f0b466686060a0678a083823e4f481962020f10fd4a1636860881e67a63a26a8d1616c000286b5b500",
    2: "02ab86891a218be249c9f0b4062a0ef44c110167849c3ed0120424fe813a808588217a9c99ea98a0468731b89831acad0500",
}


def test_all_fields_of_the_records_are_simple() -> None:
    """A column holds scalars: a list would be taken for one."""
    assert {field.type for field in fields(SliceRecord)} <= {int, float, str, int | None}
