"""A hostile server, driver or host decides on texts of a result: versions, settings, wait events,
names of processes, errors.

Pages and files show them as text: no text becomes an element, an attribute or a formula.
"""

import csv
import io
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse

from pgperf.admin.downloads import RAW
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

FILES = (
    "variants.csv", "comparisons.csv", "scaling.csv", "timeline.csv", "top.csv", "variants.xlsx", "comparisons.xlsx",
)  # fmt: skip

ENVIRONMENT: dict[str, Any] = {
    "pgperf": "0.1.0",
    "python": "3.11.7",
    "idle": {"idle": "awake", "note": "note"},
    "layers": {
        "libpq": {"libpq": "18.6", "client": "0.1.0"},
        "django_orm": {"driver": "psycopg", "driver_version": "3.3.9", "django": "5.2", "instrumentation": ["silk"]},
    },
    "pooler": {"name": "pgbouncer", "version": "PgBouncer 1.18.0"},
    "server": {"server_version": "18.6", "jit": "on", "ssl": "off", "shared_buffers": "128MB"},
    "machine": {"kernel": "6.18", "system": "Linux", "processor": "CPU", "governor": "g", "clocksource": "tsc"},
    "packages": {"Django": "5.2.19", "psycopg": "3.3.9"},
    "placement": {"note": "note", "placement": "apart", "server": [1], "clients": [0]},
    "access": {"socket": "reads"},
    "can_write": "role",
}  # fmt: skip


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hostile_run(run: Run, text: str) -> Run:
    """The run with the text in place of each text that a measured host or server may choose."""
    factories.make_blocks(run)
    run.environment = replaced(ENVIRONMENT, text)
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


@pytest.mark.parametrize("status", [Run.Status.DONE, Run.Status.FAILED])
def test_pages_show_the_text_as_text(
    admin_page: Client, hostile_run: Run, text: str, status: str, settings: Any
) -> None:
    Run.objects.filter(pk=hostile_run.pk).update(status=status)
    other = factories.make_results(factories.make_run())
    addresses = [
        reverse("admin:pgperf_run_change", args=[hostile_run.pk]),
        reverse("admin:pgperf_run_changelist"),
        reverse("admin:pgperf_run_compare", args=[hostile_run.pk]) + f"?with={other.pk}",
    ]
    for address in addresses:
        response = admin_page.get(address)
        assert response.status_code == 200, address
        page = response.content.decode()
        assert "script" in Elements(page).names  # the parser has read the page
        assert not any("hostile" in name for name in Elements(page).names), address
        assert settings.SECRET_KEY not in page


def test_the_progress_of_a_run_is_json(admin_page: Client, hostile_run: Run, text: str) -> None:
    Run.objects.filter(pk=hostile_run.pk).update(status=Run.Status.RUNNING, finished_at=None)
    response = admin_page.get(reverse("admin:pgperf_run_progress", args=[hostile_run.pk]))
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content)


@pytest.mark.parametrize("name", [*FILES, RAW])
def test_no_cell_of_a_file_is_a_formula(admin_page: Client, hostile_run: Run, name: str) -> None:
    response = admin_page.get(reverse("admin:pgperf_run_download", args=[hostile_run.pk, name]))
    assert response.status_code == 200
    found = list(cells(name, response.getvalue()))
    assert found
    assert [cell for cell in found if not number(cell) and harmless(unharmed(cell)) != cell] == []


def test_the_json_of_a_run_has_the_text(hostile_run: Run, text: str) -> None:
    assert json.loads(json.dumps(run_json.run_json(hostile_run)))["run"]["environment"]["python"] == text


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
