"""A superuser on a site with sample rows; each input runs in a transaction that is rolled back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from tests import factories
from tests.fuzz import cases


def pytest_sessionfinish() -> None:
    cases.keep_counts()


@pytest.fixture
def site(db: None) -> Client:
    """A superuser's client; a response of 500 raises in the test."""
    factories.make_worker()
    factories.make_results(factories.make_run())
    client, user = Client(), User.objects.create_superuser("fuzz")
    factories.make_schedule(owner=user)
    client.force_login(user)
    return client


@pytest.fixture
def undone() -> Callable[[], AbstractContextManager[None]]:
    """A block whose database changes are rolled back."""

    @contextmanager
    def block() -> Iterator[None]:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    return block
