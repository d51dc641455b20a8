"""The notes on routes whose clients log in differently."""

from typing import Any

import pytest

from pgperf.models import Run
from pgperf.reports import login_conditions, run_rows
from tests import factories

pytestmark = pytest.mark.django_db

SCRAM: dict[str, Any] = {"authentication": "scram-sha-256", "scram_iterations": 4096, "tls": "none"}
TRUST: dict[str, Any] = {"authentication": "none (trust, peer or certificate)", "tls": "none"}


def notes(pgbouncer: dict[str, Any], connect: str = "per_operation", **others: dict[str, Any]) -> list[str]:
    run: Run = factories.make_results(factories.make_run(), routes=("tcp", "pgbouncer"), layers=("libpq",))
    run.environment = {"connections": {"tcp": SCRAM, "pgbouncer": pgbouncer, **others}}
    run.variants.update(connect=connect)
    return login_conditions.notes(run_rows.read(run))


def test_the_same_login_needs_no_note() -> None:
    assert notes(SCRAM) == []


@pytest.mark.parametrize(
    ("login", "words"),
    [
        (TRUST, "(none (trust, peer or certificate); scram-sha-256 with 4,096 iterations)"),
        (
            SCRAM | {"scram_iterations": 1},
            "(scram-sha-256 with 1 iteration; scram-sha-256 with 4,096 iterations)",
        ),
        ({"authentication": None, "tls": "none"}, "(an unknown method; scram-sha-256"),
    ],
)
def test_another_login_counts_where_clients_reconnect(login: dict[str, Any], words: str) -> None:
    (note,) = notes(login)
    assert "pgbouncer and tcp" in note
    assert words in note
    assert "about 5 ms of CPU time" in note


@pytest.mark.parametrize("connect", ["persistent", "pool"])
def test_the_login_does_not_count_where_connections_stay(connect: str) -> None:
    assert notes(TRUST, connect) == []


@pytest.mark.parametrize("connect", ["persistent", "per_operation"])
def test_tls_counts_everywhere(connect: str) -> None:
    (note,) = notes(SCRAM | {"tls": "TLSv1.3"}, connect)
    assert "differ in TLS (TLSv1.3; no TLS)" in note


def test_a_run_that_did_not_record_them_has_no_note() -> None:
    run = factories.make_results(factories.make_run(), routes=("tcp", "pgbouncer"), layers=("libpq",))
    run.environment = {}
    assert login_conditions.notes(run_rows.read(run)) == []
