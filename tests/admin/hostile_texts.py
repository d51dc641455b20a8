"""Texts that a hostile server, driver or host may choose, and checks that pages and files show them
as text: none becomes an element, an attribute or a formula.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import openpyxl
from django.conf import settings
from django.test import Client
from django.urls import reverse

from pgperf.admin import several
from pgperf.core.formula_injection import harmless, unharmed
from pgperf.models import Run, VariantResult
from pgperf.reports import run_json
from tests import factories

TEXTS = (
    "<pgperf-hostile>",
    "</script><pgperf-hostile>",
    "</textarea></style></title></template><pgperf-hostile>",
    "--><pgperf-hostile>",
    "\" pgperf-hostile='",
    "' pgperf-hostile=\"",
    "{{ settings.SECRET_KEY }}{% pgperf-hostile %}",
    '=HYPERLINK("http://x")',
    'x;=HYPERLINK("http://x")',
    "＝cmd|' /C calc'!A0",
    "\u202egnp.exe\u2028\ufeff",
    "\\u0000\ufffd\x7f\x1b[31m",
    "9" * 200,
)


def make_hostile(run: Run, text: str) -> Run:
    """Put the text in place of each text that a measured host or server may choose."""
    factories.make_blocks(run)
    run.environment = replaced(factories.ENVIRONMENT, text)
    run.error = f"libpq over socket: {text}"
    run.message = text
    run.save()
    VariantResult.objects.filter(run=run).update(
        top={
            "seconds": 0.3,
            "host": {"us": 16.4, "sy": 13.1, "id": 54.0, "load1": 2.8},
            "processes": [
                {"pid": 7, "name": text, "role": "server", "cpu_s": 0.1, "rss_bytes": 9, "cpu_percent": 4.0}
            ],
        },
        diagnostics={
            "notes": {"pooler": text, "statements": text},
            "events": {text: 0.7},
            "wait_events": {text: 0.7, "CPU": 0.3},
            "states": {text: 0.5, "active": 0.5},
            "samples": 30, "seconds": 0.3, "backends": 1.0, "pooler": None,
            "statements": {"as_expected": True, "rows_per_op": 1.0, "calls_per_op": 1.0},
        },
    )  # fmt: skip
    return run


def replaced(value: Any, text: str) -> Any:
    """The same JSON with the text for each string and for one key of each object."""
    if isinstance(value, dict):
        return {**{key: replaced(part, text) for key, part in value.items()}, text: text}
    if isinstance(value, list):
        return [replaced(part, text) for part in value]
    return text if isinstance(value, str) else value


class Elements(HTMLParser):
    """Collects names of elements and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.update({tag, *(name for name, _value in attrs)})


def assert_harmless(page: str, address: str) -> None:
    names = Elements(page).names
    assert "script" in names  # the parser has read the page
    assert not any("hostile" in name for name in names), address
    assert settings.SECRET_KEY not in page


def assert_pages_are_harmless(client: Client, run: Run, other: Run) -> str:
    """Returns the page of the run."""
    addresses = [
        reverse("admin:pgperf_run_change", args=[run.pk]),
        reverse("admin:pgperf_run_changelist"),
        reverse("admin:pgperf_run_compare", args=[run.pk]) + f"?with={other.pk}",
    ]
    files = [
        reverse("admin:pgperf_run_comparison_file", args=[name]) + several.link([run.pk, other.pk])
        for name in several.FILES
    ]
    comparable = measured(run) & measured(other)
    for address in files:
        response = client.get(address)
        assert response.status_code == (200 if comparable else 404), address
        if comparable and address.count("report.html"):
            assert_report_is_harmless(response.content.decode(), address)
    addresses.append(reverse("admin:pgperf_run_comparison") + several.link([run.pk, other.pk]))
    responses = [client.get(address) for address in addresses]
    for address, response in zip(addresses, responses, strict=True):
        assert response.status_code == 200, address
        assert_harmless(response.content.decode(), address)
    return str(responses[0].content.decode())


def measured(run: Run) -> set[tuple[str, str]]:
    """What of a run can be compared with another's."""
    return {(row.layer, row.route) for row in run.variants.filter(ops__gt=0)}


def assert_file_is_harmless(client: Client, run: Run, name: str) -> None:
    response = client.get(reverse("admin:pgperf_run_download", args=[run.pk, name]))
    assert response.status_code == 200, name
    if name.endswith("html"):
        assert_report_is_harmless(response.getvalue().decode(), name)
        return
    found = list(cells(name, response.getvalue()))
    assert found, name
    assert [cell for cell in found if not number(cell) and harmless(unharmed(cell)) != cell] == [], name


def assert_report_is_harmless(report: str, name: str) -> None:
    """No text became an element or an attribute, and nothing in the file acts or asks for anything."""
    names = Elements(report).names
    assert {"svg", "table"} <= names or "no results" in report  # the parser has read the file
    assert not any("hostile" in each or each.startswith("on") for each in names), name
    assert not names & {"script", "img", "iframe", "object", "embed", "form", "link", "base", "src", "srcdoc"}
    assert not re.search(r"(?i)url\(|@import|javascript:", report), name
    assert settings.SECRET_KEY not in report


def read_back(run: Run) -> Any:
    """The JSON of the run, written and read."""
    return json.loads(json.dumps(run_json.run_json(run)))


def cells(name: str, content: bytes) -> Iterator[str]:
    """The texts of a CSV or XLSX file."""
    if name.endswith("csv"):
        for row in csv.reader(io.StringIO(content.decode("utf-8-sig"))):
            yield from row
        return
    for sheet in openpyxl.load_workbook(io.BytesIO(content)).worksheets:
        for line in sheet.iter_rows():
            assert all(cell.data_type != "f" for cell in line)
            yield from (cell.value for cell in line if isinstance(cell.value, str))


def number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
