"""The block codec keeps every value exactly."""

import math
import random
import zlib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import UnreadableBlock
from pgperf.core.records import DurationSums, SliceRecord, VariantBlock
from pgperf.runs import block_codec, store
from tests.core.builders import variant

VARIANT = variant(route="pgbouncer")
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
    connect_ns=_whole | st.none(), operate_ns=_whole | st.none(), close_ns=_whole | st.none(),
)  # fmt: skip


def measured(rounds: int = 10) -> VariantBlock:
    """A block as the runner makes them: numbers with all their digits, throughput by its formula."""
    rng = random.Random(7)

    def one(round_: int) -> SliceRecord:
        window, ops = rng.randint(50_000_000, 50_200_000), rng.randint(480, 620)
        client_ns, server_ns = rng.randint(60_000_000, 90_000_000), rng.randint(30_000_000, 50_000_000)
        return SliceRecord(
            round=round_, position=rng.randint(0, 16), ops=ops, rows=ops,
            lead_in_ops=rng.randint(450, 560), window_ns=window, us_per_op=rng.uniform(80, 100),
            ops_per_s=ops / window * 1e9, user_ns=rng.randint(30, 60) * 1_000_000,
            sys_ns=rng.randint(10, 30) * 1_000_000, client_ns=client_ns, server_ns=server_ns, pooler_ns=0,
            started_ns=98_765_432_101_234 + round_ * 1_900_000_000 + rng.randint(0, 10**8),
            elapsed_ns=rng.randint(101_000, 102_000) * 1000, host_ns=rng.randint(110_000, 150_000) * 1000,
            iowait_ns=0, steal_ns=rng.choice((0, 10_000_000)), runner_ns=rng.randint(500, 700) * 1000,
            auxiliary_ns=rng.choice((0, 0, rng.randint(20, 90) * 1000)), client_wait_ns=rng.randint(10, 90) * 1000,
            client_busiest_ns=client_ns, server_wait_ns=rng.randint(10, 90) * 1000, server_busiest_ns=server_ns,
            pooler_wait_ns=0,
        )  # fmt: skip

    made = tuple(one(round_) for round_ in range(rounds))
    versions = {"psycopg": "3.3.9", "libpq": "18.6", "client": "0.1.0"}
    block = VariantBlock(
        variant=VARIANT,
        cohort=0,
        block=3,
        slices=made,
        histogram=b"h",
        cold_us=COLD,
        versions=versions,
        rows_per_op=1,
        latency_sum_ns=478_123_456,
        latency_sum_sq=1.5e15,
        latency_min_ns=60_123,
        latency_max_ns=4_012_345,
    )
    return replace(block, cpu_account=BOOKS)


def encoded(*blocks: VariantBlock) -> bytes:
    return block_codec.encode(blocks, plain=store.finite)


@given(st.lists(slices, max_size=6))
def test_every_number_survives_a_round_trip(pieces: list[SliceRecord]) -> None:
    block = replace(measured(), slices=tuple(pieces))
    assert block_codec.decode(encoded(block)) == [block]


def test_variants_keep_their_order() -> None:
    variants = [replace(measured(), variant=replace(VARIANT, layer=layer)) for layer in ("psycopg", "libpq")]
    assert block_codec.decode(encoded(*variants)) == variants


def test_a_throughput_that_differs_from_its_formula_is_kept() -> None:
    block = measured(3)
    block = replace(block, slices=(replace(block.slices[0], ops_per_s=1.5), *block.slices[1:]))
    assert block_codec.decode(encoded(block)) == [block]


def test_a_slice_takes_about_a_hundred_bytes() -> None:
    per_slice = (len(encoded(measured(30))) - len(encoded(measured(10)))) / 20
    assert per_slice < 80


def test_types_are_kept() -> None:
    """1 and 1.0 are equal, and not the same."""
    block = measured(2)
    one, other = block.slices
    block = replace(block, slices=(replace(one, us_per_op=1.0), replace(other, us_per_op=2.5)))
    (again,) = block_codec.decode(encoded(block))
    assert [type(piece.us_per_op) for piece in again.slices] == [float, float]
    assert type(again.slices[0].ops) is int


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        block_codec.encode([replace(measured(), latency_sum_sq=math.nan)], plain=lambda value: value)


@pytest.mark.parametrize("stored", [b"", b"\x03abc", encoded(measured())[:40], zlib.compress(b'[{"x":1}]')])
def test_damaged_bytes_raise_an_error(stored: bytes) -> None:
    with pytest.raises(UnreadableBlock, match="damaged"):
        block_codec.decode(stored)


def test_all_fields_of_the_slice_are_scalars() -> None:
    """A cell of a column is a scalar."""
    assert {field.type for field in fields(SliceRecord)} <= {int, float, str, int | None, float | None}


def test_the_phases_of_operations_that_connect_come_back() -> None:
    sums = DurationSums(ops=3, sum_ns=2**62, sum_sq=1.5e300, min_ns=1, max_ns=2**61, histogram=b"\x00\xff")
    block = replace(measured(), phases={"connect": sums, "operate": DurationSums(), "close": sums})
    assert block_codec.decode(block_codec.encode([block], lambda value: value)) == [block]
