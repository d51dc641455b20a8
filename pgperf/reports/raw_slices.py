"""A run's raw slices as CSV, piece by piece: however long the run was, one block of it is in
memory.

A row is one slice; `us_per_op` and the nanoseconds are the stored numbers, to the last digit. Text
is made harmless as in `reports.csv_files`.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from pgperf.core.records import VARIANT_FIELDS, SliceRecord, VariantBlock
from pgperf.models import BlockResult, Run
from pgperf.reports.csv_files import cell_value
from pgperf.runs import block_codec

_SLICE = tuple(field.name for field in fields(SliceRecord))
HEAD = ("run_id", "benchmark", "database", "attempt", "label", *VARIANT_FIELDS, "cohort", "block", *_SLICE)


def slices_csv(run: Run) -> Iterator[str]:
    """The header line, then the lines of one variant's block at a time, in the order of blocks."""
    yield _lines([HEAD])
    for row in _blocks(run):
        for block in block_codec.decode(bytes(row.data)):
            yield _lines(_cells(run, row.attempt, block))


def _blocks(run: Run) -> Iterator[BlockResult]:
    """One block number per query: a database without cursors on its own side would send all rows at
    once.
    """
    stored = BlockResult.objects.filter(run=run)
    for number in stored.order_by("block").values_list("block", flat=True).distinct():
        yield from stored.filter(block=number).order_by("cohort")


def _cells(run: Run, attempt: int, block: VariantBlock) -> Iterator[tuple[Any, ...]]:
    variant = block.variant
    lead = (run.pk, run.benchmark_name, run.database_name, attempt, variant.label)
    key = (*(getattr(variant, name) for name in VARIANT_FIELDS), block.cohort, block.block)
    shown = tuple(cell_value(value) for value in (*lead, *key))
    for piece in block.slices:
        yield *shown, *(cell_value(getattr(piece, name)) for name in _SLICE)


def _lines(rows: Iterable[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()
