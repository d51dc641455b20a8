"""The run page, the comparison and the downloads work if any figure is unknown."""

import io
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.admin.downloads import REPORT, TABLES
from pgperf.models import ComparisonResult, Run, VariantResult
from tests import factories
from tests.cpu_accounts import add_cpu_accounts
from tests.kept_rows import undone

#: Figures that are always known: counts, settings, and parts that exist only if measured.
KNOWN = {"clients", "pid", "seconds", "block", "levels", "ladders"}
STORED = {
    VariantResult: ("latency_us", "cold_us", "cpu_us_per_op", "cpu_account", "top", "diagnostics", "verdict"),
    Run: ("environment", "timings", "summary"),
}
COLUMNS = {
    VariantResult: ("ops_per_s", "rows_per_s", "us_per_op", "us_per_op_low", "us_per_op_high"),
    ComparisonResult: ("low", "high", "delta_low_us", "delta_high_us", "mde"),
}


def measured() -> Run:
    """With a pooler, whose figures are others, and several clients."""
    layers, routes = ("libpq", "psycopg", "django_orm"), ("socket", "pgbouncer")
    return factories.make_results(factories.make_run(), layers=layers, routes=routes, clients=(1, 8))


@pytest.fixture
def told(db: None) -> Run:
    factories.make_worker()
    return add_cpu_accounts(measured())


def forgotten(value: Any, lost: Callable[[], bool], name: str = "") -> Any:
    """The same data with unknown figures."""
    if name in KNOWN:
        return value
    if isinstance(value, dict):
        return {key: forgotten(each, lost, key) for key, each in value.items()}
    if isinstance(value, list):
        return [forgotten(each, lost, name) for each in value]
    is_figure = isinstance(value, int | float) and not isinstance(value, bool)
    return None if is_figure and lost() else value


def forget(run: Run, lost: Callable[[], bool]) -> None:
    """Writes the rows anew: that is faster than to change each."""
    compared, measured = list(run.comparisons.all()), list(run.variants.all())
    for model, rows in ((ComparisonResult, compared), (VariantResult, measured)):
        for row, column in product(rows, COLUMNS[model]):
            setattr(row, column, forgotten(getattr(row, column), lost))
    for row in [run, *measured]:
        for field in STORED[type(row)]:
            setattr(row, field, forgotten(getattr(row, field), lost))
    run.save()
    ComparisonResult.objects.filter(run=run).delete()
    VariantResult.objects.filter(run=run).delete()
    VariantResult.objects.bulk_create(measured)
    ComparisonResult.objects.bulk_create(compared)


#: Shares of figures that are unknown, with seeds that say which.
LOST = [*product((0.02, 0.1, 0.3, 0.6), range(4)), (1.0, 0)]


def test_pages_and_files_render_without_figures(admin_page: Client, told: Run) -> None:
    other = measured()
    wrong = []
    for share, seed in LOST:
        with undone():
            draw = random.Random(seed)
            forget(Run.objects.get(pk=told.pk), lambda: draw.random() < share)  # noqa: B023
            wrong += [
                f"{share} of the figures lost, seed {seed}: {each}"
                for each in faults(admin_page, told, other)
            ]
    assert wrong == [], "\n".join(wrong)


def faults(client: Client, run: Run, other: Run) -> Iterator[str]:
    """The addresses that fail, or show an unknown figure as code writes it."""
    client.raise_request_exception = False
    for url in (
        reverse("admin:pgperf_run_change", args=[run.pk]),
        reverse("admin:pgperf_run_compare", args=[run.pk]) + f"?with={other.pk}",
        reverse("admin:pgperf_run_changelist"),
        *(reverse("admin:pgperf_run_download", args=[run.pk, name]) for name in (*TABLES, REPORT)),
    ):
        response = client.get(url)
        if response.status_code != 200 or UNKNOWN.search(text_of(response.getvalue())):
            yield url


#: As code writes it: in a cell of a table or a file, or as the value of an attribute.
UNKNOWN = re.compile(rb"""[>,\s"'](None|nan|NaN)[<,\s"']""")


def text_of(content: bytes) -> bytes:
    """A workbook is an archive."""
    if not content.startswith(b"PK"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(map(archive.read, archive.namelist()))
