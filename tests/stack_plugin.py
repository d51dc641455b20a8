"""Starts PostgreSQL, PgBouncer and Redis for the test session, before Django's settings ask where
they are.

Where pytest-xdist shares the tests out, each of its workers has a stack of its own, and the process
that only hands tests out has none.
"""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from example.stack.stack import Stack


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """A wrapper runs before pytest-django reads the settings.

    A stack that the environment names is used as it is.
    """
    if "PGPERF_DB_PORT" not in os.environ and not _hands_out(early_config):
        directory = Path(tempfile.mkdtemp(prefix="pgperf-test-"))
        stack = Stack(directory, keep=False)
        early_config.add_cleanup(stack.stop)
        stack.start()
        os.environ.update(stack.env)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"  # pytest-django prefers it over the ini file's
    return (yield)


def _hands_out(config: pytest.Config) -> bool:
    """Is this the process that shares the tests out to others?"""
    return (
        bool(getattr(config.known_args_namespace, "numprocesses", None))
        and "PYTEST_XDIST_WORKER" not in os.environ
    )
