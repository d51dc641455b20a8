"""The history of an object: who did what, to which definition, and from which address. Never a secret's value."""

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


def signed(request: HttpRequest, text: str) -> str:
    """The text with the client's address, as the server saw it: behind a proxy, the proxy's."""
    return f"{text} From {request.META.get('REMOTE_ADDR') or 'an unknown address'}."


def digest(run: Run) -> str:
    """Which definition a run has: enough of its hash to tell it from others."""
    return run.definition_hash[:_HASH_DIGITS]


def added(page: admin.ModelAdmin, request: HttpRequest, row: Model, text: str) -> None:
    page.log_addition(request, row, signed(request, text))


def changed(page: admin.ModelAdmin, request: HttpRequest, row: Model, text: str) -> None:
    """Something was done to the row, or with it."""
    page.log_change(request, row, signed(request, text))


def all_changed(request: HttpRequest, rows: Iterable[Model], text: str) -> None:
    """The same was done with several rows of one model."""
    listed = list(rows)
    if listed and request.user.pk is not None:
        LogEntry.objects.log_actions(request.user.pk, listed, CHANGE, change_message=signed(request, text))


def plain(message: Any) -> str:
    """What Django notes of a form's changes, the names of the fields, as English text."""
    if isinstance(message, str):
        return message
    with override(None):
        return LogEntry(change_message=json.dumps(message)).get_change_message()
