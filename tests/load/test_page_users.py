"""A page that is seen as a user, from load hosts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import serializers

from pgperf.access import page_sessions
from pgperf.models import BlockResult, Database, Run, Workload
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests import settings_page_hosts
from tests.factories import new_benchmark
from tests.load.conftest import started
from tests.shared_workers import rows_of
from tests.short_runs import request

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "tests.settings_page_hosts"


@pytest.fixture
def asked(database: Database, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of a page that only its user may see, over two load hosts."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", SETTINGS)
    settings.PGPERF, settings.ROOT_URLCONF = settings_page_hosts.PGPERF, settings_page_hosts.ROOT_URLCONF
    User.objects.create_user("reader")
    work = Workload.objects.create(name="mine", title="Mine", path="/tests/mine/", page_user="reader")
    benchmark = new_benchmark(
        [work], name="mine", layers=["django_view"], routes=["tcp"], modes=["simple"], clients=[2]
    )
    fields = {"blocks": 1, "rounds": 1, "slice_ms": 500, "diagnostic_ms": 0, "quick": True, "load_hosts": [2]}
    return request(benchmark, database, Overrides(**fields), foreground=True)


@contextmanager
def hosts(directory: Path) -> Iterator[dict[str, Any]]:
    with started(directory, settings=SETTINGS) as parts:
        rows_of(parts.values())
        yield parts


def test_each_host_finds_the_session_of_the_run(asked: Run, tmp_path: Path) -> None:
    with hosts(tmp_path) as parts:
        run = execution.perform(asked.pk, "owner@here")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert list(run.environment["load_hosts"]["hosts"]) == ["a", "b"]
    assert not Session.objects.exists()
    key = page_sessions.key_of(run, "reader")
    assert key not in serializers.serialize("json", [*Run.objects.all(), *BlockResult.objects.all()])
    assert not [name for name, part in parts.items() if key in part.log.read_text()]


def test_a_host_with_another_secret_key_refuses(
    asked: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPERF_TEST_SECRET_KEY", "another")
    with hosts(tmp_path):
        monkeypatch.delenv("PGPERF_TEST_SECRET_KEY")  # the owner has its own
        run = execution.perform(asked.pk, "owner@here")
    assert run.status == Run.Status.FAILED
    assert re.match(
        "load host [ab]: page_user: this host does not find the session that the run's owner made for reader: its"
        " SECRET_KEY, its SESSION_ENGINE or the store of its sessions is another one",
        run.error,
    )
    assert not Session.objects.exists()
