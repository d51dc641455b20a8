"""Files that are small to send and costly to read: for each limit the inputs that it is for.

Most are as long as the size limit allows.
"""

import json
import zipfile
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from openpyxl import Workbook

from pgperf.transfer.columns import MAX_NAMES, MAX_TARGETS, MAX_TARGETS_IN_FILE
from pgperf.transfer.table import MAX_BYTES, MAX_COLUMNS, MAX_ROWS
from pgperf.transfer.tree import MAX_YAML_BYTES, MAX_YAML_EVENTS
from pgperf.transfer.workbook import MAX_UNPACKED_BYTES

Files = dict[str, Callable[[], str | bytes]]
_MANY = 20_000
_MOST_TARGETS = MAX_TARGETS_IN_FILE // MAX_ROWS


def _repeated_last(count: int) -> list[str]:
    """Names of which the last two are equal."""
    return [f"key{at}" for at in range(count)] + [f"key{count - 1}"]


def filled(part: str, head: str = "", tail: str = "", most: int = MAX_BYTES) -> str:
    """`part` repeated up to the size limit; `{}` in it stands for a number."""
    length = len(part.replace("{}", "_" * 6).encode())
    count = (most - len(head.encode()) - len(tail.encode())) // length
    if "{}" not in part:
        return head + part * count + tail
    return head + "".join(part.replace("{}", str(at)) for at in range(count)) + tail


# JSON

_DATABASE = {"name": "a", "dbname": "d", "credential": "alias:default"}
_BENCHMARK = {"title": "t", "workload": "site", "layers": ["libpq"], "routes": ["tcp"], "modes": ["simple"],
              "clients": [1], "blocks": 2, "rounds": 2}  # fmt: skip


def _targets(routes: Iterable[str]) -> list[dict[str, str]]:
    return [{"route": route, "host": "localhost"} for route in routes]


def _rows(**values: Any) -> str:
    return json.dumps([{**values, "name": f"n{at}"} for at in range(MAX_ROWS)])


