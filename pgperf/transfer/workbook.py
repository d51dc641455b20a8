"""Limits on a workbook, checked before openpyxl loads it: a small file can expand to many objects."""

import re
import zipfile
from collections import Counter
from io import BytesIO
from typing import Any
from xml.parsers import expat

from pgperf.core.exceptions import TransferError
from pgperf.transfer.table import MAX_COLUMNS

#: The total of the declared sizes; a reader stops at the declared size of each part.
MAX_UNPACKED_BYTES = 8 * 1024 * 1024
MAX_PARTS = 1_000
#: Elements of cells, and all others, such as styles: each becomes a Python object.
MAX_CELL_ELEMENTS = 200_000
MAX_OTHER_ELEMENTS = 20_000
#: A tag, text or comment. openpyxl's parser needs quadratic time for a long one.
MAX_PIECE = 512 * 1024

_OF_CELLS = frozenset({"row", "c", "v", "is", "t", "si"})
_LONG_PIECE = re.compile(rb"<[^<]{%d}" % MAX_PIECE)
_ENTRY = b"PK\x01\x02"  # begins each entry of an archive's directory


def checked(content: bytes) -> BytesIO:
    """The workbook, of which only the parts that passed the limits are left; others are no XML.

    Raises TransferError for a workbook that is too large, BadZipFile for a file that is not a
    workbook. It scans every part, because a workbook may give its sheets any name.
    """
    if content.count(_ENTRY) > MAX_PARTS:
        raise TransferError(f"the workbook is too large: it has more than {MAX_PARTS:,} parts")
    counted: Counter[bool] = Counter()
    kept = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as book, zipfile.ZipFile(kept, "w") as copy:
        unpacked = sum(part.file_size for part in book.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise TransferError(f"the workbook is too large: it unpacks to {unpacked / 2**20:,.0f} MiB")
        for name in book.namelist():
            xml = book.read(name)
            if _Scan(counted).is_xml(xml):
                copy.writestr(name, xml)
    return kept


class _Scan:
    """Counts the elements of one part and stops at the limit."""

    def __init__(self, counted: Counter[bool]) -> None:
        self.counted = counted
        self.in_row = 0

    def is_xml(self, part: bytes) -> bool:
        """False for an image, for broken XML, and for encodings that expat does not know or in which
        `<` is not one byte.
        """
        if b"\0" in part:
            return False
        if _LONG_PIECE.search(part):
            raise _too_long()
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._doctype
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = lambda _target, text: self._comment(text)
        try:
            parser.Parse(part, True)
        except (expat.ExpatError, ValueError, LookupError):
            return False
        return True

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

    def _comment(self, text: str) -> None:
        if len(text) > MAX_PIECE:
            raise _too_long()


def _too_long() -> TransferError:
    return TransferError(f"the workbook has a piece longer than {MAX_PIECE // 1024} KiB")
