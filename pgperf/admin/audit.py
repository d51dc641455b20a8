"""History entries of an object: who did what, to which definition, from which address.

No entry contains a secret.
"""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import override

from pgperf.models import Run

_HASH_DIGITS = 12


def with_address(request: HttpRequest, text: str) -> str:
    """Append the client's address as the server saw it: behind a proxy, the proxy's address."""
    return f"{text} From {request.META.get('REMOTE_ADDR') or 'an unknown address'}."


def short_hash(run: Run) -> str:
    """The first digits of the hash of the run's definition."""
    return run.definition_hash[:_HASH_DIGITS]


def log_added(page: admin.ModelAdmin, request: HttpRequest, row: Model, text: str) -> None:
    page.log_addition(request, row, with_address(request, text))


def log_changed(page: admin.ModelAdmin, request: HttpRequest, row: Model, text: str) -> None:
    """Record an action on the row, or one that used it."""
    page.log_change(request, row, with_address(request, text))


def log_all_changed(request: HttpRequest, rows: Iterable[Model], text: str) -> None:
    """Record the same action on several rows of one model."""
    listed = list(rows)
    if listed and request.user.pk is not None:
        LogEntry.objects.log_actions(
            request.user.pk, listed, CHANGE, change_message=with_address(request, text)
        )


def as_text(message: Any) -> str:
    """Django's structured message on a form's changes as English text."""
    if isinstance(message, str):
        return message
    with override(None):
        return LogEntry(change_message=json.dumps(message)).get_change_message()
