"""Workbooks whose parts declare XML entities, and a program that reads each of them.

    OPENPYXL_LXML=True python -m tests.transfer.hostile_workbooks

openpyxl chooses its parser when it is imported, so a test of the other one takes a process of its
own. The program prints whether openpyxl uses lxml, and how often each outcome came.
"""

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import django
import openpyxl

from pgperf.core.exceptions import TransferError
from pgperf.transfer import files

DOCUMENT_TYPES = {
    "an entity": '<!ENTITY e11 "lol">',
    "nested entities": "".join(
        f'<!ENTITY e{at} "{f"&e{at - 1};" * 10 if at else "lol"}">' for at in range(12)
    ),
    "external entity": '<!ENTITY e11 SYSTEM "file:///etc/passwd">',
    "parameter entity": '<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY e11 "x">',
}
ENCODINGS = (
    "utf-8", "utf-8-sig", "ascii", "latin-1", "shift_jis", "gb18030", "utf-7", "hz", "cp037", "utf-16", "utf-32",
)  # fmt: skip
ROWS = [{"name": "a"}]


def book(*rows: list[Any]) -> bytes:
    made = openpyxl.Workbook()
    assert made.active
    for row in rows:
        made.active.append(row)
    stream = BytesIO()
    made.save(stream)
    return stream.getvalue()


def rewritten(content: bytes, part: str, text: str | bytes) -> bytes:
    """The workbook with one of its parts replaced."""
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, text if name == part else old.read(name))
    return stream.getvalue()


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def all_hostile() -> Iterator[bytes]:
    """Each part of a workbook of ROWS with each document type in each encoding, and its first text
    or attribute as a reference to the entity.
    """
    plain = book(["name"], ["a"])
    for part, xml in parts(plain).items():
        for declared in DOCUMENT_TYPES.values():
            for encoding in ENCODINGS:
                yield rewritten(plain, part, _with_entity(xml.decode(), declared, encoding))


def _with_entity(xml: str, declared: str, encoding: str) -> bytes:
    root = xml[xml.index("?>") + 2 :] if xml.startswith("<?") else xml
    used = root.replace(">a<", ">&e11;<").replace('="Sheet"', '="&e11;"')
    head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [{declared}]>'
    return f"{head}{used.strip()}".encode(encoding, "xmlcharrefreplace")


def outcome(content: bytes) -> str:
    try:
        rows = files.read("x.xlsx", content).rows
    except TransferError:
        return "refused"
    return "as without the part" if rows == ROWS else str(rows)[:500]


if __name__ == "__main__":
    django.setup()
    print(json.dumps({"lxml": openpyxl.LXML, "outcomes": Counter(map(outcome, all_hostile()))}))
