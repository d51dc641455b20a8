"""Raw slices as CSV: exact, harmless, and read a block at a time."""

import csv
import gc
import tracemalloc

import pytest
from pytest_django import DjangoAssertNumQueries

from pgperf.core.records import VariantBlock
from pgperf.models import BlockResult, Run
from pgperf.reports.raw_slices import HEAD, slices_csv
from pgperf.runs import block_codec
from tests import factories
from tests.core.builders import slice_record, variant

pytestmark = pytest.mark.django_db

SLICE = slice_record(us_per_op=20.0)


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader("".join(slices_csv(run)).splitlines()))


def test_every_slice_is_there_in_order() -> None:
    run = factories.make_blocks(factories.make_run(), blocks=2, rounds=3)
    found = rows(run)
    assert len(found) == 2 * 3 * len(factories.LAYER_NAMES)
    assert [(row["block"], row["label"], row["round"]) for row in found[:4]] == [
        ("0", "libpq · socket", "0"),
        ("0", "libpq · socket", "1"),
        ("0", "libpq · socket", "2"),
        ("0", "psycopg2 · socket", "0"),
    ]
    assert {row["block"] for row in found[-3:]} == {"1"}


def test_numbers_are_the_stored_ones_and_the_unknown_is_empty() -> None:
    run = factories.make_blocks(factories.make_run(), blocks=1, rounds=2)
    stored = [
        piece
        for row in run.blocks.order_by("pk")
        for block in block_codec.decode(bytes(row.data))
        for piece in block.slices
    ]
    for row, piece in zip(rows(run), stored, strict=True):
        assert float(row["us_per_op"]) == piece.us_per_op
        assert float(row["ops_per_s"]) == piece.ops_per_s
        assert int(row["started_ns"]) == piece.started_ns
        assert (row["client_ns"], row["server_ns"], row["control"]) == ("41000017", "", "0")


def test_a_run_without_blocks_is_a_header() -> None:
    assert "".join(slices_csv(factories.make_run())).strip().split(",") == list(HEAD)


def test_only_this_run_s_slices() -> None:
    run, other = factories.make_run(), factories.make_blocks(factories.make_run())
    assert rows(run) == []
    assert {row["run_id"] for row in rows(other)} == {str(other.pk)}


def test_formulas_are_quoted() -> None:
    run = factories.make_run(benchmark_name="=cmd()", database_name="@x")
    factories.store_block(
        run, [VariantBlock(variant=variant(workload="w", layer="+1"), cohort=0, block=0, slices=(SLICE,))]
    )
    (first,) = rows(run)
    assert (first["benchmark"], first["database"], first["label"]) == ("'=cmd()", "'@x", "'+1 · socket")


def test_memory_does_not_grow_with_the_run() -> None:
    """Ten times the slices, which are megabytes of text, take no more than a few of them."""
    few = factories.make_blocks(factories.make_run(), blocks=6, rounds=20)
    many = factories.make_blocks(factories.make_run(), blocks=60, rounds=20)
    _peak(few)  # imports and caches
    peaks = _peak(few), _peak(many)
    assert peaks[1] < 2 * peaks[0], "what Python keeps for reuse, not what it holds"
    assert peaks[1] < 750_000 < 1_500_000 < len("".join(slices_csv(many)))


def test_one_query_for_each_block(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    run = factories.make_blocks(factories.make_run(), blocks=3)
    with django_assert_num_queries(1 + 3):
        rows(run)


def test_the_first_lines_come_before_the_last_are_read() -> None:
    run = factories.make_blocks(factories.make_run(), blocks=3)
    lines = slices_csv(run)
    next(lines), next(lines)
    BlockResult.objects.filter(run=run, block=2).delete()
    read = list(csv.DictReader([",".join(HEAD), *"".join(lines).splitlines()]))
    assert {row["block"] for row in read} == {"0", "1"}


def _peak(run: Run) -> int:
    """The most bytes held while the lines are made and let go."""
    gc.collect()
    tracemalloc.start()
    try:
        for _line in slices_csv(run):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
