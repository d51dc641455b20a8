"""The button that asks a worker to look at its machine, on the pages that start a run."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from pgperf.conf import get_settings
from pgperf.core.exceptions import PgperfError
from pgperf.models import Database
from pgperf.reports.run_names import named
from pgperf.runs import machine_looks, state

#: The name of the button.
BUTTON = "look"


def is_asked(request: HttpRequest) -> bool:
    return request.method == "POST" and BUTTON in request.POST


def typed_name(request: HttpRequest) -> str:
    """The name of a production database as it was typed before the click. An address never has it: a
    link must not confirm a run.
    """
    return request.POST.get("confirm_name", "")


def ask(page: admin.ModelAdmin, request: HttpRequest) -> None:
    """Ask a worker, or say why it cannot be asked."""
    try:
        machine_looks.ask(get_settings().QUEUE)
    except PgperfError as error:
        page.message_user(request, named(str(error), request.user), messages.ERROR)


def waits(database: Database, user: Any) -> str:
    """The runs that a new run on the database waits for; "" if it need not wait."""
    held = " or ".join(f"run {run.pk}" for run in state.holders(database))
    return named(_("A run that you start now waits until %s has ended.") % held, user) if held else ""