JSON: Files = {
    "a duplicate key": lambda: "[{" + ",".join(f'"{key}":1' for key in _repeated_last(_MANY)) + "}]",
    "a duplicate key in many": lambda: filled('"k{}":1,', "[{", '"k1":1}]'),
    "a duplicate key in a cell": lambda: filled('"k{}":1,', '[{"name":"a","lookup":{', '"k1":1}}]'),
    "many keys": lambda: filled('"k{}":1,', "[{", '"a":1}]'),
    "deep lists": lambda: filled("["),
    "deep lists in a cell": lambda: '[{"name":"a","layers":' + "[" * 900 + "]" * 900 + "}]",
    "deep objects": lambda: filled('{"a":'),
    "empty objects": lambda: filled("{},", "[", "{}]"),
    "small objects": lambda: filled('{"a":1},', "[", "{}]"),
    "empty lists in a cell": lambda: filled("[],", '[{"name":"a","layers":[', "[]]}]"),
    "short texts in a cell": lambda: filled('"ā",', '[{"name":"a","layers":[', '""]}]'),
    "names in a cell": lambda: filled('"n{}",', '[{"name":"a","routes":[', '"tcp"]}]'),
    "numbers in a cell": lambda: filled("{},", '[{"name":"a","clients":[', "1]}]"),
    "a huge text": lambda: filled("x", '[{"name":"a","title":"', '"}]'),
    "a huge choice": lambda: filled("x", '[{"name":"a","placement":"', '"}]'),
    "a huge name": lambda: filled("x", '[{"name":"', '"}]'),
    "a huge column name": lambda: filled("x", '[{"name":"a","', '":1}]'),
    "a long number": lambda: '[{"name":"a","blocks":' + "9" * 100_000 + "}]",
    "a long fraction": lambda: filled("9", '[{"name":"a","blocks":0.', "}]"),
    "long numbers": lambda: filled("9" * 400 + ",", '[{"name":"a","clients":[', "1]}]"),
    "quotes": lambda: filled('"'),
    "escaped quotes": lambda: filled('\\"', '"'),
    "backslashes": lambda: filled("\\", '["'),
    "open lists and quotes": lambda: filled('["'),
    "escapes": lambda: filled("\\u0101", '["', '"]'),
    "spaces": lambda: filled(" "),
    "wide text": lambda: filled("{},", '["\U0001f389",', "{}]"),
    "too many rows": lambda: filled('{"name":"n{}"},', "[", '{"name":"a"}]'),
    "other columns in each row": lambda: json.dumps([{"name": f"a{at}", f"c{at}": 1} for at in range(MAX_ROWS)]),
    "wrong cells": lambda: _rows(**dict.fromkeys((*_BENCHMARK, "database", "groups", "idle", "slice_ms"), "x" * 99)),
    "new benchmarks": lambda: _rows(**_BENCHMARK),
    "new databases": lambda: _rows(**_DATABASE, targets=_targets(f"r{at}" for at in range(_MOST_TARGETS))),
    "too many databases": lambda: _rows(**_DATABASE, targets=_targets(f"r{at}" for at in range(MAX_TARGETS))),
    "new workloads": lambda: _rows(title="t", sql="SELECT 1"),
    "too many targets": lambda: json.dumps([{**_DATABASE, "targets": _targets(f"r{at}" for at in range(_MANY))}]),
    "repeated targets": lambda: json.dumps([{**_DATABASE, "targets": _targets(_repeated_last(_MANY))}]),
    "repeated groups": lambda: json.dumps([{"name": "a", "groups": ["staff"] * 100_000}]),
    "repeated groups in each row": lambda: _rows(title="t", groups=["staff"] * MAX_NAMES),
    **{f"SQL of {text!r}": lambda text=text: json.dumps(  # type: ignore[misc]
            [{"name": f"n{at}", "title": "t", "sql": "SELECT " + text * (65_000 // len(text))} for at in range(30)]
        ) for text in ("(", "'", '"', "$a", "$$", "/*", "--", "\\", "%", "%s", "a b", "a(", ";", "é", "\n", " ")},
}  # fmt: skip

# YAML


def yaml_files(most: int, events: int) -> Files:
    """Where a file has at most so many bytes, and so many events of the parser."""
    keys = events // 2 - 100
    return {
        "a duplicate key": lambda: "- {" + ", ".join(f"{key}: 1" for key in _repeated_last(_MANY)) + "}\n",
        "a duplicate key in many": lambda: "- {" + ", ".join(f"{key}: 1" for key in _repeated_last(keys)) + "}\n",
        "many keys": lambda: filled("  k{}: 1\n", "- name: a\n", most=most),
        "deep lists": lambda: filled("[", most=most),
        "deep dashes": lambda: filled("- ", most=most),
        "deep maps": lambda: filled("{a: ", most=most),
        "deep questions": lambda: filled("? ", most=most),
        "aliases": lambda: "- &a [x]\n" + "".join(
            f"- &{chr(98 + at)} [{','.join(['*' + chr(97 + at)] * 9)}]\n" for at in range(20)
        ),
        "anchors": lambda: filled("- &a{} x\n", most=most),
        "merge keys": lambda: "- " + "{<<: " * 90 + "{a: 1}" + "}" * 90 + "\n",
        "a huge text": lambda: filled("x", "- {name: a, title: ", "}", most),
        "a folded text": lambda: filled("  x\n", "- name: a\n  title: >\n", most=most),
        "a plain text of lines": lambda: filled("   x\n", "- name: a\n  title:\n", most=most),
        "a long number": lambda: filled("9", "- {name: a, blocks: ", "}", most),
        "a long binary number": lambda: filled("1", "- {name: a, blocks: 0b", "}", most),
        "a long number in base 60": lambda: filled(":1", "- {name: a, blocks: 1", "}", most),
        "a long fraction in base 60": lambda: filled(":1", "- {name: a, blocks: 1", ":1.5}", most),
        "numbers": lambda: filled("1,", "- {name: a, clients: [", "1]}", most),
        "brackets": lambda: filled("[],", "- {name: a, clients: [", "[]]}", most),
        "quotes": lambda: filled('"', most=most),
        "escapes": lambda: filled("\\x41", '- "', '"\n', most),
        "colons": lambda: filled(":", most=most),
        "directives": lambda: filled("%a\n", most=most),
        "empty lines": lambda: filled("\n", "- name:", "\n  a", most),
        "comments": lambda: filled("#\n", "- name:", "\n  a", most),
        "a huge tag": lambda: filled("x", "- !!", " a\n", most),
        "a huge alias": lambda: filled("x", "- *", "\n", most),
        "a tagged map": lambda: "- !!omap [" + ",".join(f"{{k{at}: 1}}" for at in range(_MANY)) + "]\n",
        "documents": lambda: filled("--- a\n", most=most),
        "too many rows": lambda: filled("- {name: n{}}\n", most=most),
    }  # fmt: skip


YAML = yaml_files(MAX_YAML_BYTES, MAX_YAML_EVENTS)

# CSV

_FULL = [*(f"c{at}" for at in range(MAX_COLUMNS - 1)), "name"]


def _lines(*rows: Iterable[str]) -> str:
    return "\n".join(",".join(row) for row in rows)


CSV: Files = {
    "a duplicate column": lambda: _lines(_repeated_last(_MANY), "a"),
    "a duplicate column at the limit": lambda: _lines(_repeated_last(MAX_COLUMNS - 1), "a"),
    "many columns": lambda: filled("k{},"),
    "empty columns": lambda: filled(","),
    "short columns": lambda: filled("ā,"),
    "wide columns": lambda: filled("ab,", "\U0001f389"),
    "empty columns below": lambda: filled(",", "name\n"),
    "a huge cell": lambda: filled("x", "name\n"),
    "a huge quoted cell": lambda: filled("x", 'name\n"'),
    "quotes": lambda: filled('"'),
    "quotes in a cell": lambda: filled('"', 'name\n"', '"\n'),
    "empty lines": lambda: filled("\n", "name"),
    "lines of commas": lambda: filled(",\n", "name,title\n"),
    "too many rows": lambda: filled("n{}\n", "name\n"),
    "cells": lambda: _lines(_FULL, *[["x"] * MAX_COLUMNS] * MAX_ROWS),
    "lists in cells": lambda: _lines(
        ["name", "args", "other_args", "values"],
        *([f"n{at}", *[f'"[{"1," * 1700}1]"'] * 3] for at in range(MAX_ROWS)),
    ),
    "deep lists in cells": lambda: _lines(["name", "args"], *([f"n{at}", "[" * 9000] for at in range(MAX_ROWS))),
    "duplicate keys in cells": lambda: _lines(
        ["name", "lookup"],
        *(
            [f"n{at}", '"{' + ",".join(f'""{key}"":1' for key in _repeated_last(700)) + '}"']
            for at in range(MAX_ROWS)
        ),
    ),
    "formulas": lambda: filled("'=1,", "name\n", "\n"),
    "apostrophes": lambda: filled("'" * 131_000 + "\n", "name\n"),
    "lines in cells": lambda: filled('"' + "\n" * 131_000 + '"\n', "name\n"),
    "separators in cells": lambda: filled('"' + ";" * 131_000 + '"\n', "name\n"),
}  # fmt: skip

# XLSX

SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SHEET = "xl/worksheets/sheet1.xml"
_LINKS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TEXT = '<c t="inlineStr"><is><t>{}</t></is></c>'


def sheet(rows: str, attributes: str = "") -> str:
    return f"<worksheet {SPACE}{attributes}><sheetData>{rows}</sheetData></worksheet>"


def workbook(parts: dict[str, str]) -> bytes:
    """A workbook with the cell "name", and these parts instead of its own of the same path."""
    made, stream, out = Workbook(), BytesIO(), BytesIO()
    assert made.active
    made.active.append(["name"])
    made.save(stream)
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for path in old.namelist():
            new.writestr(path, parts.get(path) or old.read(path))
        for path in parts.keys() - set(old.namelist()):
            new.writestr(path, parts[path])
    return out.getvalue()


def _long(part: str, head: str = "", tail: str = "") -> bytes:
    """A workbook whose sheet is almost as long as the limit allows."""
    frame = sheet("") + head + tail
    body = filled(part, most=MAX_UNPACKED_BYTES - 64 * 1024 - len(frame.encode()))
    return workbook({SHEET: sheet(head + body + tail)})


def _sheets(count: int) -> bytes:
    sheets = "".join(f'<sheet name="s{at}" sheetId="{at + 1}" r:id="r{at}"/>' for at in range(count))
    target = f'Type="{_KIND}/worksheet" Target="worksheets/sheet1.xml"'
    links = "".join(f'<Relationship Id="r{at}" {target}/>' for at in range(count))
    return workbook(
        {
            "xl/workbook.xml": f'<workbook {SPACE} xmlns:r="{_KIND}"><sheets>{sheets}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f"<Relationships {_LINKS}>{links}</Relationships>",
        }
    )


def _styles(part: str, element: str) -> bytes:
    found = "".join(element.replace("{}", str(164 + at)) for at in range(19_000))
    return workbook({"xl/styles.xml": f"<styleSheet {SPACE}><{part}>{found}</{part}></styleSheet>"})


def _strings(body: str) -> bytes:
    return workbook({"xl/sharedStrings.xml": f"<sst {SPACE}>{body}</sst>"})


XLSX: Files = {
    "a zip bomb": lambda: workbook({SHEET: sheet(" " * (100 * MAX_UNPACKED_BYTES // 4))}),
    "a zip bomb below the limit": lambda: _long(" "),
    "many parts": lambda: workbook({f"x{at}": "" for at in range(18_000)}),
    "many sheets": lambda: _sheets(9_000),
    "many columns": lambda: workbook({SHEET: sheet(f"<row>{'<c/>' * 500_000}</row>")}),
    "many columns in one row": lambda: _long("<c/>", "<row>", "</row>"),
    "empty cells": lambda: workbook({SHEET: sheet(f"<row>{'<c/>' * MAX_COLUMNS}</row>" * 1_900)}),
    "empty rows": lambda: workbook({SHEET: sheet("<row/>" * 190_000)}),
    "cells": lambda: workbook({SHEET: sheet(f"<row>{'<c><v>1</v></c>' * MAX_COLUMNS}</row>" * 900)}),
    "texts": lambda: workbook({SHEET: sheet(f"<row>{_TEXT * MAX_COLUMNS}</row>" * 490)}),
    "cells in one place": lambda: workbook(
        {SHEET: sheet("<row>" + '<c r="A1"/>' * 90 + "</row>" + '<row r="1"/>' * 99_000)}
    ),
    "a far row": lambda: workbook({SHEET: sheet('<row r="1"><c><v>1</v></c></row><row r="99999999"><c/></row>')}),
    "a far column": lambda: workbook({SHEET: sheet('<row r="1"><c r="ZZZ1"><v>1</v></c></row>' * 9_000)}),
    "shared strings": lambda: _strings("<si><t>a</t></si>" * 98_000),
    "a rich string": lambda: _strings("<si>" + "<r><t>a</t></r>" * 9_000 + "</si>"),
    "styles": lambda: _styles("cellXfs", "<xf/>"),
    "fonts": lambda: _styles("fonts", "<font/>"),
    "number formats": lambda: _styles("numFmts", '<numFmt numFmtId="{}" formatCode="x{}"/>'),
    "attributes": lambda: workbook(
        {SHEET: sheet("", "".join(f' a{at}=""' for at in range(MAX_UNPACKED_BYTES // 12)))}
    ),
    "attributes below the limit": lambda: workbook(
        {SHEET: sheet(("<row" + "".join(f' a{at}=""' for at in range(49_000)) + "/>") * 14)}
    ),
    "a long attribute": lambda: workbook({SHEET: sheet("", f' a="{"x" * (MAX_UNPACKED_BYTES - 64 * 1024)}"')}),
    "a long text": lambda: _long("x", '<row><c t="inlineStr"><is><t>', "</t></is></c></row>"),
    "a long comment": lambda: _long("<x", "<!--", "-->"),
    "a long instruction": lambda: _long("<x", "<?a ", "?>"),
    "a long CDATA section": lambda: _long("<x", '<row><c t="inlineStr"><is><t><![CDATA[', "]]></t></is></c></row>"),
    "lines of text": lambda: _long("\n", '<row><c t="inlineStr"><is><t>', "</t></is></c></row>"),
    "references": lambda: _long("&#65;", '<row><c t="inlineStr"><is><t>', "</t></is></c></row>"),
    "deep elements": lambda: workbook({SHEET: sheet("<a>" * 19_000 + "</a>" * 19_000)}),
    "a long number": lambda: workbook({SHEET: sheet(f"<row><c><v>{'9' * 500_000}</v></c></row>")}),
    "entities": lambda: workbook({SHEET: "<!DOCTYPE a [" + "".join(
        f'<!ENTITY e{at} "{f"&e{at - 1};" * 10 if at else "lol"}">' for at in range(12)
    ) + "]><worksheet>&e11;</worksheet>"}),
    "defined names": lambda: workbook(
        {"xl/workbook.xml": f"<workbook {SPACE}><definedNames>" + "<definedName name='a'>x</definedName>" * 19_000
                            + "</definedNames></workbook>"}
    ),
    "merged cells": lambda: workbook(
        {SHEET: sheet("").replace("</worksheet>", "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 19_000
                                  + "</mergeCells></worksheet>")}
    ),
}  # fmt: skip

FILES: dict[str, Files] = {"json": JSON, "yaml": YAML, "csv": CSV, "xlsx": XLSX}
