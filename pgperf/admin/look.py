"""The button that asks a worker to look at its machine, on the pages that start a run."""

from django.contrib import admin, messages
from django.http import HttpRequest

from pgperf.conf import get_settings
from pgperf.core.exceptions import PgperfError
from pgperf.runs import machine_looks

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
        page.message_user(request, str(error), messages.ERROR)
