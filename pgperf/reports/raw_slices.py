"""A run's raw slices as CSV, piece by piece: however long the run was, one block of it is in memory.

A row is one slice; `us_per_op` and the nanoseconds are the stored numbers, to the last digit. Text is made harmless
as in `reports.export`.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from pgperf.core.records import SliceRecord, Variant
from pgperf.models import BlockResult, Run
from pgperf.reports.csv_results import cell_text
from pgperf.runs import block_codec

_VARIANT = tuple(field.name for field in fields(Variant))
_SLICE = tuple(field.name for field in fields(SliceRecord))
HEAD = ("run_id", "benchmark", "database", "attempt", "label", *_VARIANT, "cohort", "block", *_SLICE)


def slices_csv(run: Run) -> Iterator[str]:
    """The header line, then the lines of one variant's block at a time, in the order of blocks."""
    yield _lines([HEAD])
    for row in _blocks(run):
        yield _lines(_cells(run, row))


def _blocks(run: Run) -> Iterator[BlockResult]:
    """One block number per query: a database without cursors on its own side would send all rows at once."""
    stored = BlockResult.objects.filter(run=run).defer("histogram")
    for number in stored.order_by("block").values_list("block", flat=True).distinct():
        yield from stored.filter(block=number).order_by("cohort", "pk")


def _cells(run: Run, row: BlockResult) -> Iterator[tuple[Any, ...]]:
    data = block_codec.unpack(bytes(row.packed))
    variant = (data["variant"].get(name) for name in _VARIANT)
    lead = (
        run.pk,
        run.benchmark_name,
        run.database_name,
        row.attempt,
        row.variant,
        *variant,
        row.cohort,
        row.block,
    )
    shown = tuple(_cell(value) for value in lead)
    for piece in data["slices"]:
        yield *shown, *(_cell(piece.get(name)) for name in _SLICE)


def _cell(value: Any) -> Any:
    return cell_text(value) if isinstance(value, str) else value


def _lines(rows: Iterable[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()
