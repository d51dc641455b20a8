"""Several runs beside each other."""

from typing import Any

import pytest

from pgperf.models import Run
from pgperf.reports.comparison_files import markdown
from pgperf.reports.several_runs import compare_several
from tests import factories
from tests.reports.reading import texts

pytestmark = pytest.mark.django_db


def ended(asyncpg: str, settings: dict[str, str]) -> Run:
    """A run whose layer asyncpg has this version of its driver, "" for a run without that layer."""
    layers: dict[str, Any] = dict(factories.ENVIRONMENT["layers"])
    if asyncpg:
        layers["asyncpg"] = {"driver": "asyncpg", "driver_version": asyncpg}
    environment = {**factories.ENVIRONMENT, "layers": layers, "server": settings}
    run = factories.make_results(factories.make_run())
    run.environment = environment
    return run


def test_each_run_has_its_own_value_of_what_differs() -> None:
    """Also a run that has none: it does not differ from the baseline in that."""
    every = {"max_wal_size": "1GB", "work_mem": "4MB"}
    runs = [ended("0.30", every), ended("0.31", {**every, "work_mem": "16MB", "geqo": "off"}), ended("", {})]
    table = compare_several(runs).differences
    assert table
    assert {row[0]: row[1:] for row in texts(table)} == {
        "layers · asyncpg · driver version": ["0.30", "0.31", "–"],
        "layers · asyncpg": [
            "driver asyncpg, driver_version 0.30", "driver asyncpg, driver_version 0.31", "–"
        ],
        "server · work_mem": ["4MB", "16MB", "unknown"],
        "server · geqo": ["default", "off", "unknown"],
    }  # fmt: skip


def test_a_partial_run_is_named_once() -> None:
    runs = [factories.make_results(factories.make_run()) for _ in range(3)]
    runs[0].summary |= {"partial": True}
    found = compare_several(runs)
    assert len(found.cautions) == 1
    assert f"- {runs[0]} has partial results" in markdown(found)
