"""A look into a workbook before its reader makes objects of it: a small file can hold very many."""

import zipfile
from collections import Counter
from contextlib import suppress
from io import BytesIO
from typing import Any
from xml.parsers import expat

from pgperf.core.exceptions import TransferError
from pgperf.transfer.table import MAX_COLUMNS, MAX_ROWS

#: What the parts say they unpack to is what any reader takes of them at most.
MAX_UNPACKED_BYTES = 16 * 1024 * 1024
#: Elements of rows, cells and their texts, and all others (styles, themes, ..), each of which becomes an object.
MAX_CELL_ELEMENTS = 4 * MAX_ROWS * MAX_COLUMNS
MAX_OTHER_ELEMENTS = 20_000

_CHUNK = 64 * 1024
_OF_CELLS = frozenset({"row", "c", "v", "is", "t", "si"})


def check(content: bytes) -> None:
    """Raises TransferError for a workbook that is too large, BadZipFile for what is none.

    Every part is looked at, whatever its name: a workbook says itself which of them are its sheets.
    """
    counted: Counter[bool] = Counter()
    with zipfile.ZipFile(BytesIO(content)) as book:
        unpacked = sum(part.file_size for part in book.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise TransferError(f"a workbook that unpacks to {unpacked / 2**20:,.0f} MiB: too large")
        for part in book.infolist():
            with (
                book.open(part) as xml,
                suppress(expat.ExpatError),
            ):  # a picture, or broken; its reader will say
                _Scan(counted).read(xml)


class _Scan:
    """Counts one part's elements, cheaply, and stops at the first that is too many."""

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
            raise TransferError(f"a row of more than {MAX_COLUMNS} columns")
        if self.counted[of_cells] > (MAX_CELL_ELEMENTS if of_cells else MAX_OTHER_ELEMENTS):
            raise TransferError("a workbook of too many parts: too large")

    def _doctype(self, *_: Any) -> None:
        raise TransferError("a workbook with a document type, which no spreadsheet writes")
