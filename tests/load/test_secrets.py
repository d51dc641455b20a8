"""Passwords stay on each host: they are in no row, and in no log of a load host."""

import time
from pathlib import Path

import pytest

from example.stack.part import Part
from pgperf.models import Database, LoadShare, Run
from tests.load.conftest import NAMES, ask
from tests.load.test_deaths import perform_and

pytestmark = pytest.mark.django_db(transaction=True)


def test_no_password_is_in_a_row_or_a_log(
    load_hosts: dict[str, Part], database: Database, stack: dict[str, str], tmp_path: Path
) -> None:
    rows: list[str] = []

    def look() -> None:
        """Orders and answers follow one another in the rows."""
        for _ in range(60):
            rows.extend(map(repr, LoadShare.objects.values("order", "answer", "readings", "refusal")))
            time.sleep(0.05)

    run, _seconds = perform_and(ask(database, blocks=6), look)
    assert run.status == Run.Status.DONE
    assert any("'slices'" in row for row in rows)
    password = stack["PGPERF_DB_PASSWORD"]
    assert password
    assert not any(password in row for row in rows)
    for name in NAMES:
        assert password not in (tmp_path / name / "worker.log").read_text()
