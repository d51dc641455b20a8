"""A superuser on a site with sample rows; each input runs in a transaction that is rolled back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests import factories, kept_rows
from tests.fuzz import cases


def pytest_sessionfinish() -> None:
    cases.keep_counts()


@pytest.fixture(scope="module")
def superuser(django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    """The sample rows of a module, and who sees them all."""
    with kept_rows.kept(django_db_blocker):
        factories.make_worker()
        factories.make_results(factories.make_run())
        client, user = Client(), User.objects.create_superuser("fuzz")
        factories.make_schedule(owner=user)
        client.force_login(user)
        yield client


@pytest.fixture
def site(superuser: Client, db: None) -> Client:
    """A superuser's client; a response of 500 raises in the test."""
    return kept_rows.same_user(superuser)


@pytest.fixture
def undone() -> Callable[[], AbstractContextManager[None]]:
    """A block whose database changes are rolled back."""
    return kept_rows.undone
