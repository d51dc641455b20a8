"""CSV and XLSX: a header row, then one row per definition. Cells hold lists as JSON text."""

import csv
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

import tablib
from openpyxl import load_workbook

from pgperf.core.exceptions import TransferError
from pgperf.core.formula_injection import harmless, unharmed
from pgperf.transfer import workbook
from pgperf.transfer.spreadsheet import from_xml, to_xml
from pgperf.transfer.table import MAX_COLUMNS, MAX_LINES, ImportTable, check_headers, short
from pgperf.transfer.tree import decoded

#: The longest cell of each format.
MAX_CSV_CELL = 131_072
MAX_XLSX_CELL = 32_767

Rows = Iterable[dict[str, Any]]


def read_csv(content: bytes) -> ImportTable:
    lines = csv.reader(StringIO(decoded(content), newline=""), strict=True)
    try:
        return _table(enumerate(lines, 1), unharmed)
    except csv.Error as error:
        raise TransferError(
            f"invalid CSV, line {lines.line_num}: {error}. Check that the file is complete"
        ) from None


def write_csv(rows: Rows) -> bytes:
    text = _dataset(rows, _csv_cell).export("csv")
    return str(text).encode()


def read_xlsx(content: bytes) -> ImportTable:
    """The first sheet of a workbook."""
    try:
        parts = workbook.checked(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(parts, read_only=True, keep_links=False)
            return _table(_sheet_rows(book.worksheets[0]), lambda text: unharmed(from_xml(text)), even=False)
    except TransferError:
        raise
    except Exception as error:  # openpyxl raises many types for a broken workbook
        raise TransferError(f"not a readable workbook ({type(error).__name__})") from None


def write_xlsx(rows: Rows) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return bytes(_dataset(rows, _xlsx_cell).export("xlsx"))


def _table(lines: Iterable[tuple[int, Sequence[Any]]], restore: Any, *, even: bool = True) -> ImportTable:
    """`even`: every line has a cell for each column, so one that has not was cut off."""
    table = ImportTable(flat=True)
    names: list[str] = []
    for number, line in lines:
        if number > MAX_LINES:
            raise TransferError(f"the file has more than {MAX_LINES:,} lines: split it")
        if not names:
            names = check_headers(line)
        elif any(cell not in (None, "") for cell in line):
            if len(line) > len(names) or (even and len(line) < len(names)):
                raise TransferError(
                    f"row {number}: {len(line)} cells, but the first row has {len(names)}."
                    " Check that the file is complete"
                )
            cells = [*line, *[None] * (len(names) - len(line))]
            texts = (restore(cell) if isinstance(cell, str) else cell for cell in cells)
            table.add(number, dict(zip(names, texts, strict=True)))
    if not names:
        raise TransferError("the file is empty: the first row must name the columns")
    return table


def _sheet_rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Each row up to its last non-empty cell. The size that the sheet declares is ignored."""
    sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(), 1):
        if len(row) > MAX_COLUMNS:
            raise TransferError(f"row {number}: more than {MAX_COLUMNS} columns")
        formula = next((at for at, cell in enumerate(row, 1) if cell.data_type == "f"), None)
        if formula:
            raise TransferError(f"row {number}, column {formula}: enter a value instead of a formula")
        values = [cell.value for cell in row]
        while values and values[-1] in (None, ""):
            values.pop()
        yield number, values


def _dataset(rows: Rows, cell: Any) -> tablib.Dataset:
    dataset = tablib.Dataset()
    for row in rows:
        dataset.headers = dataset.headers or list(row)
        dataset.append([cell(name, row[name]) for name in dataset.headers])
    return dataset


def _csv_cell(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _fitting(name, _text(value), MAX_CSV_CELL)


def _xlsx_cell(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _fitting(name, to_xml(_text(value)), MAX_XLSX_CELL)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return harmless(json.dumps(value, ensure_ascii=False))
    return harmless(value) if isinstance(value, str) else str(value)


def _fitting(name: str, text: str, most: int) -> str:
    if len(text) > most:
        raise TransferError(
            f"{short(name)} has {len(text):,} characters, but a cell holds {most:,}: export as JSON"
        )
    return text
