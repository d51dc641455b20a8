"""Rows made once for all tests of a module, and changes that are undone.

A test over such rows asks for the fixture `db` too: it sees that there is a database, and undoes what
the test changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import transaction
from django.test import Client


@contextmanager
def undone() -> Iterator[None]:
    """A block whose database changes are rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def kept(blocker: Any) -> Iterator[None]:
    """For a fixture of a module: the database is open, and at the end as it was.

    `blocker`: the fixture `django_db_blocker`.
    """
    with blocker.unblock(), undone():
        yield


def same_user(client: Client) -> Client:
    """A client with the same login, without messages that other pages left."""
    found = Client()
    if login := client.cookies.get(settings.SESSION_COOKIE_NAME):
        found.cookies[settings.SESSION_COOKIE_NAME] = login.value
    return found
