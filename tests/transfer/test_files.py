"""File formats: an export imports unchanged, and a hostile file only gives an error."""

import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgperf.core.exceptions import TransferError
from pgperf.transfer import files, workbook
from pgperf.transfer.sheet import MAX_XLSX_CELL
from pgperf.transfer.table import MAX_BYTES, MAX_COLUMNS, MAX_ROWS, ImportTable
from pgperf.transfer.workbook import MAX_OTHER_ELEMENTS, MAX_UNPACKED_BYTES
from tests.transfer.hostile_workbooks import DOCUMENT_TYPES, ENCODINGS, book, parts, rewritten

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
TRICKY = st.text(alphabet=st.sampled_from("'=+-@＝\t\r\n x_0aFD\x0b\u200b\u2028\",;|#N/A"), max_size=20)
VALUE = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT | TRICKY
CELL = VALUE | st.lists(VALUE, max_size=3)
ROWS = st.lists(
    st.fixed_dictionaries({"name": st.from_regex(r"[a-z]{1,9}", fullmatch=True), "a": CELL, "b": CELL}),
    min_size=1,
    max_size=4,
)


def read(name: str, content: bytes | str) -> ImportTable:
    return files.read(name, content.encode() if isinstance(content, str) else content)


def refusal(name: str, content: bytes | str) -> str:
    with pytest.raises(TransferError) as caught:
        read(name, content)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def as_flat(value: Any) -> Any:
    """The value as a spreadsheet holds it: as text."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


@pytest.mark.parametrize("kind", list(files.FORMATS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_an_export_imports_unchanged(kind: str, rows: list[dict[str, Any]]) -> None:
    table = read(f"x.{kind}", files.write(kind, rows))
    if table.flat:
        shown = [{name: as_flat(value) for name, value in row.items()} for row in table.rows]
        assert shown == [{name: as_flat(value) for name, value in row.items()} for row in rows]
    else:
        assert table.rows == rows


def test_rows_are_numbered_as_users_see_them() -> None:
    assert read("x.json", '[{"name": "a"}, {"name": "b"}]').numbers == [1, 2]
    assert read("x.csv", 'name\n"a\nx"\n\nb\n').numbers == [2, 4]


def test_a_byte_order_mark_is_ignored() -> None:
    assert read("x.csv", b"\xef\xbb\xbfname\na\n").rows == [{"name": "a"}]
    assert read("x.JSON", b'\xef\xbb\xbf[{"name": "a"}]').rows == [{"name": "a"}]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.txt", "name", "must end in .json"),
        ("x", "name", "must end in"),
        ("x.json", "", "line 1"),
        ("x.json", '[{"name": "a"', "line 1 column 14"),
        ("x.json", "[]", "no rows"),
        ("x.json", "{}", "a list of objects"),
        ("x.json", "[1]", "row 1"),
        ("x.json", '[{"name": "a", "name": "b"}]', "'name' appears twice"),
        ("x.json", '[{"name": NaN}]', "NaN"),
        ("x.json", "[" * 100_000, "nested too deeply"),
        ("x.json", '[{"name": ' + "9" * 5000 + "}]", "digits"),
        ("x.json", b"\xff\xfe", "UTF-8"),
        ("x.json", b"PK\x03\x04\xff", "UTF-8"),
        ("x.json", json.dumps([{"name": "a"}] * (MAX_ROWS + 1)), "150 rows"),
        ("x.json", json.dumps([{str(at): 1 for at in range(101)}]), "100 values"),
        ("x.csv", "", "must name the columns"),
        ("x.csv", "name\n", "no rows"),
        ("x.csv", ",\na,b\n", "must name the columns"),
        ("x.csv", "name,\na,b\n", "column 2 has no name"),
        ("x.csv", "name,name\na,b\n", "'name' appears twice"),
        ("x.csv", "name,title\na\n", "row 2: 1 cells"),
        ("x.csv", "name\na,b\n", "row 2: 2 cells"),
        ("x.csv", 'name,title\na,"b', "the file is complete"),
        ("x.csv", "name\n" + "a" * 140_000, "the file is complete"),
        ("x.csv", "name\n" + "a\n" * (MAX_ROWS + 1), "150 rows"),
        ("x.csv", ",".join(f"c{at}" for at in range(101)), "100 columns"),
        ("x.csv", b"name\n\xe9\n", "byte 6"),
        ("x.xlsx", "", "readable workbook"),
        ("x.xlsx", "name\na\n", "readable workbook"),
        ("x.xlsx", b"PK\x03\x04" + b"\0" * 100, "readable workbook"),
        ("x.yaml", "", "a list of objects"),
        ("x.yaml", "- {name: a", "invalid YAML"),
        ("x.yaml", "- name: a\n  name: b\n", "twice"),
        ("x.yaml", "- &a {name: x}\n- *a\n", "aliases"),
        ("x.yaml", "- !!python/object/apply:os.system ['true']\n", "invalid YAML"),
        ("x.yaml", "[" * 20_000 + "]" * 20_000, "nested too deeply"),
        ("x.yaml", "- name: \x00\n", "invalid YAML"),
        ("x.yaml", "#" * 600_000, "512 KiB"),
        ("x.yaml", "- [" + "a," * 40_000 + "a]", "too many values"),
        ("x.yml", "- {? [a] : b}\n", "invalid YAML"),
        ("x.yml", "- name: !!str a\n", "tags"),
        ("x.yml", "- name: !a b\n", "tags"),
    ],
)
def test_an_unreadable_file_gives_an_error(name: str, content: bytes | str, says: str) -> None:
    assert says in refusal(name, content)


def test_a_file_above_the_size_limit_is_refused() -> None:
    assert "larger than 2 MiB" in refusal("x.json", b" " * (MAX_BYTES + 1))


def test_a_yaml_date_stays_text() -> None:
    assert read("x.yaml", "- name: 2026-11-21\n").rows == [{"name": "2026-11-21"}]


# Workbooks


SHEET = "xl/worksheets/sheet1.xml"
SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def test_a_hand_made_workbook_is_read() -> None:
    table = read("x.xlsx", book(["name", "blocks", "production"], ["a", 6, True], [], ["b", None, None]))
    assert table.rows == [
        {"name": "a", "blocks": 6, "production": True},
        {"name": "b", "blocks": None, "production": None},
    ]
    assert table.numbers == [2, 4]


def test_a_formula_is_refused() -> None:
    assert "row 2, column 2: enter a value" in refusal("x.xlsx", book(["name", "title"], ["a", "=1+1"]))


def test_a_truncated_workbook_is_refused() -> None:
    whole = book(["name"], ["a"])
    for length in range(0, len(whole), 97):
        assert "readable workbook" in refusal("x.xlsx", whole[:length])


def test_a_zip_bomb_is_not_unpacked() -> None:
    bomb = rewritten(book(["name"], ["a"]), SHEET, "<a/>" * (MAX_UNPACKED_BYTES // 4 + 1))
    assert len(bomb) < MAX_BYTES
    tracemalloc.start()
    try:
        assert "too large" in refusal("x.xlsx", bomb)
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


def test_the_limits_hold_for_a_sheet_of_any_name() -> None:
    whole = book(["name"], ["a"])
    with zipfile.ZipFile(BytesIO(whole)) as parts:
        links = parts.read("xl/_rels/workbook.xml.rels").decode().replace("sheet1.xml", "sheet1.png")
        types = parts.read("[Content_Types].xml").decode().replace("sheet1.xml", "sheet1.png")
    for part, text in (("xl/_rels/workbook.xml.rels", links), ("[Content_Types].xml", types)):
        whole = rewritten(whole, part, text)
    stream = BytesIO(whole)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as parts:
        row = "<c/>" * (MAX_COLUMNS + 1)
        parts.writestr(
            "xl/worksheets/sheet1.png",
            f"<worksheet {SPACE}><sheetData><row>{row}</row></sheetData></worksheet>",
        )
    assert "100 columns" in refusal("x.xlsx", stream.getvalue())


def test_a_workbook_with_an_image_is_read() -> None:
    stream = BytesIO(book(["name"], ["a"]))
    with zipfile.ZipFile(stream, "a") as parts:
        parts.writestr("xl/media/image1.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert read("x.xlsx", stream.getvalue()).rows == [{"name": "a"}]


def test_too_many_elements_are_refused() -> None:
    styles = f"<styleSheet {SPACE}><cellXfs>{'<xf/>' * MAX_OTHER_ELEMENTS}</cellXfs></styleSheet>"
    assert "too large" in refusal("x.xlsx", rewritten(book(["name"]), "xl/styles.xml", styles))


@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        (f'<worksheet {SPACE}><sheetData><row><c><v>1</v></c></row><row r="9999999"/></sheetData></worksheet>', "line"),
        (f'<worksheet {SPACE}><sheetData><row r="1"><c r="XFD1"><v>1</v></c></row></sheetData></worksheet>', "columns"),
        (f'<worksheet {SPACE}><sheetData><row r="x"><c><v>1</v></c></row></sheetData></worksheet>', "readable"),
        (f'<worksheet {SPACE}><dimension ref="A1:XFD1048576"/><sheetData/></worksheet>', "must name the columns"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><worksheet>&b;</worksheet>', "document type"),
        (f"<worksheet {SPACE}><sheetData><row>{'<c/>' * 101}</row></sheetData></worksheet>", "100 columns"),
        (f"<worksheet {SPACE}><sheetData>{'<row/>' * 900_000}</sheetData></worksheet>", "too large"),
        ("<worksheet>", "readable workbook"),
    ],
)  # fmt: skip
def test_a_hostile_sheet_is_refused(sheet: str, says: str) -> None:
    assert says in refusal("x.xlsx", rewritten(book(["name"], ["a"]), SHEET, sheet))


def test_xml_entities_are_refused() -> None:
    entities = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10 if at else "lol"}">' for at in range(12))
    sheet = (
        f"<!DOCTYPE a [{entities}]><worksheet {SPACE}><sheetData><row><c t='inlineStr'><is><t>&e11;</t></is></c></row>"
        "</sheetData></worksheet>"
    )
    assert "document type" in refusal("x.xlsx", rewritten(book(["name"]), SHEET, sheet))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("document_type", DOCUMENT_TYPES.values(), ids=list(DOCUMENT_TYPES))
def test_no_entity_reaches_the_parser_of_openpyxl(document_type: str, encoding: str) -> None:
    """openpyxl uses lxml where it is installed, which resolves entities that others refuse."""
    head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [{document_type}]>'
    for part in parts(book(["name"], ["a"])):
        hostile = rewritten(book(["name"], ["a"]), part, f"{head}<a b='&e11;'>&e11;</a>".encode(encoding))
        assert part not in kept_parts(hostile)


def kept_parts(content: bytes) -> list[str]:
    """The parts that openpyxl gets; none of a workbook that is refused for its document type."""
    try:
        return zipfile.ZipFile(workbook.checked(content)).namelist()
    except TransferError as error:
        if "document type" not in str(error):
            raise
        return []


@pytest.mark.parametrize("lxml", [True, False])
def test_an_entity_is_refused_whatever_parser_openpyxl_uses(lxml: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.transfer.hostile_workbooks"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENPYXL_LXML": str(lxml)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["lxml"] is lxml
    assert set(found["outcomes"]) == {"refused", "as without the part"}
    assert found["outcomes"]["refused"] > len(DOCUMENT_TYPES) * len(ENCODINGS)


def test_a_value_too_long_for_a_cell_is_refused() -> None:
    with pytest.raises(TransferError, match="'title' has 32,768 characters"):
        files.write("xlsx", [{"name": "a", "title": "x" * (MAX_XLSX_CELL + 1)}])
    with pytest.raises(TransferError, match="export as JSON"):
        files.write("csv", [{"name": "a", "title": "x" * 131_073}])
    assert read("x.csv", files.write("csv", [{"name": "a", "title": "x" * 131_072}])).rows
