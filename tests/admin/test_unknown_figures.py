"""The run page, the comparison and the downloads work if any figure is unknown."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.admin.downloads import REPORT, TABLES
from pgperf.models import ComparisonResult, Run, VariantResult
from tests import factories
from tests.cpu_accounts import add_cpu_accounts

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


@pytest.fixture
def told(db: None) -> Run:
    factories.make_worker()
    return add_cpu_accounts(
        factories.make_results(
            factories.make_run(), layers=("libpq", "psycopg", "django_orm"), clients=(1, 8)
        )
    )


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
    for model, columns in COLUMNS.items():
        for row in model.objects.filter(run=run):
            for column in columns:
                setattr(row, column, forgotten(getattr(row, column), lost))
            row.save()
    for row in [run, *run.variants.all()]:
        for field in STORED[type(row)]:
            setattr(row, field, forgotten(getattr(row, field), lost))
        row.save()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_pages_and_files_render_without_figures(
    admin_page: Client, told: Run, share: float, seed: int
) -> None:
    draw = random.Random(seed)
    forget(told, lambda: draw.random() < share)
    other = factories.make_results(
        factories.make_run(), layers=("libpq", "psycopg", "django_orm"), clients=(1, 8)
    )
    for url in (
        reverse("admin:pgperf_run_change", args=[told.pk]),
        reverse("admin:pgperf_run_compare", args=[told.pk]) + f"?with={other.pk}",
        reverse("admin:pgperf_run_changelist"),
        *(reverse("admin:pgperf_run_download", args=[told.pk, name]) for name in (*TABLES, REPORT)),
    ):
        response = admin_page.get(url)
        assert response.status_code == 200, url
        assert not re.search(rb"[>,\s](None|nan|NaN)[<,\s]", response.getvalue()), url
