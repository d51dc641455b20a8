"""Passwords stay on each host: they are in no row, and in no log of a load host."""

import time

import pytest

from example.stack.part import Part
from pgperf.models import Database, LoadShare, Run
from pgperf.runs import state
from pgperf.worker import execution
from tests.load.conftest import NAMES, ask
from tests.load.test_deaths import meanwhile

pytestmark = pytest.mark.django_db(transaction=True)


def test_no_password_is_in_a_row_or_a_log(
    load_hosts: dict[str, Part], database: Database, stack: dict[str, str]
) -> None:
    rows: list[str] = []

    def look() -> None:
        """Orders and answers follow one another in the rows."""
        while Run.objects.get(pk=asked.pk).status in state.ACTIVE:
            rows.extend(map(repr, LoadShare.objects.values("order", "answer", "readings", "refusal")))
            time.sleep(0.05)

    asked = ask(database)
    with meanwhile(look):
        run = execution.perform(asked.pk, "owner@here")
    assert run.status == Run.Status.DONE
    assert any("'slices'" in row for row in rows)
    password = stack["PGPERF_DB_PASSWORD"]
    assert password
    assert not any(password in row for row in rows)
    for name in NAMES:
        assert password not in load_hosts[name].log.read_text()
