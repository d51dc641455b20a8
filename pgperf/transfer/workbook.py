"""Limits on a workbook, checked before openpyxl loads it: a small file can expand to many objects."""

import zipfile
from collections import Counter
from contextlib import suppress
from io import BytesIO
from typing import Any
from xml.parsers import expat

from pgperf.core.exceptions import TransferError
from pgperf.transfer.table import MAX_COLUMNS, MAX_ROWS

#: The total of the declared sizes; a reader stops at the declared size of each part.
MAX_UNPACKED_BYTES = 16 * 1024 * 1024
#: Elements of cells, and all others, such as styles: each becomes a Python object.
MAX_CELL_ELEMENTS = 4 * MAX_ROWS * MAX_COLUMNS
MAX_OTHER_ELEMENTS = 20_000

_CHUNK = 64 * 1024
_OF_CELLS = frozenset({"row", "c", "v", "is", "t", "si"})


def check(content: bytes) -> None:
    """Raises TransferError for a workbook that is too large, BadZipFile for a file that is not a
    workbook.

    It scans every part, because a workbook may give its sheets any name.
    """
    counted: Counter[bool] = Counter()
    with zipfile.ZipFile(BytesIO(content)) as book:
        unpacked = sum(part.file_size for part in book.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise TransferError(f"the workbook is too large: it unpacks to {unpacked / 2**20:,.0f} MiB")
        for part in book.infolist():
            with (
                book.open(part) as xml,
                suppress(expat.ExpatError),
            ):  # an image, or broken XML, which openpyxl reports
                _Scan(counted).read(xml)


class _Scan:
    """Counts the elements of one part and stops at the limit."""

    def __init__(self, counted: Counter[bool]) -> None:
        self.counted = counted
        self.in_row = 0

    def read(self, xml: Any) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._doctype
        while chunk := xml.read(_CHUNK):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)

    def _element(self, name: str, _attributes: Any) -> None:
        name = name.rpartition(" ")[2]
        self.in_row = 0 if name == "row" else self.in_row + (name == "c")
        of_cells = name in _OF_CELLS
        self.counted[of_cells] += 1
        if self.in_row > MAX_COLUMNS:
            raise TransferError(f"a row has more than {MAX_COLUMNS} columns")
        if self.counted[of_cells] > (MAX_CELL_ELEMENTS if of_cells else MAX_OTHER_ELEMENTS):
            raise TransferError("the workbook is too large: it has too many elements")

    def _doctype(self, *_: Any) -> None:
        raise TransferError("the workbook has a document type declaration, which spreadsheets do not write")
