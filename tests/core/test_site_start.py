"""The time that this site takes to start."""

import time

import pytest

from pgperf.core import site_start


def test_it_is_the_cpu_time_until_django_was_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 2.5)
    site_start.note()
    monkeypatch.setattr(time, "process_time", lambda: 100.0)
    assert site_start.seconds() == 2.5


def test_a_process_that_did_other_things_first_counts_with_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 3_600.0)
    site_start.note()
    assert site_start.seconds() == 30.0


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_start, "_took_s", site_start.seconds())
